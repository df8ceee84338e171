use super::safe_path;

#[test]
fn escapes_of_a_path_are_decoded() {
    let cases: &[(&str, Option<&str>)] = &[
        ("/a%20b%2Fc", Some("/a b/c")),
        ("/a%", Some("/a%")),
        ("/a%4", Some("/a%4")),
        ("/a%+1", Some("/a%+1")),
        ("/a%4g", Some("/a%4g")),
        ("/%2e%2e/x", None),
        ("/a%00", None),
        ("", None),
    ];
    for (path, expected) in cases {
        let decoded = safe_path(path.as_bytes());
        assert_eq!(decoded.as_deref(), expected.map(str::as_bytes), "{path}");
    }
}

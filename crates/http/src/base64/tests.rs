use super::decode;

#[test]
fn decodes_with_and_without_padding() {
    for (text, bytes) in [
        ("", Some("")),
        ("YQ==", Some("a")),
        ("YQ", Some("a")),
        ("YQ=", Some("a")),
        ("dXNlcjpwYXNz", Some("user:pass")),
        ("YWI=", Some("ab")),
        ("YWI==", Some("ab")),
        ("YR==", Some("a")),
        ("fn5+Pz8/", Some("~~~???")),
        ("Y", None),
        ("Y*==", None),
        ("YQ===", None),
        ("Y=Q=", None),
        ("-_-_", None),
        ("YWI\n", None),
    ] {
        let expected = bytes.map(|text| text.as_bytes().to_vec());
        assert_eq!(decode(text.as_bytes()), expected, "{text}");
    }
}

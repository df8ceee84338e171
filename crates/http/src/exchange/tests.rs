//! Extensions of paths.

use super::extension;

#[test]
fn extensions_are_those_of_the_last_segment() {
    let cases: &[(&str, Option<&str>)] = &[
        ("/a.html", Some("html")),
        ("/a.tar.gz", Some("gz")),
        ("/a.b/c", None),
        ("/.htaccess", None),
        // The type of no extension is the default one, as that of an empty one is.
        ("/a.", Some("")),
        ("/..a", Some("a")),
        ("/", None),
        ("/dir/.x.TXT", Some("TXT")),
    ];
    for (path, expected) in cases {
        let found = extension(path.as_bytes());
        assert_eq!(found, expected.map(str::as_bytes), "{path}");
    }
}

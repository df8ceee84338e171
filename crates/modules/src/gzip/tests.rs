use super::accept::accepts_gzip;

#[test]
fn gzip_is_accepted_where_it_is_named_with_a_weight() {
    let cases: &[(&str, bool)] = &[
        ("gzip", true),
        ("GZip", true),
        ("deflate, gzip", true),
        ("br,gzip;q=0.001", true),
        ("gzip; q=1.000, br", true),
        ("gzip ;Q = 0.5", true),
        ("gzip;q=0", false),
        ("gzip;q=0.000", false),
        ("gzip;q=0.0001", false),
        ("gzip;q=1.5", false),
        ("gzip;q=", false),
        ("gzip;x=1", false),
        ("xgzip, gzipx", false),
        ("*", false),
        ("", false),
        ("br", false),
    ];
    for (codings, expected) in cases {
        assert_eq!(accepts_gzip(codings.as_bytes()), *expected, "{codings}");
    }
}

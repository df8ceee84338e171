use crate::pass::target::{PassUrl, UrlError};

#[test]
fn addresses_are_read_with_and_without_scheme() {
    const CASES: &[(&str, bool, &str, &str)] = &[
        ("grpc://127.0.0.1:81", false, "127.0.0.1:81", "81"),
        ("GRPCS://h:443", true, "h:443", "443"),
        ("h:81", false, "h:81", "81"),
        ("u", false, "u", "0"),
        ("grpc://unix:/tmp/s", false, "localhost", ""),
    ];
    for (text, secure, host, port) in CASES {
        let url = PassUrl::parse_grpc(text).expect(text);
        assert_eq!(url.secure, *secure, "{text}");
        assert_eq!(url.host, host.as_bytes(), "{text}");
        assert_eq!(url.port, port.as_bytes(), "{text}");
    }
    let refused = PassUrl::parse_grpc("grpc://");
    assert!(matches!(refused, Err(UrlError::Address("no host", _))));
}

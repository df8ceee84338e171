use std::net::SocketAddr;

use turnpike_lane::sys::socket::PeerAddress;

use super::forwarded::{Trust, parse};
use turnpike_plan::cidr::Cidr;

fn inet(text: &str) -> PeerAddress {
    PeerAddress::Inet(parse(text.as_bytes()).expect(text))
}

#[test]
fn follows_proxies_back_as_far_as_they_are_trusted() {
    let trust = Trust {
        ranges: vec![Cidr::parse("10.0.0.0/8").expect("a range")],
        unix: false,
    };
    // Peer, fields, recursive, and who it is.
    let cases: &[(&str, &[&str], bool, Option<&str>)] = &[
        ("192.0.2.9", &["192.0.2.1"], false, None),
        ("10.0.0.1", &["192.0.2.1"], false, Some("192.0.2.1")),
        (
            "10.0.0.1",
            &["192.0.2.1, 10.0.0.2"],
            false,
            Some("10.0.0.2"),
        ),
        (
            "10.0.0.1",
            &["192.0.2.1, 10.0.0.2"],
            true,
            Some("192.0.2.1"),
        ),
        (
            "10.0.0.1",
            &["192.0.2.1,10.0.0.2 , "],
            true,
            Some("192.0.2.1"),
        ),
        (
            "10.0.0.1",
            &["192.0.2.1", "10.0.0.2"],
            true,
            Some("192.0.2.1"),
        ),
        (
            "10.0.0.1",
            &["192.0.2.1", "192.0.2.2"],
            true,
            Some("192.0.2.2"),
        ),
        (
            "10.0.0.1",
            &["192.0.2.1, 192.0.2.2"],
            true,
            Some("192.0.2.2"),
        ),
        ("10.0.0.1", &["nobody, 10.0.0.2"], true, Some("10.0.0.2")),
        ("10.0.0.1", &["nobody"], true, None),
        ("10.0.0.1", &[""], true, None),
        ("10.0.0.1", &["192.0.2.1:80"], false, Some("192.0.2.1:80")),
        (
            "10.0.0.1",
            &["[2001:db8::1]:80"],
            false,
            Some("[2001:db8::1]:80"),
        ),
        ("10.0.0.1", &["2001:db8::1"], false, Some("2001:db8::1")),
    ];
    for (peer, fields, recursive, expected) in cases {
        let values = fields.iter().map(|field| field.as_bytes());
        let got = trust.follow(inet(peer), values, *recursive);
        assert_eq!(got, expected.map(inet), "{peer} with {fields:?}");
    }
}

#[test]
fn reads_addresses_with_and_without_ports() {
    let cases = [
        ("192.0.2.1", Some("192.0.2.1:0")),
        ("192.0.2.1:8080", Some("192.0.2.1:8080")),
        ("::1", Some("[::1]:0")),
        ("[::1]", Some("[::1]:0")),
        ("[::1]:8080", Some("[::1]:8080")),
        ("192.0.2.1:", None),
        ("host", None),
    ];
    for (text, expected) in cases {
        let expected = expected.map(|text| text.parse::<SocketAddr>().expect(text));
        assert_eq!(parse(text.as_bytes()), expected, "{text}");
    }
}

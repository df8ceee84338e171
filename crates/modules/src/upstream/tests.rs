#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::url::{Target, Url};

fn url(target: Target, host: &str, port: Option<u16>) -> Result<Url, &'static str> {
    Ok(Url {
        target,
        host: host.to_owned(),
        port,
    })
}

#[test]
fn addresses_are_read_as_nginx_reads_them() {
    let v4 = Target::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let v6 = Target::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST));
    let name = Target::Name("a.b".to_owned());
    let unix = Target::Unix(b"/run/a".to_vec());
    let cases = [
        ("127.0.0.1", url(v4.clone(), "127.0.0.1", None)),
        ("127.0.0.1:8080", url(v4, "127.0.0.1", Some(8080))),
        ("[::1]:81", url(v6.clone(), "[::1]", Some(81))),
        ("[::1]", url(v6, "[::1]", None)),
        ("a.b:1", url(name, "a.b", Some(1))),
        ("unix:/run/a", url(unix, "unix:/run/a", None)),
        ("unix:", Err("no path in the unix domain socket")),
        (":80", Err("no host")),
        ("", Err("no host")),
        ("a:0", Err("invalid port")),
        ("a:65536", Err("invalid port")),
        ("a:+1", Err("invalid port")),
        ("a:b", Err("invalid port")),
        ("a/b", Err("invalid host")),
        ("[::1", Err("invalid host")),
        ("[::1]1", Err("invalid host")),
        ("[]:1", Err("no host")),
        ("[x]:1", Err("invalid IPv6 address")),
    ];
    for (text, expected) in cases {
        assert_eq!(Url::parse(text), expected, "{text}");
    }
}

#[test]
fn groups_are_known_by_host_without_regard_to_case_and_port() {
    let cases = [
        ("Backend.Example", "backend.example:80"),
        ("backend.example:80", "backend.example:80"),
        ("backend.example:81", "backend.example:81"),
        ("127.0.0.1", "127.0.0.1:80"),
        ("[FE80::A]:81", "[fe80::a]:81"),
        ("unix:/run/A", "unix:/run/A"),
    ];
    for (text, expected) in cases {
        assert_eq!(Url::parse(text).unwrap().identity(80), expected, "{text}");
    }
}

//! Networks, ranges and forwarded addresses, without a request.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use super::networks::Networks;
use super::ranges::{self, RangesDraft};
use crate::common::address::{Network, forwarded};

#[test]
fn the_longest_prefix_wins() {
    let mut networks = Networks::default();
    let all = [
        ("0.0.0.0/0", 0),
        ("127.0.0.0/8", 1),
        ("127.0.0.1", 2),
        ("2001:db8::/32", 3),
        ("192.0.2.0/24", 4),
    ];
    for (text, value) in all {
        networks.insert(Network::parse(text).unwrap(), value);
    }
    assert!(networks.remove(Network::parse("192.0.2.0/24").unwrap()));
    assert!(!networks.remove(Network::parse("192.0.2.0/24").unwrap()));
    let cases = [
        ("127.0.0.1", Some(2)),
        ("127.1.0.1", Some(1)),
        ("192.0.2.1", Some(0)),
        ("2001:db8::1", Some(3)),
        ("2001:db9::1", None),
    ];
    for (address, expected) in cases {
        assert_eq!(
            networks.find(address.parse().unwrap()),
            expected,
            "{address}"
        );
    }
}

#[test]
fn ranges_split_those_they_lie_in() {
    let mut draft = RangesDraft::default();
    let mut add = |text: &str, value| {
        let (first, last) = ranges::parse(text).unwrap();
        draft.insert(first, last, value)
    };
    assert_eq!(add("10.0.0.0-10.9.255.255", 0), Ok(None));
    assert_eq!(add("10.1.0.5-10.1.0.9", 1), Ok(None));
    assert_eq!(add("10.1.0.5-10.1.0.5", 2), Ok(None));
    assert_eq!(add("10.1.0.9-10.1.0.9", 3), Ok(None));
    assert_eq!(add("11.0.0.1-11.0.0.2", 6), Ok(None));
    assert_eq!(add("11.0.0.1-11.0.0.2", 4), Ok(Some(6)));
    assert_eq!(
        add("11.0.0.0-11.0.0.1", 5),
        Err("11.0.0.1-11.0.0.2".to_owned())
    );
    let (first, last) = ranges::parse("11.0.0.1-11.0.0.2").unwrap();
    assert!(draft.remove(first, last));
    assert!(!draft.remove(first, last));
    let table = draft.finish();
    let cases = [
        ("10.0.0.0", Some(0)),
        ("10.1.0.4", Some(0)),
        ("10.1.0.5", Some(2)),
        ("10.1.0.6", Some(1)),
        ("10.1.0.9", Some(3)),
        ("10.1.0.10", Some(0)),
        ("10.9.255.255", Some(0)),
        ("10.10.0.0", None),
        ("11.0.0.1", None),
    ];
    for (address, expected) in cases {
        let bits = address.parse::<Ipv4Addr>().unwrap().to_bits();
        assert_eq!(table.find(bits), expected, "{address}");
    }
}

#[test]
fn only_trusted_proxies_are_believed() {
    let trusted = [
        Network::parse("127.0.0.0/8").unwrap(),
        Network::parse("192.0.2.0/24").unwrap(),
    ];
    let cases: &[(&str, &[&str], bool, &str)] = &[
        ("10.0.0.1", &["1.2.3.4"], false, "10.0.0.1"),
        ("127.0.0.1", &["1.2.3.4"], false, "1.2.3.4"),
        ("127.0.0.1", &["1.2.3.4, 192.0.2.1"], false, "192.0.2.1"),
        ("127.0.0.1", &["1.2.3.4, 192.0.2.1"], true, "1.2.3.4"),
        ("127.0.0.1", &["1.2.3.4", "192.0.2.1:80"], true, "1.2.3.4"),
        ("127.0.0.1", &["5.6.7.8, 1.2.3.4"], true, "1.2.3.4"),
        ("127.0.0.1", &["[2001:db8::1]:80"], true, "2001:db8::1"),
        ("127.0.0.1", &["unknown, 192.0.2.1"], true, "192.0.2.1"),
        ("127.0.0.1", &[], true, "127.0.0.1"),
    ];
    for (peer, fields, recursive, expected) in cases {
        let fields = fields.iter().map(|field| field.as_bytes());
        let peer: IpAddr = peer.parse().unwrap();
        let found = forwarded(peer, fields, &trusted, *recursive);
        assert_eq!(found.to_string(), *expected);
    }
}

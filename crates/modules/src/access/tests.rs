use std::net::SocketAddr;

use turnpike_lane::sys::socket::PeerAddress;

use super::handler::{Rule, Rules, Who};
use turnpike_plan::cidr::Cidr;

#[test]
fn the_first_rule_that_fits_decides() {
    let range = |text| Who::Range(Cidr::parse(text).expect(text));
    let rule = |denies, who| Rule { who, denies };
    let rules = Rules::new(vec![
        rule(false, range("10.0.0.1")),
        rule(true, range("10.0.0.0/8")),
        rule(false, Who::Unix),
        rule(true, range("2001:db8::/32")),
    ]);
    let cases = [
        ("10.0.0.1:1", Some(false)),
        ("10.0.0.2:1", Some(true)),
        ("[::ffff:10.0.0.2]:1", Some(true)),
        ("[2001:db8::1]:1", Some(true)),
        ("192.0.2.1:1", None),
    ];
    for (address, expected) in cases {
        let address: SocketAddr = address.parse().expect(address);
        let got = rules.denies(PeerAddress::Inet(address));
        assert_eq!(got, expected, "{address}");
    }
    assert_eq!(rules.denies(PeerAddress::Unix), Some(false));
    let closed = Rules::new(vec![rule(true, Who::All)]);
    assert_eq!(closed.denies(PeerAddress::Unix), Some(true));
}

#[test]
fn addresses_of_ipv4_that_came_over_ipv6_meet_the_rules_for_ipv6_where_there_are_no_others() {
    // The denied ranges, and whether 10.0.0.2 is denied that came over IPv6.
    let cases: &[(&[&str], Option<bool>)] = &[
        (&["::/0"], Some(true)),
        (&["::ffff:0:0/96"], Some(true)),
        (&["2001:db8::/32"], None),
        (&["::/0", "192.0.2.0/24"], None),
        (&["::/0", "10.0.0.0/8"], Some(true)),
    ];
    let address = "[::ffff:10.0.0.2]:1".parse().expect("an address");
    for (ranges, expected) in cases {
        let rule = |text: &&str| Rule {
            who: Who::Range(Cidr::parse(text).expect(text)),
            denies: true,
        };
        let rules = Rules::new(ranges.iter().map(rule).collect());
        let got = rules.denies(PeerAddress::Inet(address));
        assert_eq!(got, *expected, "{ranges:?}");
    }
}

use std::net::SocketAddr;

use turnpike_lane::sys::socket::PeerAddress;

use super::handler::{Rule, Rules, Who};
use turnpike_plan::cidr::Cidr;

#[test]
fn the_first_rule_that_fits_decides() {
    let range = |text| Who::Range(Cidr::parse(text).expect(text));
    let rule = |denies, who| Rule { who, denies };
    let rules = Rules(vec![
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
    let closed = Rules(vec![rule(true, Who::All)]);
    assert_eq!(closed.denies(PeerAddress::Unix), Some(true));
}

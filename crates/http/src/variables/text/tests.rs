use super::*;

#[test]
fn addresses_are_written_as_the_standard_library_does() {
    for octet in 0..=255 {
        for address in [
            IpAddr::from([octet, 255 - octet, 9, 10]),
            IpAddr::from([99, 100, 0, octet]),
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(octet)]),
        ] {
            let mut out = b"for ".to_vec();
            append_address(&mut out, address);
            assert_eq!(out, format!("for {address}").into_bytes());
        }
    }
}

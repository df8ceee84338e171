use std::net::Ipv4Addr;

use super::*;

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 7)), 4000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), 80);

/// What a server sends: a number behind its first one, an acknowledgement behind the client's,
/// flags and text.
fn from_server(syn: &Segment, numbers: [u32; 2], flags: u8, text: &str) -> Segment {
    Segment {
        source: SERVER,
        destination: CLIENT,
        sequence: 7000 + numbers[0],
        acknowledgement: syn.sequence.wrapping_add(numbers[1]),
        flags,
        text: text.into(),
        ..syn.clone()
    }
}

#[test]
fn a_connection_sends_its_pieces_and_acknowledges_what_comes() {
    let syn = Segment::syn(CLIENT, SERVER, &[2, 4, 5, 180]);
    let mut connection = Connection::new(&syn, &[b"ab".to_vec(), b"c".to_vec()]);
    assert_eq!(connection.unacknowledged(), std::slice::from_ref(&syn));
    let mut take = |numbers, flags, text| {
        let sent = connection.take(&from_server(&syn, numbers, flags, text));
        let short = |segment: Segment| {
            let number = segment.sequence.wrapping_sub(syn.sequence);
            let text = String::from_utf8(segment.text).unwrap_or_default();
            (number, segment.acknowledgement, segment.flags, text)
        };
        sent.into_iter().map(short).collect::<Vec<_>>()
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(
        take([0, 1], SYN | ACK, ""),
        [
            (1, 7001, ACK, text("")),
            (1, 7001, ACK | PSH, text("ab")),
            (3, 7001, ACK | PSH, text("c")),
            (4, 7001, ACK | FIN, text("")),
        ]
    );
    assert_eq!(take([1, 3], ACK, ""), []);
    // Text that came before its turn is asked for again.
    assert_eq!(take([3, 3], ACK, "yz"), [(3, 7001, ACK, text(""))]);
    assert_eq!(take([1, 3], ACK, "wx"), [(3, 7003, ACK, text(""))]);
    assert_eq!(take([3, 5], ACK | FIN, "yz"), [(4, 7006, ACK, text(""))]);
    assert_eq!(connection.received, b"wxyz");
    assert!(connection.is_over);
}

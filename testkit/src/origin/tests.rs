//! Tests of scripts with a plain client.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{Origin, Step};

#[test]
fn each_connection_has_its_script_and_is_recorded() {
    let origin = Origin::start(vec![
        vec![
            Step::ReadHead,
            Step::send("a"),
            Step::ReadBytes(2),
            Step::send("b"),
        ],
        vec![Step::ReadBytes(1), Step::Reset],
    ]);
    let mut first = TcpStream::connect(("127.0.0.1", origin.port())).unwrap();
    first.write_all(b"x\r\n\r\nyz").unwrap();
    let mut text = String::new();
    first.read_to_string(&mut text).unwrap();
    assert_eq!(text, "ab");
    for _ in 0..2 {
        let mut other = TcpStream::connect(("127.0.0.1", origin.port())).unwrap();
        other.write_all(b"q").unwrap();
        let error = other.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    origin.wait_for_connections(3);
    assert_eq!(
        origin.received(),
        [b"x\r\n\r\nyz".to_vec(), b"q".to_vec(), b"q".to_vec()]
    );
}

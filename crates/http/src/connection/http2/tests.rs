//! Connections of HTTP/2 on a lane whose client acts between its polls.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use turnpike_wire::h2::PREFACE;

use super::super::Command;
use super::super::tests::{Lane, Restless};
use super::{Spoken, by_first_bytes};
use crate::testing;

#[test]
fn the_first_bytes_of_a_plain_connection_choose_the_protocol() {
    let table: &[(&str, Spoken)] = &[
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Spoken::Http2),
        ("PRI * HT", Spoken::Unclear),
        ("PRI * HTTP/2.0\r\n\r\nxxxxxxxx", Spoken::Http1),
        ("GET / HTTP/1.1\r\n", Spoken::Http1),
        ("GET /a b HTTP/1.1\r\n", Spoken::Http1),
        ("GET /\r\n", Spoken::Http1),
        ("\r\nGET / HTTP/1.0\r\n", Spoken::Http1),
        ("xxxxxxxxxxxxxxxx\r\n", Spoken::Http1),
        ("INVALID CONNECTION PREF", Spoken::Http1),
        ("INVALID CONNECTION PREFACE\r\n\r\n", Spoken::Http2),
        ("OPTIONS rtsp://a/ RTSP/1.0\r\n", Spoken::Http2),
    ];
    for (bytes, expected) in table {
        assert_eq!(by_first_bytes(bytes.as_bytes()), *expected, "{bytes:?}");
    }
}

const HTTP2: &str = "server { listen 127.0.0.1:80; http2 on; }";

/// A frame (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// `GET http://a/`, whole.
fn get(stream: u32) -> Vec<u8> {
    frame(1, 0b101, stream, b"\x82\x86\x84\x41\x01a")
}

#[test]
fn a_request_that_moves_no_byte_costs_its_stream() {
    let plan = testing::plan_with(&[&Restless], HTTP2).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    let mut client = lane.client();
    let mailbox = lane.mailbox.clone();
    let client = std::thread::spawn(move || {
        client.write_all(PREFACE).unwrap();
        client.write_all(&frame(4, 0, 0, &[])).unwrap();
        client.write_all(&get(1)).unwrap();
        // RST_STREAM with INTERNAL_ERROR.
        let reset = frame(3, 0, 1, &2_u32.to_be_bytes());
        let pong = frame(6, 1, 0, &[7; 8]);
        let mut came = Vec::new();
        let mut read_until = |client: &mut UnixStream, frame: &[u8]| {
            while !came.ends_with(frame) {
                let mut bytes = [0; 4096];
                match client.read(&mut bytes) {
                    Ok(count @ 1..) => came.extend(&bytes[..count]),
                    _ => return false,
                }
            }
            true
        };
        let is_reset = read_until(&mut client, &reset);
        client.write_all(&frame(6, 0, 0, &[7; 8])).unwrap();
        let is_alive = read_until(&mut client, &pong);
        mailbox.send(Command::Terminate);
        (is_reset, is_alive)
    });
    lane.run();
    assert_eq!(client.join().unwrap(), (true, true));
}

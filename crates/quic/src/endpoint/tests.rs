//! Tests of an endpoint with packets of no connection.

#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;
use std::time::Instant;

use super::{
    CONNECTION_ID_BYTES, ConnectionIds, Endpoint, EndpointRules, From, HostKey, Outcome, Place,
};

const SECRET: &[u8] = b"a secret";

/// The time of all packets.
static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The place of a lane in the process of that number.
fn place(process: u16) -> Place {
    Place {
        gate: 0,
        serial: 0,
        process,
    }
}

fn endpoint(process: u16) -> Endpoint {
    Endpoint::new(EndpointRules {
        host_key: HostKey::of(SECRET),
        place: place(process),
        half_open: Default::default(),
        used_tokens: Default::default(),
    })
    .unwrap()
}

/// Where all packets come from.
fn from() -> From {
    From {
        peer: ([127, 0, 0, 1], 1).into(),
        local: None,
    }
}

/// The ID of a connection that another process had.
fn id(number: u64) -> [u8; CONNECTION_ID_BYTES] {
    let ids = ConnectionIds::new(HostKey::of(SECRET).connection_ids());
    ids.write(number.to_le_bytes(), place(1))
}

/// A packet of it with this header before the ID.
fn packet(header: &[u8], number: u64) -> Vec<u8> {
    let mut packet = header.to_vec();
    packet.extend(id(number));
    // The client's ID, where the header is long, and the rest.
    packet.resize(60, 0);
    packet
}

fn answer(endpoint: &mut Endpoint, packet: &[u8]) -> Option<Vec<u8>> {
    // A lane reads the time once in a turn, in which it takes many packets.
    let now = (*NOW, 5_000);
    match endpoint.receive(now, from(), packet, false) {
        Outcome::Answer(transmit) => Some(endpoint.output()[..transmit.bytes].to_vec()),
        _ => None,
    }
}

const SHORT: &[u8] = &[0x40];
const HANDSHAKE: &[u8] = &[0xe0, 0, 0, 0, 1, CONNECTION_ID_BYTES as u8];

#[test]
fn packets_that_wait_for_another_process_are_all_reset() {
    let mut endpoint = endpoint(2);
    for number in 0..500 {
        let packet = packet(SHORT, number);
        let answer = answer(&mut endpoint, &packet);
        assert!(answer.unwrap().len() < packet.len(), "{number}");
    }
}

#[test]
fn clients_whose_handshake_was_cut_are_told() {
    let mut endpoint = endpoint(2);
    let reset = answer(&mut endpoint, &packet(SHORT, 3)).unwrap();
    let (_, token) = reset.split_last_chunk::<16>().unwrap();
    // The packet, and whether it is answered.
    let other_version = [&[0xe0, 0, 0, 0, 2], &HANDSHAKE[5..]].concat();
    let cases = [
        (packet(HANDSHAKE, 3), true),
        (packet(HANDSHAKE, 3)[..40].to_vec(), true),
        // No shorter one can be told from a packet of a connection.
        (packet(HANDSHAKE, 3)[..20].to_vec(), false),
        (packet(&other_version, 3), false),
        // Of another length than our IDs.
        (packet(&[0xe0, 0, 0, 0, 1, 8], 3), false),
        // Early data has no ID of ours.
        (
            packet(&[0xd0, 0, 0, 0, 1, CONNECTION_ID_BYTES as u8], 3),
            false,
        ),
    ];
    for (packet, is_answered) in cases {
        let answer = answer(&mut endpoint, &packet);
        assert_eq!(answer.is_some(), is_answered, "{packet:?}");
        if let Some(answer) = answer {
            assert!(answer.len() < packet.len() && answer.ends_with(token));
            assert_eq!(answer[0] & 0xc0, 0x40, "{answer:?}");
        }
    }
}

#[test]
fn what_is_no_beginning_keeps_no_place() {
    let mut endpoint = endpoint(2);
    // An Initial packet whose keys come from another ID, as a client sends it that has got ours.
    let mut packet = packet(&[0xc0, 0, 0, 0, 1, CONNECTION_ID_BYTES as u8], 3);
    packet[6 + CONNECTION_ID_BYTES..][..4].copy_from_slice(&[0, 0, 0x44, 0x96]);
    packet.resize(1200, 7);
    assert_eq!(turnpike_wire::quic::initial::packets(&packet).count(), 1);
    assert_eq!(answer(&mut endpoint, &packet), None);
    assert_eq!(endpoint.flights(), 0);
}

//! Tests of an endpoint with packets of no connection.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use super::{ConnectionIds, Endpoint, EndpointRules, From, HostKey, Outcome, Place};

const SECRET: &[u8] = b"a secret";

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

/// A packet with a short header of a connection that another process had.
fn packet(number: u64) -> Vec<u8> {
    let ids = ConnectionIds::new(HostKey::of(SECRET).connection_ids());
    let mut packet = vec![0x40];
    packet.extend(ids.write(number.to_le_bytes(), place(1)));
    packet.resize(60, 7);
    packet
}

#[test]
fn packets_that_wait_for_another_process_are_all_reset() {
    let mut endpoint = endpoint(2);
    // A lane reads the time once in a turn, in which it takes many packets.
    let now = (Instant::now(), 5_000);
    let from = From {
        peer: ([127, 0, 0, 1], 1).into(),
        local: None,
    };
    for number in 0..500 {
        let outcome = endpoint.receive(now, from, &packet(number), false);
        let Outcome::Answer(transmit) = outcome else {
            panic!("packet {number} has no answer");
        };
        assert!(transmit.bytes < packet(number).len());
    }
}

//! The bodies of the fuzz targets; the targets themselves only pass bytes in.

use turnpike_wire::message::Head;

use crate::disk::fuzzing as file;
use crate::freshness::{RequestFacts, Rules, judge, remove_withheld};
use crate::head::{decode, encode, remove_unstorable};
use crate::vary::Selection;

/// The arrival of the response, in Unix milliseconds: in the middle of the dates that a fuzzer can
/// write.
const RECEIVED_MS: u64 = 1_795_000_000_000;

/// Judges any head: no field may overflow the arithmetic, and a stored head must survive the round
/// trip.
pub fn freshness(bytes: &[u8]) {
    let mut head = head_of(bytes);
    let asked = RequestFacts {
        sent_ms: RECEIVED_MS - 20,
        received_ms: RECEIVED_MS,
        ..RequestFacts::default()
    };
    if let Ok(timing) = judge(&asked, &head, &Rules::default()) {
        for now_ms in [0, RECEIVED_MS, u64::MAX] {
            let fresh = timing.is_fresh(now_ms);
            assert!(!fresh || now_ms < timing.fresh_until_ms);
            assert!(timing.age_s(now_ms) >= timing.initial_age_ms / 1000);
            let _ = timing.may_serve_while_revalidating(now_ms);
            let _ = timing.may_serve_if_error(now_ms);
        }
    }
    let nothing = |_: &[u8], _: &mut Vec<u8>| false;
    if let Ok(selection) = Selection::of(&head, &nothing) {
        assert!(selection.matches(&nothing));
    }
    remove_unstorable(&mut head);
    remove_withheld(&mut head, &Rules::default());
    let mut encoded = Vec::new();
    encode(&head, &mut encoded);
    assert_eq!(decode(&mut encoded.as_slice()), Some(head));
}

/// Reads any bytes as the header and the description of a file.
pub fn stored_file(bytes: &[u8]) {
    file::header(bytes);
    file::description(bytes);
}

/// Two bytes of status, then lines of fields.
fn head_of(bytes: &[u8]) -> Head {
    let (status, lines) = bytes.split_first_chunk::<2>().unwrap_or((&[0; 2], &[]));
    let mut head = Head::response(u16::from_le_bytes(*status) % 1000, b"");
    for line in lines.split(|byte| *byte == b'\n') {
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            head.fields
                .add(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    head
}

#[cfg(test)]
mod tests;

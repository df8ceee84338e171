//! Tests of the connections before they are changed.

use super::{conversation, of_case};
use crate::http2_frames::{
    CONTINUATION, FLAG_END_HEADERS, HEAD_BYTES, HEADERS, PREFACE, SETTINGS, first_frame,
};
use turnpike_testkit::random::Random;

const MARK: &str = "tkn0123456789abcdef";
const SEEDS: u64 = 300;

#[test]
fn an_unchanged_connection_begins_requests_in_order_and_divides_no_block() {
    let mut marks = 0;
    for seed in 0..SEEDS {
        let bytes = conversation(MARK, &mut Random::new(seed)).concat();
        marks += bytes
            .windows(MARK.len())
            .filter(|at| *at == MARK.as_bytes())
            .count();
        let mut rest = bytes.strip_prefix(PREFACE).unwrap_or_default();
        let (mut last, mut block, mut number) = (0, None, 0);
        while let Some((frame, behind)) = first_frame(rest) {
            rest = behind;
            number += 1;
            assert!(number > 1 || frame.kind == SETTINGS, "seed {seed}");
            let is_inside = block == Some(frame.stream);
            assert_eq!(is_inside, frame.kind == CONTINUATION, "seed {seed}");
            assert_eq!(is_inside, block.is_some(), "seed {seed}");
            if matches!(frame.kind, HEADERS | CONTINUATION) {
                let is_open = frame.flags & FLAG_END_HEADERS == 0;
                block = is_open.then_some(frame.stream);
            }
            if frame.kind == HEADERS && frame.stream > last {
                assert_eq!(
                    frame.stream,
                    last + if last == 0 { 1 } else { 2 },
                    "seed {seed}"
                );
                last = frame.stream;
            }
        }
        assert!(
            rest.len() < HEAD_BYTES && last > 0,
            "seed {seed}: {} bytes left",
            rest.len()
        );
    }
    assert!(marks > 0);
}

#[test]
fn a_seed_decides_the_bytes_and_most_are_changed() {
    let of = |seed| of_case(MARK, &mut Random::new(seed));
    let mut changed = 0;
    for seed in 0..SEEDS {
        assert!(of(seed) == of(seed), "seed {seed}");
        changed += u64::from(of(seed) != conversation(MARK, &mut Random::new(seed)).concat());
    }
    assert!(
        (SEEDS / 2..SEEDS).contains(&changed),
        "{changed} of {SEEDS}"
    );
}

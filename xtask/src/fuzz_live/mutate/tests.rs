use super::super::seeds::{ANSWER_WORDS, ANSWERS, REQUEST_WORDS, REQUESTS};
use super::{MESSAGE_BYTES_MAX, bytes, mutate};
use turnpike_testkit::random::Random;

#[test]
fn there_are_fifty_requests() {
    assert_eq!(REQUESTS.len(), 50);
}

#[test]
fn a_case_is_always_the_same_and_changes_nearly_always() {
    for (seeds, words) in [(REQUESTS, REQUEST_WORDS), (ANSWERS, ANSWER_WORDS)] {
        let mut changed = 0;
        for case in 0..1000 {
            let seed = bytes(seeds[case as usize % seeds.len()]);
            let mut random = Random::of_case(7, case);
            let first = mutate(&seed, words, seeds, &mut random);
            let again = mutate(&seed, words, seeds, &mut Random::of_case(7, case));
            assert_eq!(first, again);
            assert!(first.len() <= MESSAGE_BYTES_MAX);
            changed += u32::from(first != seed);
        }
        assert!(changed > 900, "{changed} of 1000");
    }
}

#[test]
fn empty_messages_are_no_trouble() {
    for case in 0..1000 {
        mutate(b"", REQUEST_WORDS, REQUESTS, &mut Random::of_case(1, case));
    }
}

//! Thousands of lanes, each in the world of its seed. `cargo xtask simulate --seed N` shows one.

use turnpike_simulate::{Bench, Fault, Options, Seeds, run_all};

/// The number of seeds in one run of the tests.
const SEEDS: u64 = 10_000;

/// The number of seeds within which a fault must be detected.
const FAULT_SEEDS_MAX: u64 = 2_000;

/// The number of seeds that are run twice, to check that they are reproducible.
const REPEATED_SEEDS: u64 = 200;

#[test]
fn every_seed_keeps_every_invariant() {
    let seeds = Seeds {
        count: SEEDS,
        ..Seeds::default()
    };
    let summary = run_all(&seeds).expect("the machine has room for a lane");
    println!("{summary}");
    assert!(summary.failed.is_empty(), "{summary}");
    assert_eq!(summary.seeds, SEEDS);
    // Otherwise the checks would be empty.
    assert!(summary.answered > 3 * SEEDS, "{summary}");
}

fn is_found(fault: Fault) {
    let seeds = Seeds {
        count: FAULT_SEEDS_MAX,
        fault: Some(fault),
        ..Seeds::default()
    };
    let summary = run_all(&seeds).expect("the machine has room for a lane");
    let found = summary.failed.first();
    println!("{fault:?}: {found:?}");
    assert!(found.is_some(), "{fault:?} was not found: {summary}");
}

#[test]
fn a_lost_wake_up_is_detected() {
    is_found(Fault::LostWakeUp);
}

#[test]
fn an_answer_sent_twice_is_detected() {
    is_found(Fault::AnswerTwice);
}

#[test]
fn a_buffer_that_is_not_returned_is_detected() {
    is_found(Fault::BufferKept);
}

#[test]
fn a_sender_that_gets_no_turn_is_detected() {
    is_found(Fault::SenderNotWoken);
}

#[test]
fn an_end_that_is_not_relayed_is_detected() {
    is_found(Fault::EndNotRelayed);
}

#[test]
fn a_datagram_that_is_not_forwarded_is_detected() {
    is_found(Fault::ForwardLost);
}

#[test]
fn a_flow_that_is_not_forgotten_is_detected() {
    is_found(Fault::FlowKept);
}

#[test]
fn a_packet_that_is_not_steered_to_its_lane_is_detected() {
    is_found(Fault::PlaceMisread);
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let folder = std::env::temp_dir().join(format!("turnpike-simulate-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder can be made");
    let bench = Bench::new(&folder).expect("the machine has room for a lane");
    let options = Options {
        is_traced: true,
        ..Options::default()
    };
    for seed in 1..=REPEATED_SEEDS {
        let run = || bench.run(seed, options).expect("the seed is run").trace;
        let (first, second) = (run(), run());
        // The last lines are the error log, with the machine's time.
        let length = first.len() - 1;
        for (first, second) in first[..length].iter().zip(&second) {
            assert_eq!(first, second, "seed {seed}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

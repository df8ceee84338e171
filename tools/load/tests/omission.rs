//! Coordinated omission: a server that freezes for a tenth of the time.
//!
//! The open loop must report the percentiles the intended schedule had; the closed loop asks
//! little while nothing is answered, and so reports next to nothing of the freeze.

#![allow(clippy::unwrap_used)]

mod peers;

use std::time::Duration;

use peers::{Peer, Script, load_json};

const PERIOD: Duration = Duration::from_millis(1000);
const FROZEN: Duration = Duration::from_millis(100);
const RATE: f64 = 500.0;
const RUN_S: f64 = 4.0;
/// What the report may have less than the schedule: the histogram's own step.
const LEAST: f64 = 0.95;
/// What it may have more. Other work on the machine delays requests for real, and the report then
/// rightly says so; a quiet machine stays below 1.05.
const MOST: f64 = 1.5;
/// A right generator needs one quiet run; a wrong one gets none right in any number.
const RUNS_MAX: usize = 12;

/// The p99 of a schedule of which each request that falls into a freeze waits for its end, with
/// answers that take no time otherwise; microseconds.
fn intended_p99_us() -> f64 {
    let count = (RATE * RUN_S) as usize;
    let mut waits: Vec<f64> = (0..count)
        .map(|index| {
            let phase_s = (index as f64 / RATE) % PERIOD.as_secs_f64();
            (FROZEN.as_secs_f64() - phase_s).max(0.0)
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    waits[count * 99 / 100 - 1] * 1e6
}

#[test]
fn the_open_loop_reports_the_freeze_and_the_closed_loop_does_not() {
    let freeze = || {
        Peer::start(Script::Freeze {
            period: PERIOD,
            frozen: FROZEN,
        })
    };
    let expected = intended_p99_us();
    let mut open = 0.0;
    for _ in 0..RUNS_MAX {
        let peer = freeze();
        let line = format!("-t 1 -c 64 --rate {RATE} -d {RUN_S} {}", peer.url());
        let (report, status) = load_json(&line);
        assert_eq!(status, 0, "{report:#}");
        assert_eq!(report["requests"]["answered"], (RATE * RUN_S) as u64);
        open = report["latency_us"]["p99"].as_f64().unwrap();
        assert!(
            open > LEAST * expected,
            "open loop {open} us, intended {expected} us"
        );
        if open < MOST * expected {
            break;
        }
    }
    assert!(
        open < MOST * expected,
        "open loop {open} us, intended {expected} us"
    );

    let peer = freeze();
    let (report, _) = load_json(&format!("-t 1 -c 1 -d {RUN_S} {}", peer.url()));
    let closed = report["latency_us"]["p99"].as_f64().unwrap();
    println!("p99: intended {expected:.0} us, open loop {open:.0} us, closed loop {closed:.0} us");
    assert!(
        closed < expected / 2.0,
        "closed loop {closed} us, intended {expected} us"
    );
}

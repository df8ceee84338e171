#![allow(clippy::unwrap_used)]

use super::*;

/// A bench whose runs a function of the levels gives.
struct Imagined<F: Fn(Levels) -> Run> {
    run: F,
    count: usize,
}

impl<F: Fn(Levels) -> Run> Bench for Imagined<F> {
    fn run(&mut self, levels: Levels) -> Result<Run, String> {
        self.count += 1;
        let mut run = (self.run)(levels);
        // One percent of noise that returns every five runs.
        run.connections_per_s *= 1.0 + (self.count % 5) as f64 / 500.0;
        Ok(run)
    }
}

const EFFORT: Effort = Effort {
    pairs: 4,
    p99_factor_max: 3.0,
};

fn climbed(run: impl Fn(Levels) -> Run) -> Climbed {
    climb(&mut Imagined { run, count: 0 }, Levels::default(), EFFORT).unwrap()
}

fn rate(connections_per_s: f64) -> Run {
    Run {
        connections_per_s,
        p99_us: 100.0,
        answered: 1000,
        ..Run::default()
    }
}

#[test]
fn what_pays_is_kept_and_the_rest_is_undone() {
    let climbed = climbed(|levels| {
        let workers = [1.0, 1.6, 1.3][levels.level(Knob::Workers)];
        let log = [1.0, 1.1, 1.3][levels.level(Knob::AccessLog)];
        let mutex = [1.0, 0.8, 0.7][levels.level(Knob::AcceptMutex)];
        rate(10_000.0 * workers * log * mutex)
    });
    let levels = Knob::ALL.map(|knob| climbed.levels.level(knob));
    assert_eq!(levels, [1, 2, 0, 0, 0, 0, 0]);
    let verdict = |words: &str| {
        let found = climbed
            .tried
            .iter()
            .find(|tried| tried.text.starts_with(words));
        found.unwrap().verdict
    };
    assert_eq!(verdict("one worker, on another"), Verdict::Kept);
    assert_eq!(verdict("a worker for each"), Verdict::Worse);
    assert_eq!(verdict("accept_mutex off"), Verdict::Worse);
    assert_eq!(verdict("tcp_syncookies"), Verdict::NoDifference);
}

#[test]
fn a_queue_that_overflows_is_mended_first_with_both_knobs() {
    let climbed = climbed(|levels| {
        let is_long = levels.level(Knob::Backlog) + levels.level(Knob::Somaxconn) == 2;
        Run {
            overflows: if is_long { 0 } else { 50 },
            ..rate(if is_long { 9000.0 } else { 1000.0 })
        }
    });
    assert_eq!(climbed.tried[0].text, "backlog 4096, somaxconn 4096");
    assert_eq!(climbed.tried[0].verdict, Verdict::Kept);
    assert!(climbed.cause.contains("50 times"));
}

/// Makes a run worse.
type Spoil = fn(&mut Run);

#[test]
fn errors_and_latency_undo_a_faster_step() {
    let cases: [(Spoil, Verdict); 2] = [
        (|run| run.errors = 100, Verdict::Errors),
        (|run| run.p99_us = 400.0, Verdict::Latency),
    ];
    for (spoil, expected) in cases {
        let climbed = climbed(|levels| {
            let is_cached = levels.level(Knob::OpenFileCache) == 1;
            let mut run = rate(if is_cached { 2000.0 } else { 1000.0 });
            if is_cached {
                spoil(&mut run);
            }
            run
        });
        let mut tried = climbed.tried.iter();
        let tried = tried
            .find(|tried| tried.text.starts_with("open_file_cache"))
            .unwrap();
        assert_eq!(tried.verdict, expected);
        assert_eq!(climbed.levels.level(Knob::OpenFileCache), 0);
    }
}

#[test]
fn a_bench_that_fails_ends_the_climb() {
    struct Broken;
    impl Bench for Broken {
        fn run(&mut self, _levels: Levels) -> Result<Run, String> {
            Err("interrupted".to_owned())
        }
    }
    let error = climb(&mut Broken, Levels::default(), EFFORT).unwrap_err();
    assert_eq!(error, "interrupted");
}

#[test]
fn a_recorded_climb_is_decided_as_it_was() {
    let text = include_str!("../../../climbs/two-cpus-busy.json");
    let mut recorded = crate::climb::record::of_text(text).unwrap();
    let climbed = climb(&mut recorded, Levels::default(), EFFORT).unwrap();
    let kept = climbed
        .tried
        .iter()
        .filter(|tried| tried.verdict == Verdict::Kept);
    let kept: Vec<&str> = kept.map(|tried| tried.text.as_str()).collect();
    let expected = [
        "backlog 4096, somaxconn 4096",
        "a worker for each CPU",
        "accept_mutex off",
    ];
    assert_eq!(kept, expected);
    assert!(crate::climb::table::text(&climbed, 80).contains("3 of 9 steps kept"));
}

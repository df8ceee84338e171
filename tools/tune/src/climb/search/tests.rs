#![allow(clippy::unwrap_used)]

use super::*;

/// A bench whose runs a function of the levels gives.
struct Imagined<F: Fn(Levels) -> Run> {
    run: F,
    count: usize,
}

impl<F: Fn(Levels) -> Run> Bench for Imagined<F> {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        self.count += 1;
        let mut run = (self.run)(levels);
        // One percent of noise that returns every five runs.
        run.connections_per_s *= 1.0 + (self.count % 5) as f64 / 500.0;
        Ok(run)
    }
}

const EFFORT: Effort = Effort {
    pairs: 4,
    pairs_min: 0,
    pairs_max: 8,
    pairs_without_gain_max: 16,
    early_factor: 3.29 / 1.96,
    p99_factor_max: 3.0,
    has_all_knobs: false,
};

fn climbed(run: impl Fn(Levels) -> Run) -> Climbed {
    let mut bench = Imagined { run, count: 0 };
    climb(&mut bench, Levels::default(), EFFORT, |_| {}).unwrap()
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
    assert_eq!(levels, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
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
    assert!(climbed.cause == Cause::Queue(50));
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
        fn run(&mut self, _levels: Levels) -> Result<Run, Failure> {
            Err(Failure::Climb("interrupted".to_owned()))
        }
    }
    let error = climb(&mut Broken, Levels::default(), EFFORT, |_| {}).unwrap_err();
    assert_eq!(error, Failure::Climb("interrupted".to_owned()));
}

/// A server with clients: workers pay, a log's buffer is far worse, and time is over with the third
/// group that is tried.
struct Bounded {
    runs: usize,
    heard: Vec<(Verdict, usize)>,
}

impl Bench for Bounded {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        self.runs += 1;
        if levels.level(Knob::AccessLog) == 1 {
            return Err(Failure::Worse("given up".to_owned()));
        }
        if levels.level(Knob::OpenFileCache) == 1 {
            return Err(Failure::Over("its time is over".to_owned()));
        }
        let workers = [1000.0, 1500.0, 1500.0][levels.level(Knob::Workers)];
        Ok(rate(workers + (self.runs % 5) as f64))
    }

    fn left_out(&self, _now: Levels, levels: Levels) -> Option<String> {
        let is_off = levels.level(Knob::AccessLog) == 2;
        is_off.then(|| "lines would be lost".to_owned())
    }

    fn judged(&mut self, verdict: Verdict, now: Levels) {
        self.heard.push((verdict, now.level(Knob::Workers)));
    }
}

#[test]
fn a_climb_with_a_bound_ends_with_what_it_has() {
    let mut bench = Bounded {
        runs: 0,
        heard: Vec::new(),
    };
    let climbed = climb(&mut bench, Levels::default(), EFFORT, |_| {}).unwrap();
    assert_eq!(climbed.over.as_deref(), Some("its time is over"));
    assert_eq!(climbed.found(), [Knob::Workers]);
    let tried = climbed.tried.iter();
    let tried: Vec<_> = tried
        .map(|tried| (tried.verdict, tried.obstacle.as_str()))
        .collect();
    let undecided = "it was not decided when the climb ended";
    let expected = [
        (Verdict::Kept, ""),
        (Verdict::NoDifference, ""),
        (Verdict::Worse, "given up"),
        (Verdict::WithoutEffect, "lines would be lost"),
        (Verdict::NoDifference, undecided),
    ];
    assert_eq!(tried, expected);
    // The bench hears of each verdict, and which levels stay.
    let heard = expected.map(|(verdict, _)| (verdict, 1));
    assert_eq!(bench.heard, heard[..4]);
}

#[test]
fn levels_that_are_not_possible_are_left_out_and_the_rest_goes_on() {
    struct NoReuseport(usize);
    impl Bench for NoReuseport {
        fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
            self.0 += 1;
            match levels.level(Knob::AcceptMutex) {
                2 => Err(Failure::Levels("no such listen parameter".to_owned())),
                _ => Ok(rate([1000.0, 1010.0, 990.0][self.0 % 3])),
            }
        }
    }
    let climbed = climb(&mut NoReuseport(0), Levels::default(), EFFORT, |_| {}).unwrap();
    let tried = climbed.tried.iter().find(|tried| tried.text == "reuseport");
    let tried = tried.unwrap();
    assert_eq!(tried.verdict, Verdict::Impossible);
    assert_eq!(tried.obstacle, "no such listen parameter");
    let last = climbed.tried.last().unwrap();
    assert_ne!(last.verdict, Verdict::Impossible);
}

#[test]
fn a_large_difference_is_decided_early_and_a_small_one_late() {
    const NOISE: [f64; 7] = [1.0, 1.05, 0.96, 1.02, 0.97, 1.04, 0.99];
    let count = std::cell::Cell::new(0);
    let climbed = climbed(|levels| {
        count.set(count.get() + 1);
        let log = [1.0, 1.0, 2.0][levels.level(Knob::AccessLog)];
        let cache = [1.0, 1.006][levels.level(Knob::OpenFileCache)];
        rate(1000.0 * log * cache * NOISE[count.get() % NOISE.len()])
    });
    let pairs = |words: &str| {
        let mut tried = climbed.tried.iter();
        tried.find(|tried| tried.text == words).unwrap().pairs
    };
    assert_eq!(pairs("access log off"), EFFORT.pairs);
    assert_eq!(pairs("open_file_cache max=1000"), EFFORT.pairs_max);
}

#[test]
fn a_step_without_a_gain_is_given_up_and_one_with_a_small_gain_is_not() {
    const NOISE: [f64; 7] = [1.0, 1.05, 0.96, 1.02, 0.97, 1.04, 0.99];
    let effort = Effort {
        pairs_max: 48,
        ..EFFORT
    };
    // What the cache multiplies the rate by, and the pairs that it takes to decide.
    for (gain, expected) in [(1.0, 16), (0.998, 16), (1.015, 48)] {
        let count = std::cell::Cell::new(0);
        let run = |levels: Levels| {
            count.set(count.get() + 1);
            let cache = [1.0, gain][levels.level(Knob::OpenFileCache)];
            rate(1000.0 * cache * NOISE[count.get() % NOISE.len()])
        };
        let mut bench = Imagined { run, count: 0 };
        let climbed = climb(&mut bench, Levels::default(), effort, |_| {}).unwrap();
        let mut tried = climbed.tried.iter();
        let cache = tried.find(|tried| tried.text == "open_file_cache max=1000");
        assert_eq!(cache.unwrap().pairs, expected, "{gain}");
    }
}

/// Another load of the machine takes turns with the runs: in four pairs for the step, in the next
/// four against it.
#[test]
fn four_pairs_that_agree_by_chance_decide_nothing() {
    const CASES: &[(usize, bool)] = &[(0, true), (8, false)];
    for (pairs_min, expected) in CASES.iter().copied() {
        let effort = Effort {
            pairs_min,
            pairs_max: 16,
            ..EFFORT
        };
        let count = std::cell::Cell::new(0);
        let run = |levels: Levels| {
            let is_cached = levels.level(Knob::OpenFileCache) == 1;
            let others = levels.with(Knob::OpenFileCache, 0) == Levels::default();
            if is_cached && others {
                count.set(count.get() + 1);
            }
            rate(match (is_cached, count.get()) {
                (true, 1..=4) => 1200.0,
                (true, 5..=8) => 1000.0 / 1.2,
                _ => 1000.0,
            })
        };
        let mut bench = Imagined { run, count: 0 };
        let climbed = climb(&mut bench, Levels::default(), effort, |_| {}).unwrap();
        let is_found = climbed.found().contains(&Knob::OpenFileCache);
        assert_eq!(is_found, expected, "{pairs_min}");
    }
}

/// A short queue is answered by cookies where they are on; a long one is not.
#[test]
fn cookies_are_tried_while_they_are_sent() {
    const CASES: &[(f64, &[&str], usize)] = &[
        // The rate without cookies, the first steps, the end's level of the knob
        (
            1.3,
            &["tcp_syncookies 0", "backlog 4096, somaxconn 4096"],
            1,
        ),
        (
            0.7,
            &["tcp_syncookies 0", "backlog 4096, somaxconn 4096"],
            0,
        ),
    ];
    let bench = |gain: f64, cookies: u64| {
        climbed(move |levels| {
            let is_long = levels.level(Knob::Backlog) + levels.level(Knob::Somaxconn) == 2;
            let has_cookies = levels.level(Knob::SynCookies) == 0;
            let is_sent = !is_long && has_cookies;
            let queue = if is_long { 3.0 } else { 1.0 };
            let without = if is_long || has_cookies { 1.0 } else { gain };
            Run {
                overflows: if is_long { 0 } else { 50 },
                cookies: Some(if is_sent { cookies } else { 0 }),
                ..rate(1000.0 * queue * without)
            }
        })
    };
    for (gain, first, level) in CASES.iter().copied() {
        let climbed = bench(gain, 30);
        let texts = climbed.tried.iter().map(|tried| tried.text.as_str());
        assert_eq!(texts.take(2).collect::<Vec<_>>(), first);
        assert_eq!(climbed.cause, Cause::Cookies(30));
        assert_eq!(climbed.levels.level(Knob::SynCookies), level, "{gain}");
    }
    let climbed = bench(1.3, 0);
    let mut tried = climbed.tried.iter();
    let cookies = tried.find(|tried| tried.knobs == [Knob::SynCookies]);
    let cookies = cookies.unwrap();
    assert_eq!(cookies.verdict, Verdict::WithoutEffect);
    assert_eq!(
        (cookies.pairs, cookies.obstacle.as_str()),
        (0, "no SYN cookie was sent")
    );
    assert_eq!(climbed.levels.level(Knob::SynCookies), 0);
}

/// Latency of a start that dropped handshakes is not compared: those who waited are not in it.
#[test]
fn latency_is_compared_only_with_runs_that_dropped_nobody() {
    let climbed = climbed(|levels| {
        let is_long = levels.level(Knob::Backlog) == 1;
        Run {
            overflows: if is_long { 0 } else { 9 },
            p99_us: if is_long { 900.0 } else { 100.0 },
            ..rate(if is_long { 2000.0 } else { 1000.0 })
        }
    });
    assert_eq!(climbed.tried[0].verdict, Verdict::Kept);
}

/// A rate that the client limits says nothing of the server; its CPU time does.
#[test]
fn a_step_that_costs_less_cpu_time_stays_though_the_rate_is_the_same() {
    let cases = [
        // CPU time with the cache and without it, its p99, the verdict
        (30.0, 40.0, 100.0, Verdict::Cheaper),
        (40.0, 40.0, 100.0, Verdict::NoDifference),
        (50.0, 40.0, 100.0, Verdict::NoDifference),
        (30.0, 40.0, 900.0, Verdict::Latency),
        (30.0, 0.0, 100.0, Verdict::NoDifference),
    ];
    for (with, without, p99_us, expected) in cases {
        let climbed = climbed(|levels| match levels.level(Knob::OpenFileCache) {
            0 => Run {
                cpu_us: without,
                ..rate(1000.0)
            },
            _ => Run {
                cpu_us: with,
                p99_us,
                ..rate(1000.0)
            },
        });
        let text = "open_file_cache max=1000";
        let tried = climbed.tried.iter().find(|tried| tried.text == text);
        assert_eq!(
            tried.unwrap().verdict,
            expected,
            "{with} {without} {p99_us}"
        );
    }
}

/// The load generator is the limit: what a cache costs in rate may be its own loss.
#[test]
fn a_small_loss_of_a_limited_client_does_not_undo_a_cheaper_step() {
    let cases = [
        // Rate, the server's CPU time and that of both with the cache, the limit; the verdict
        (0.95, 36.0, 80.0, true, Verdict::Cheaper),
        (0.95, 36.0, 80.0, false, Verdict::Worse),
        (0.85, 36.0, 80.0, true, Verdict::Worse),
        (0.95, 40.0, 80.0, true, Verdict::Worse),
        (0.95, 36.0, 90.0, true, Verdict::Worse),
        (1.0, 36.0, 80.0, false, Verdict::Cheaper),
        (1.0, 36.0, 90.0, false, Verdict::NoDifference),
    ];
    for (factor, server_us, cpu_us, client_limited, expected) in cases {
        let climbed = climbed(|levels| match levels.level(Knob::OpenFileCache) {
            0 => Run {
                cpu_us: 80.0,
                server_us: 40.0,
                client_limited,
                ..rate(1000.0)
            },
            _ => Run {
                cpu_us,
                server_us,
                client_limited,
                ..rate(1000.0 * factor)
            },
        });
        let text = "open_file_cache max=1000";
        let tried = climbed.tried.iter().find(|tried| tried.text == text);
        assert_eq!(tried.unwrap().verdict, expected, "{factor} {server_us}");
    }
}

/// Others make every third run slow. Those pairs are run again, as long as the bound allows.
#[test]
fn pairs_that_others_disturbed_are_run_again() {
    let count = std::cell::Cell::new(0);
    let climbed = climbed(|levels| {
        count.set(count.get() + 1);
        let is_disturbed = count.get() % 3 == 0;
        let log = [1.0, 1.0, 1.3][levels.level(Knob::AccessLog)];
        Run {
            others_share: if is_disturbed { 0.4 } else { 0.0 },
            ..rate(1000.0 * log * if is_disturbed { 0.5 } else { 1.0 })
        }
    });
    let tried = climbed
        .tried
        .iter()
        .find(|tried| tried.text == "access log off");
    let tried = tried.unwrap();
    assert_eq!(tried.verdict, Verdict::Kept);
    assert!((tried.ratio - 1.3).abs() < 0.02, "{tried:?}");

    // A machine that is always busy ends its climb all the same.
    let busy = self::climbed(|_| Run {
        others_share: 0.5,
        ..rate(1000.0)
    });
    assert_eq!(busy.levels, Levels::default());
}

/// Fewer workers accepted too slowly for the queue to overflow; more do not.
#[test]
fn what_binds_later_decides_what_is_tried_next() {
    let climbed = climbed(|levels| {
        let is_moved = levels.level(Knob::Workers) == 1;
        let is_long = levels.level(Knob::Backlog) + levels.level(Knob::Somaxconn) == 2;
        Run {
            overflows: if is_moved && !is_long { 30 } else { 0 },
            idle_share: if is_moved { 0.0 } else { 0.6 },
            ..rate(if is_moved { 2000.0 } else { 1000.0 } * if is_long { 1.5 } else { 1.0 })
        }
    });
    let causes: Vec<(&str, Cause)> = climbed
        .tried
        .iter()
        .take(4)
        .map(|tried| (tried.text.as_str(), tried.cause))
        .collect();
    let expected = [
        ("one worker, on another CPU", Cause::Idle(0.6)),
        ("a worker for each CPU", Cause::Idle(0.6)),
        ("backlog 4096, somaxconn 4096", Cause::Queue(30)),
        ("access log with a buffer of 64 KB", Cause::Cpu),
    ];
    assert_eq!(causes, expected);
}

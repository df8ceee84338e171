use turnpike_lab::bench::Interval;

use super::*;
use crate::climb::cause::Cause;
use crate::climb::knobs::Levels;
use crate::climb::search::Tried;

const fn ratio(mean: f64, low: f64, high: f64) -> Ratio {
    Ratio {
        mean,
        bounds: Interval { low, high },
    }
}

/// A climb that has found the first so many of the seven settings.
fn climbed(found: usize) -> Climbed {
    let knobs = Knob::SEVEN.into_iter().take(found);
    Climbed {
        cause: Cause::Cpu,
        start_rate: 1000.0,
        tried: Vec::new(),
        levels: knobs.fold(Levels::default(), |levels, knob| levels.with(knob, 1)),
        over: None,
    }
}

/// The end of a climb beside the best.
fn end(rate: Ratio, cpu: Option<Ratio>, client_limited: bool, verdict: Verdict) -> Tried {
    Tried {
        text: String::new(),
        knobs: Vec::new(),
        pairs: 48,
        obstacle: String::new(),
        cause: Cause::Cpu,
        last: None,
        rate: 1000.0,
        ratio: rate.mean,
        bounds: Some(rate.bounds),
        cpu,
        verdict,
        client_limited,
    }
}

fn reached(found: usize, end: Option<Tried>) -> Reached {
    let climbed = climbed(found);
    let levels = match end {
        None => climbed.levels,
        Some(_) => climbed.levels.with(Knob::AccessLog, 2),
    };
    let optimum = Optimum {
        levels,
        combinations: 432,
        end,
    };
    Reached::of("nginx", &climbed, &optimum)
}

#[test]
fn the_interval_reaches_the_goal_or_misses_it() {
    const NEAR: Ratio = ratio(0.93, 0.90, 0.951);
    const FAR: Ratio = ratio(0.93, 0.91, 0.949);
    // It looks like 0.950 in a table, and is missed.
    const ROUNDED: Ratio = ratio(0.93, 0.91, 0.949_9);
    let no_difference = Verdict::NoDifference;
    let cases = [
        (5, None, true),
        (4, None, false),
        (5, Some(end(NEAR, None, false, no_difference)), true),
        (4, Some(end(NEAR, None, false, no_difference)), false),
        (7, Some(end(FAR, None, false, Verdict::Worse)), false),
        (7, Some(end(ROUNDED, None, false, Verdict::Worse)), false),
        (5, Some(end(NEAR, None, false, Verdict::Errors)), false),
        // Where the client is the limit, the CPU time has to be near too.
        (5, Some(end(NEAR, Some(FAR), false, no_difference)), true),
        (5, Some(end(NEAR, Some(FAR), true, no_difference)), false),
        (5, Some(end(NEAR, Some(NEAR), true, no_difference)), true),
        (5, Some(end(NEAR, None, true, no_difference)), false),
    ];
    for (found, end, expected) in cases {
        let said = format!("{found} {end:?}");
        let reached = reached(found, end);
        assert_eq!(reached.is_reached(), expected, "{said}");
        let words = if expected {
            "The goals are reached.\n"
        } else {
            "The goals are missed.\n"
        };
        assert!(reached.text(80).ends_with(words), "{said}");
    }
}

#[test]
fn an_end_without_a_figure_is_not_near() {
    let mut none = end(ratio(1.0, 1.0, 1.0), None, false, Verdict::Impossible);
    none.bounds = None;
    let reached = reached(7, Some(none));
    assert!(!reached.is_reached());
    assert!(reached.text(80).contains("no rate beside the best of 432"));
}

#[test]
fn people_and_programs_read_the_same() {
    let rate = ratio(0.972_6, 0.94, 1.006);
    let cpu = Some(ratio(1.02, 0.98, 1.05));
    let reached = reached(5, Some(end(rate, cpu, true, Verdict::NoDifference)));
    let expected = "
The goals:

  5 of 7 bad settings found (not open_file_cache, tcp_syncookies), goal at least
  5: met
  rate beside the best of 432 combinations: x 0.973 [0.940, 1.006]; the client
  was the limit, so CPU time counts too; by CPU time x 1.020 [0.980, 1.050], the
  interval has to reach 0.95: met

The goals are reached.
";
    assert_eq!(reached.text(80), expected);
    let json: serde_json::Value = serde_json::from_str(&reached.json()).unwrap_or_default();
    let cases = [
        ("/schema", serde_json::json!("turnpike-tune-goals/1")),
        ("/server", serde_json::json!("nginx")),
        ("/found/0", serde_json::json!("workers")),
        ("/found/4", serde_json::json!("accept_mutex")),
        ("/not_found/1", serde_json::json!("tcp_syncookies")),
        ("/found_min", serde_json::json!(5)),
        ("/best/1", serde_json::json!("access log off")),
        ("/differing/0", serde_json::json!("access_log")),
        ("/rate/ratio", serde_json::json!(0.973)),
        ("/rate/high", serde_json::json!(1.006)),
        ("/cpu/low", serde_json::json!(0.98)),
        ("/client_limited", serde_json::json!(true)),
        ("/near_best", serde_json::json!(true)),
        ("/reached", serde_json::json!(true)),
    ];
    for (pointer, value) in cases {
        assert_eq!(json.pointer(pointer), Some(&value), "{pointer}: {json}");
    }
}

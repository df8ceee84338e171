//! The table is whole, and the text is what Prometheus reads.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use turnpike_lane::counters::Histogram;

use super::{AllCounters, COUNTERS, CloseReason, OWN_ROWS};
use turnpike_plan::metrics::*;

static ODD: Row = Row {
    name: "odd",
    kind: Kind::Gauge,
    unit: "things",
    labels: &["name"],
    help: "A back\\slash.",
};

#[test]
fn the_table_is_whole() {
    let rows = COUNTERS.iter().map(|entry| &entry.row).chain(OWN_ROWS);
    let mut names = HashSet::new();
    for row in rows {
        assert!(names.insert(row.name), "{} twice", row.name);
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            row.name.chars().all(is_plain) && row.unit.chars().all(is_plain),
            "{row:?}"
        );
        assert!(row.help.ends_with('.') && row.help.len() > 10, "{row:?}");
    }
    let reasons: HashSet<&str> = CloseReason::ALL
        .iter()
        .map(|reason| reason.name())
        .collect();
    assert_eq!(reasons.len(), CloseReason::ALL.len());
    for (index, reason) in CloseReason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, index);
    }
}

#[test]
fn samples_of_a_row_stand_together_and_are_escaped() {
    let mut samples = Samples::default();
    samples.number(&ODD, &["a\"b\n\\"], 7);
    let name = "accept_to_first_byte_seconds";
    let times = OWN_ROWS.into_iter().find(|row| row.name == name).unwrap();
    samples.distribution(times, &["0"], {
        let histogram = Histogram::default();
        histogram.record(20_000);
        histogram.record(u64::from(u32::MAX));
        histogram.read()
    });
    samples.real(&ODD, &["c"], 0.5);
    let mut text = String::new();
    write_prometheus(&samples, &mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "# HELP turnpike_odd A back\\\\slash.",
            "# TYPE turnpike_odd gauge",
            "turnpike_odd{name=\"a\\\"b\\n\\\\\"} 7",
            "turnpike_odd{name=\"c\"} 0.5",
            "# HELP turnpike_accept_to_first_byte_seconds Time from the round in which a \
             connection was accepted to the first byte of its first answer.",
        ]
    );
    let name = "turnpike_accept_to_first_byte_seconds";
    for line in [
        format!("{name}_bucket{{lane=\"0\",le=\"0.00001\"}} 0"),
        format!("{name}_bucket{{lane=\"0\",le=\"0.000025\"}} 1"),
        format!("{name}_bucket{{lane=\"0\",le=\"+Inf\"}} 2"),
        format!("{name}_sum{{lane=\"0\"}} 4.294987295"),
        format!("{name}_count{{lane=\"0\"}} 2"),
    ] {
        assert!(lines.contains(&line.as_str()), "{line} is not in {text}");
    }
}

#[test]
fn the_servers_own_metrics_are_read() {
    let counters = AllCounters::default();
    let lane = counters.add_lane(0);
    lane.answered(200, 100, 300);
    lane.answered(999, 1, 1);
    lane.answered(u16::MAX, 0, 0);
    lane.active.add();
    lane.was_closed(CloseReason::Answered);
    // A lane of the same number that is still finishing: both are one to who looks.
    let finishing = counters.add_lane(0);
    finishing.answered(200, 0, 0);
    let mut samples = Samples::default();
    samples.read(&counters);
    let mut text = String::new();
    write_prometheus(&samples, &mut text).unwrap();
    for line in [
        "turnpike_requests_by_status_total{lane=\"0\",status=\"200\"} 2\n",
        "turnpike_connections_closed_total{lane=\"0\",reason=\"answered\"} 1\n",
        "turnpike_sent_bytes_total{lane=\"0\"} 301\n",
        "turnpike_lanes 1\n",
        "turnpike_reloads_total{outcome=\"failed\"} 0\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

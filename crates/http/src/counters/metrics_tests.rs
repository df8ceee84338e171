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
    write_prometheus(&samples, Format::Prometheus, &mut text).unwrap();
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
fn lanes_are_summed_and_openmetrics_ends_with_its_mark() {
    let counters = AllCounters::default();
    let lanes = [counters.add_lane(0), counters.add_lane(1)];
    for lane in &lanes {
        lane.answered(200, 100, 300);
        lane.request_times.record(20_000);
    }
    let mut samples = Samples::default();
    samples.read(&counters);
    samples.number(&ODD, &["a\"b"], 7);
    let samples = samples.summed_over("lane");
    let mut text = String::new();
    write_prometheus(&samples, Format::OpenMetrics, &mut text).unwrap();
    for line in [
        "# TYPE turnpike_sent_bytes counter\nturnpike_sent_bytes_total 600\n",
        "turnpike_requests_by_status_total{status=\"200\"} 2\n",
        "turnpike_request_seconds_bucket{le=\"0.000025\"} 2\n",
        "turnpike_request_seconds_count 2\n",
        "turnpike_lanes 2\n",
        "turnpike_odd{name=\"a\\\"b\"} 7\n",
        "turnpike_build_info{version=\"0.1.0\",nginx_version=\"",
        "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total ",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    let json = write_json(&samples, 5);
    assert_eq!(
        (&json["unix_ms"], &json["bounds_s"][0]),
        (&5.into(), &1e-5.into())
    );
    let rows = json["metrics"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["name"] == "request_seconds")
        .unwrap();
    assert_eq!(row["samples"][0]["buckets"][1], 2, "{row}");
}

#[test]
fn a_reload_that_failed_is_told_of_until_one_succeeds() {
    let counters = AllCounters::default();
    let success = || {
        let mut samples = Samples::default();
        samples.read(&counters);
        let mut list = samples.list().iter();
        let sample = list
            .find(|sample| sample.row.name == "last_reload_success")
            .unwrap();
        sample.value.clone()
    };
    counters.set_process(|process| process.generation = 1);
    assert_eq!(success(), Value::Number(1));
    counters.set_process(|process| process.reloads_failed = 1);
    assert_eq!(success(), Value::Number(0));
    counters.set_process(|process| process.generation = 2);
    assert_eq!(success(), Value::Number(1));
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
    write_prometheus(&samples, Format::Prometheus, &mut text).unwrap();
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

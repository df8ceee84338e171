//! Tests of counters and histograms.

use super::*;

#[test]
fn a_counter_rises_falls_and_stops_at_zero() {
    let counter = Counter::default();
    counter.add();
    counter.add_many(4);
    counter.sub();
    assert_eq!(counter.value(), 4);
    counter.set(0);
    counter.sub();
    assert_eq!(counter.value(), 0);
}

#[test]
fn times_are_counted_in_the_bucket_of_their_bound() {
    let cases = [
        (0, 0),
        (10_000, 0),
        (10_001, 1),
        (1_000_000, 6),
        (10_000_000_000, 18),
        (10_000_000_001, 19),
        (u64::MAX, 19),
    ];
    for (time_ns, bucket) in cases {
        let histogram = Histogram::default();
        histogram.record(time_ns);
        let read = histogram.read();
        assert_eq!(read.buckets[bucket], 1, "{time_ns}");
        assert_eq!(read.buckets.iter().sum::<u64>(), 1);
        assert_eq!(read.sum_ns, time_ns);
    }
    assert!(BOUNDS_NS.is_sorted());
    let histogram = Histogram::default();
    histogram.record_many(20_000, 3);
    assert_eq!(
        (histogram.read().buckets[1], histogram.read().sum_ns),
        (3, 60_000)
    );
}

#[test]
fn answers_count_by_class_and_time() {
    let counts = AnswerCounts::default();
    for (status, took_ms) in [(200, 0), (204, 3), (502, 700), (999, 1), (0, 1)] {
        counts.add(Answer {
            status,
            request_bytes: 10,
            response_bytes: 100,
            took_ms,
        });
    }
    assert_eq!(counts.by_class(), [0, 2, 0, 0, 1]);
    assert_eq!((counts.request_bytes(), counts.response_bytes()), (50, 500));
    let times = counts.times();
    let at = |bound_ns: u64| BOUNDS_NS.iter().position(|bound| *bound == bound_ns);
    for (bound_ns, count) in [(1_000_000, 3), (5_000_000, 1), (1_000_000_000, 1)] {
        assert_eq!(
            at(bound_ns).map(|at| times.buckets[at]),
            Some(count),
            "{bound_ns}"
        );
    }
    assert_eq!(times.sum_ns, 705_000_000);
}

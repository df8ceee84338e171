//! The table is whole, and the cells of lanes add up.

use std::collections::HashSet;

use super::*;

#[test]
fn the_table_is_whole() {
    let mut names = HashSet::new();
    for (index, metric) in LaneMetric::ALL.iter().enumerate() {
        let row = metric.row();
        assert_eq!(metric.index(), index);
        assert!(names.insert(row.name), "{} twice", row.name);
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            row.name.chars().all(is_plain) && row.unit.chars().all(is_plain),
            "{row:?}"
        );
        assert!(row.help.ends_with('.') && row.help.len() > 10, "{row:?}");
    }
    assert_eq!(LaneMetric::ROWS.len(), LaneMetric::ALL.len());
}

#[test]
fn lanes_count_alone_and_anybody_sums() {
    let (counters, writers) = Counters::<LaneMetric>::new(3);
    std::thread::scope(|scope| {
        for (lane, writer) in writers.into_iter().enumerate() {
            scope.spawn(move || {
                for _ in 0..1000 {
                    writer.increment(LaneMetric::Requests);
                }
                writer.add(LaneMetric::BytesSent, lane as u64);
                writer.set(LaneMetric::ConnectionsActive, 5);
                writer.subtract(LaneMetric::ConnectionsActive, 2);
                assert_eq!(writer.value(LaneMetric::ConnectionsActive), 3);
            });
        }
    });
    let reader = counters.clone();
    assert_eq!(reader.total(LaneMetric::Requests), 3000);
    assert_eq!(reader.total(LaneMetric::ConnectionsActive), 9);
    let sent: Vec<_> = (0..4)
        .map(|lane| reader.lane(lane, LaneMetric::BytesSent))
        .collect();
    assert_eq!(sent, [0, 1, 2, 0]);
    let total = |name| {
        reader
            .totals()
            .find(|(row, _)| row.name == name)
            .map(|(_, value)| value)
    };
    assert_eq!((total("bytes_sent"), total("panics")), (Some(3), Some(0)));
}

#[test]
fn a_gauge_may_fall_in_another_lane_than_it_rose() {
    let (counters, writers) = Counters::<LaneMetric>::new(2);
    writers[0].add(LaneMetric::ConnectionsParked, 3);
    writers[1].subtract(LaneMetric::ConnectionsParked, 1);
    assert_eq!(counters.total(LaneMetric::ConnectionsParked), 2);
}

#[test]
fn lanes_share_no_cache_line() {
    let (counters, _writers) = Counters::<LaneMetric>::new(2);
    for lane in counters.lanes.iter() {
        assert_eq!(lane.as_ptr() as usize % 128, 0);
    }
}

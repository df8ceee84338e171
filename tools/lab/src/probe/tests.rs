#![allow(clippy::unwrap_used)]

use super::*;

fn times(cpu: usize, [busy_us, idle_us, softirq_us, steal_us]: [u64; 4]) -> CpuTimes {
    CpuTimes {
        cpu,
        busy_us,
        idle_us,
        softirq_us,
        steal_us,
    }
}

#[test]
fn shares_are_of_the_time_between() {
    let before = [times(0, [180, 820, 15, 0]), times(1, [360, 600, 60, 40])];
    let after = [times(0, [240, 860, 25, 0]), times(1, [360, 650, 60, 90])];
    let shares = cores::shares(&before, &after);
    assert!((shares[0].busy - 0.6).abs() < 1e-9, "{shares:?}");
    assert!((shares[0].softirq - 0.1).abs() < 1e-9, "{shares:?}");
    assert!((shares[1].steal - 0.5).abs() < 1e-9, "{shares:?}");
    let figures = cores::figures(&shares);
    let busy = figures["busy_share"].value().unwrap();
    assert!((busy - 0.3).abs() < 1e-9, "{busy}");
}

#[test]
fn no_cpus_are_no_zeros() {
    let figures = cores::figures(&[]);
    assert_eq!(
        figures["steal_share"],
        Figure::Missing("/proc/stat cannot be read".to_owned())
    );
}

#[test]
fn increases_are_computed_and_missing_values_stay_missing() {
    let before = BTreeMap::from([
        ("retransmits", Figure::Value(10.0)),
        ("time_wait", Figure::Value(50.0)),
        ("aborts", Figure::Missing("why".to_owned())),
    ]);
    let mut after = before.clone();
    after.insert("retransmits", Figure::Value(13.0));
    let since = counters::since(&before, &after);
    assert_eq!(since["retransmits"], Figure::Value(3.0));
    assert_eq!(since["time_wait"], Figure::Value(50.0));
    assert_eq!(since["aborts"], Figure::Missing("why".to_owned()));
}

#[test]
fn an_ended_process_gives_reasons_not_zeros() {
    // The largest number that a process can have, and none has.
    let counters = counters::read(4_194_304);
    assert!(
        counters.values().all(|figure| figure.value().is_none()),
        "{counters:?}"
    );
}

#[test]
fn this_process_can_be_looked_at() {
    let watched = Watched {
        server: vec![std::process::id()],
        network: std::process::id(),
        driver: Vec::new(),
    };
    let before = Snapshot::take(&watched);
    let between = before.until(&Snapshot::take(&watched));
    assert!(between.figures.contains_key("foreign_share"));
    assert!(!between.cores.is_empty());
}

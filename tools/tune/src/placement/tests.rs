#![allow(clippy::unwrap_used)]

use super::*;

/// A recorded machine, a placement, and the CPUs of interrupts and workers, the first changes of
/// its first card and how many there are; or why it is not possible.
struct Case {
    machine: &'static str,
    placement: Placement,
    expected: Result<Placed, &'static str>,
}

struct Placed {
    workers: &'static str,
    first: &'static [&'static str],
    last: &'static str,
    count: usize,
}

const TWO_SOCKETS: &str = include_str!("../../machines/two-socket-24-cpus.json");
const SMALL: &str = include_str!("../../machines/small-cloud-vm.json");
const ONE_CPU: &str = include_str!("../../machines/one-cpu.json");
const FOUR_QUEUES: &str = include_str!("../../machines/proxy-out-of-ports.json");
const POD: &str = include_str!("../../machines/pod-with-cpuset.json");

const CASES: &[Case] = &[
    Case {
        machine: TWO_SOCKETS,
        placement: Placement::Thread,
        expected: Ok(Placed {
            workers: "12 13 14 15 16 17 18 19 20 21 22 23",
            first: &[
                "interrupt 60 (eth0-TxRx-0) to CPU 0",
                "interrupt 61 (eth0-TxRx-1) to CPU 1",
            ],
            last: "eth0: rps_cpus of rx-11 = 0",
            count: 24,
        }),
    },
    // As study S3 ended: four whole cores of the card's processor.
    Case {
        machine: TWO_SOCKETS,
        placement: Placement::Core,
        expected: Ok(Placed {
            workers: "4 5 6 7 8 9 10 11 16 17 18 19 20 21 22 23",
            first: &[
                "interrupt 60 (eth0-TxRx-0) to CPU 0",
                "interrupt 61 (eth0-TxRx-1) to CPU 1",
                "interrupt 62 (eth0-TxRx-2) to CPU 2",
                "interrupt 63 (eth0-TxRx-3) to CPU 3",
                "interrupt 64 (eth0-TxRx-4) to CPU 12",
            ],
            last: "eth0: rps_cpus of rx-11 = 0",
            count: 24,
        }),
    },
    Case {
        machine: TWO_SOCKETS,
        placement: Placement::Socket,
        expected: Ok(Placed {
            workers: "6 7 8 9 10 11 18 19 20 21 22 23",
            first: &["interrupt 60 (eth0-TxRx-0) to CPU 0"],
            last: "eth0: rps_cpus of rx-11 = 0",
            count: 24,
        }),
    },
    Case {
        machine: FOUR_QUEUES,
        placement: Placement::Core,
        expected: Ok(Placed {
            workers: "1 2 3",
            first: &[
                "interrupt 24 (virtio0-input.0) to CPU 0",
                "interrupt 26 (virtio0-input.1) to CPU 0",
            ],
            last: "eth0: rps_cpus of rx-3 = 0",
            count: 8,
        }),
    },
    // A card whose interrupts are not known.
    Case {
        machine: SMALL,
        placement: Placement::Core,
        expected: Ok(Placed {
            workers: "1",
            first: &["eth0: rps_cpus of rx-0 = 1"],
            last: "eth0: rps_cpus of rx-0 = 1",
            count: 1,
        }),
    },
    Case {
        machine: SMALL,
        placement: Placement::Thread,
        expected: Err("each core has one thread"),
    },
    Case {
        machine: SMALL,
        placement: Placement::Socket,
        expected: Err("there is one processor only"),
    },
    Case {
        machine: ONE_CPU,
        placement: Placement::Core,
        expected: Err("there is one core only"),
    },
    Case {
        machine: POD,
        placement: Placement::Core,
        expected: Err("no network card is seen here"),
    },
];

#[test]
fn recorded_machines_have_their_placements() {
    for case in CASES {
        let facts: Facts = serde_json::from_str(case.machine).unwrap();
        let planned = plan(&facts, case.placement);
        match (&case.expected, planned) {
            (Err(expected), planned) => assert_eq!(planned.unwrap_err(), *expected),
            (Ok(expected), planned) => {
                let planned = planned.unwrap();
                let workers: Vec<String> = planned.workers.iter().map(usize::to_string).collect();
                assert_eq!(workers.join(" "), expected.workers, "{:?}", case.placement);
                let changes = planned.steps.iter().map(|step| step.change.text());
                let changes: Vec<String> = changes.collect();
                assert_eq!(changes[..expected.first.len()], *expected.first);
                assert_eq!(changes.last().unwrap(), expected.last);
                assert_eq!(changes.len(), expected.count, "{:?}", case.placement);
            }
        }
    }
}

/// Fewer queues than CPUs for them: RPS hands packets on to all of these.
#[test]
fn rps_fills_the_cpus_that_no_queue_interrupts() {
    let mut facts: Facts = serde_json::from_str(TWO_SOCKETS).unwrap();
    facts.interfaces.retain(|card| card.name == "eth0");
    facts.interfaces[0].receive_queues = 2;
    facts.interfaces[0].interrupts = vec![60, 61];
    facts.interrupts.truncate(2);
    let planned = plan(&facts, Placement::Thread).unwrap();
    let changes = planned.steps.iter().map(|step| step.change.text());
    let expected = [
        "interrupt 60 (eth0-TxRx-0) to CPU 0",
        "interrupt 61 (eth0-TxRx-1) to CPU 1",
        "eth0: rps_cpus of rx-0 = fff",
        "eth0: rps_cpus of rx-1 = fff",
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
}

/// CPUs that a control group does not allow are nobody's.
#[test]
fn only_usable_cpus_are_split() {
    let mut facts: Facts = serde_json::from_str(TWO_SOCKETS).unwrap();
    facts.cgroup.cpus = Some(vec![0, 1, 12, 13]);
    let planned = plan(&facts, Placement::Thread).unwrap();
    assert_eq!(planned.workers, [12, 13]);
    facts.cgroup.cpus = Some(vec![0, 1]);
    let error = plan(&facts, Placement::Thread).unwrap_err();
    assert_eq!(error, "each core has one thread");
}

#[test]
fn masks_and_affinities_are_written_as_they_are_read() {
    let cases: [(&[usize], &str); 4] = [
        (&[], "0"),
        (&[0, 3], "9"),
        (&[33, 0], "2,00000001"),
        (&[95], "80000000,00000000,00000000"),
    ];
    for (cpus, expected) in cases {
        assert_eq!(mask(cpus), expected, "{cpus:?}");
    }
    let expected = "worker_processes 2;\nworker_cpu_affinity 0010 1000;\n";
    assert_eq!(lines(&[1, 3]), expected);
}

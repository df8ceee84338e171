#![allow(clippy::unwrap_used)]

use super::*;
use crate::facts::Facts;
use crate::placement::{Placement, split};

const TWO_SOCKETS: &str = include_str!("../../../machines/two-socket-24-cpus.json");
const SMALL: &str = include_str!("../../../machines/small-cloud-vm.json");
const ONE_CPU: &str = include_str!("../../../machines/one-cpu.json");
const POD: &str = include_str!("../../../machines/pod-with-cpuset.json");

/// A recorded machine, a level of the placement, the mask of the CPUs that receive, and the
/// workers' part of the configuration; or why it is not possible.
type Case = (
    &'static str,
    usize,
    Result<(&'static str, &'static str), &'static str>,
);

const CASES: &[Case] = &[
    (
        TWO_SOCKETS,
        1,
        Ok((
            "fff",
            "worker_processes 12;\nworker_cpu_affinity 1000000000000 1",
        )),
    ),
    (
        TWO_SOCKETS,
        2,
        Ok((
            "f00f",
            "worker_processes 16;\nworker_cpu_affinity 10000 100000 1",
        )),
    ),
    (
        TWO_SOCKETS,
        3,
        Ok((
            "3f03f",
            "worker_processes 12;\nworker_cpu_affinity 1000000 10000000",
        )),
    ),
    (SMALL, 1, Err("each core has one thread")),
    (
        SMALL,
        2,
        Ok(("1", "worker_processes 1;\nworker_cpu_affinity 10;\n")),
    ),
    (SMALL, 3, Err("there is one processor only")),
    (ONE_CPU, 2, Err("there is one core only")),
    (
        POD,
        2,
        Ok(("4", "worker_processes 1;\nworker_cpu_affinity 1000;\n")),
    ),
];

#[test]
fn a_placement_on_recorded_machines_puts_packets_and_workers_apart() {
    for (machine, level, expected) in CASES {
        let facts: Facts = serde_json::from_str(machine).unwrap();
        let levels = Levels::default().with(Knob::Placement, *level);
        let split = split(&facts, Placement::ALL[level - 1], None);
        match (split, expected) {
            (Ok(split), Ok((mask, workers))) => {
                let [.., (_, steering)] = levels.interface(&[0], Some(&split));
                assert_eq!(steering, *mask);
                let text = levels.configuration(&place(&[], Some(&split)));
                assert!(text.contains(workers), "{text}");
            }
            (split, expected) => assert_eq!(split.unwrap_err(), expected.unwrap_err()),
        }
    }
}

fn place<'a>(addresses: &'a [String], split: Option<&'a Split>) -> Place<'a> {
    Place {
        folder: ".",
        addresses,
        port: 80,
        client: 0,
        cpus: &[0, 1],
        split,
    }
}

#[test]
fn each_address_has_its_listen() {
    let levels = Levels::default().with(Knob::Deferred, 1);
    let addresses = ["198.18.0.1", "198.18.0.3"].map(ToOwned::to_owned);
    let all = "    listen *:80 backlog=16 deferred;\n";
    let each = "    listen 198.18.0.1:80 backlog=16 deferred;\n    \
                listen 198.18.0.3:80 backlog=16 deferred;\n";
    let unknown = "    # one for each address of the machine\n    \
                   listen *:80 backlog=16 deferred;\n";
    let cases: [(usize, &[String], &str); 4] = [
        (0, &addresses, all),
        (1, &addresses, each),
        (0, &[], all),
        (1, &[], unknown),
    ];
    for (level, addresses, expected) in cases {
        let levels = levels.with(Knob::Addresses, level);
        let text = levels.configuration(&place(addresses, None));
        assert!(
            text.contains(&format!("server {{\n{expected}    root")),
            "{text}"
        );
    }
}

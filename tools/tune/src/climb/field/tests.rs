#![allow(clippy::unwrap_used)]

use turnpike_testkit::{Folder, needs_root};

use super::*;

#[test]
fn a_climb_ends_before_the_machine_has_no_memory_left() {
    let cases = [
        // MemAvailable in kB, the share of time that all work waited for memory, what is said
        (4_000_000, "0.00", None),
        (4_000_000, "10.00", None),
        (4_000_000, "10.01", Some("10.01 % of the time (PSI)")),
        (131_072, "0.00", None),
        (131_071, "0.00", Some("only 127 MB of memory left")),
    ];
    for (available, full, expected) in cases {
        let folder = Folder::create().unwrap();
        let memory = format!("MemTotal: 8000000 kB\nMemAvailable: {available} kB\n");
        folder.write("proc/meminfo", memory).unwrap();
        let waits = format!(
            "some avg10=90.00 avg60=0.00 avg300=0.00 total=1\n\
             full avg10={full} avg60=0.00 avg300=0.00 total=1\n"
        );
        folder.write("proc/pressure/memory", waits).unwrap();
        let why = pressed(&Host::under(folder.path()));
        match (expected, &why) {
            (None, None) => {}
            (Some(words), Some(why)) => assert!(why.ends_with(words), "{why}"),
            _ => panic!("{available} {full}: {why:?}"),
        }
    }
}

/// A container may show neither, and a kernel may have no PSI.
#[test]
fn a_machine_that_tells_nothing_is_not_out_of_memory() {
    let folder = Folder::create().unwrap();
    assert_eq!(pressed(&Host::under(folder.path())), None);
}

/// Why a level of a knob may be impossible, by the beginning of the words.
const REASONS: &[(Knob, usize, &str)] = &[
    (Knob::Placement, 1, "each core has one thread"),
    (Knob::Placement, 2, "there is one core only"),
    (Knob::Placement, 3, "there is one processor only"),
    (
        Knob::BusyPoll,
        1,
        "EPIOCSPARAMS on an epoll instance (kernel 6.9 and later): ",
    ),
    (
        Knob::BusyPoll,
        2,
        "net.core.busy_poll belongs to the whole machine",
    ),
];

#[test]
fn a_server_starts_at_every_level_or_it_is_said_why_not() {
    if needs_root(
        "a_server_starts_at_every_level_or_it_is_said_why_not",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let folder = Folder::create().unwrap();
    let wish = FieldSettings {
        server: Server::of(Path::new("nginx")).unwrap(),
        connections: 1,
        seconds: 0.1,
    };
    let cpus = Host::here().own_cpus();
    let mut field = Field::new(wish, &folder.path().join("field"), cpus).unwrap();
    for knob in Knob::ALL {
        for level in 1..knob.levels().len() {
            let reason = REASONS
                .iter()
                .find(|(of, at, _)| (*of, *at) == (knob, level));
            match (field.start(Levels::default().with(knob, level)), reason) {
                (Ok(mut running), _) => {
                    running.check().unwrap();
                    assert_ne!((knob, level), (Knob::BusyPoll, 2));
                }
                (Err(why), Some((_, _, begin))) => assert!(why.starts_with(begin), "{why}"),
                (Err(why), None) => panic!("{knob:?} {level}: {why}"),
            }
        }
    }
}

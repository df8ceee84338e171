#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use turnpike_lane::log::ErrorLog;
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Origin, Step};

use super::{Asks, Check, CheckOutcome, CheckRules, Question, Watching};
use crate::Address;
use crate::background::BackgroundTask as _;
use crate::connection::Connection;
use crate::{Group, GroupSettings, GroupStates, Peer, PeerSettings, PeerState, Selection};

/// The time limit of a test's waits.
const PATIENCE_MS: u64 = 60_000;

fn group(port: u16) -> Arc<Group> {
    group_of(&[port])
}

fn group_of(ports: &[u16]) -> Arc<Group> {
    let peer = |port: &u16| {
        let address = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)));
        let settings = PeerSettings::default();
        Arc::new(Peer::new("peer", address, settings, PeerState::new(1)))
    };
    let states = Arc::new(GroupStates::default());
    let peers = ports.iter().map(peer).collect();
    Group::new("group", GroupSettings::default(), vec![peers], states)
}

fn rules() -> CheckRules {
    CheckRules {
        interval_ms: 1,
        ..CheckRules::default()
    }
}

fn check() -> Check {
    Check {
        group: Weak::new(),
        number: 0,
        rules: rules(),
        question: Asks::Connection(Arc::new(IsGood {
            timeout_ms: PATIENCE_MS,
        })),
        proxy_header: Vec::new(),
        tls: None,
        connect_timeout_ms: PATIENCE_MS,
        log: ErrorLog::none(),
    }
}

/// Sends an empty line, and expects [`GOOD`] in one piece.
struct IsGood {
    timeout_ms: u64,
}

impl Question for IsGood {
    fn ask<'a>(
        &'a self,
        connection: &'a Connection,
    ) -> Pin<Box<dyn Future<Output = CheckOutcome> + 'a>> {
        Box::pin(async move {
            let mut answer = Vec::new();
            let asked = connection.write_all(b"\r\n\r\n", self.timeout_ms).await;
            let read = connection.read(&mut answer, 100, self.timeout_ms).await;
            let is_good = asked.is_ok() && read.is_ok() && answer == GOOD.as_bytes();
            CheckOutcome {
                found: is_good.then_some(()).ok_or("asking"),
                is_reusable: is_good,
            }
        })
    }
}

fn answers(texts: &[&str]) -> Origin {
    let script = |text: &&str| vec![Step::ReadHead, Step::send(text)];
    Origin::start(texts.iter().map(script).collect())
}

/// Whether the peer is healthy after each of `count` rounds.
fn rounds(check: Check, group: &Arc<Group>, count: usize) -> Vec<bool> {
    let check = Arc::new(check);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (mut watching, mut well) = (Watching::default(), Vec::new());
        for round in 0..count {
            check.ask(group, &mut watching, round == 0);
            while check.hear(&mut watching).await {}
            let is_well = group.peers()[0].state().is_healthy();
            assert_eq!(group.begin(&Selection::default()).next(1).is_ok(), is_well);
            well.push(is_well);
        }
        well
    })
}

const GOOD: &str = "good";
const BAD: &str = "bad";

#[test]
fn a_number_of_results_in_a_row_changes_a_peer() {
    let cases: [(u32, u32, &[&str], &[bool]); 3] = [
        (1, 1, &[GOOD, BAD, GOOD], &[true, false, true]),
        (
            2,
            2,
            &[BAD, GOOD, BAD, BAD, GOOD, BAD, GOOD, GOOD],
            &[true, true, true, false, false, false, false, true],
        ),
        (1, 3, &[BAD, GOOD, GOOD, GOOD], &[false, false, false, true]),
    ];
    for (fails, passes, texts, expected) in cases {
        let origin = answers(texts);
        let check = Check {
            rules: CheckRules {
                fails,
                passes,
                ..rules()
            },
            ..check()
        };
        let found = rounds(check, &group(origin.port()), expected.len());
        assert_eq!(found, expected, "{fails} {passes} {texts:?}");
    }
}

#[test]
fn a_peer_without_an_answer_is_unhealthy() {
    let refused = RefusedPort::new().unwrap();
    assert_eq!(rounds(check(), &group(refused.number()), 1), [false]);
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let impatient = Check {
        question: Asks::Connection(Arc::new(IsGood { timeout_ms: 1 })),
        ..check()
    };
    let port = silent.local_addr().unwrap().port();
    assert_eq!(rounds(impatient, &group(port), 1), [false]);
}

#[test]
fn a_connection_is_reused_while_allowed() {
    let twice = vec![
        Step::ReadHead,
        Step::send(GOOD),
        Step::ReadHead,
        Step::send(GOOD),
    ];
    let once = vec![Step::ReadHead, Step::send(GOOD), Step::ReadToEnd];
    let kept = Check {
        rules: CheckRules {
            keepalive_time_ms: PATIENCE_MS,
            ..rules()
        },
        ..check()
    };
    // The second check uses the first one's connection; the third opens another, since that was
    // closed.
    let origin = Origin::start(vec![twice, once.clone()]);
    let found = rounds(kept, &group(origin.port()), 3);
    assert_eq!((found, origin.received().len()), (vec![true; 3], 2));
    let origin = Origin::start(vec![once]);
    let found = rounds(check(), &group(origin.port()), 3);
    assert_eq!((found, origin.received().len()), (vec![true; 3], 3));
}

#[test]
fn a_hanging_peer_delays_no_other() {
    let hanging = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let origin = answers(&[GOOD, GOOD, BAD]);
    let group = group_of(&[hanging.local_addr().unwrap().port(), origin.port()]);
    // Without a limit the first peer's check never ends.
    let check = Arc::new(Check {
        group: Arc::downgrade(&group),
        question: Asks::Connection(Arc::new(IsGood { timeout_ms: 0 })),
        ..check()
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut tasks = tokio::task::spawn_local(check.run());
        let ill = async {
            while group.peers()[1].state().is_healthy() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let limit = tokio::time::timeout(Duration::from_millis(PATIENCE_MS), ill);
        tokio::select! {
            ill = limit => ill.unwrap(),
            ended = &mut tasks => panic!("{ended:?}"),
        }
        tasks.abort();
    });
}

#[test]
fn mandatory_checks_come_first() {
    let origin = answers(&[GOOD]);
    let group = group(origin.port());
    let patient = || Check {
        rules: CheckRules {
            mandatory: true,
            passes: 2,
            ..rules()
        },
        ..check()
    };
    assert_eq!(rounds(patient(), &group, 2), [false, true]);
    // After a reload a peer is checked again, unless the result persists.
    assert_eq!(rounds(patient(), &group, 2), [false, true]);
    let mut persistent = patient();
    persistent.rules.persistent = true;
    assert_eq!(rounds(persistent, &group, 1), [true]);
}

#[test]
fn a_peer_is_healthy_if_all_checks_pass() {
    let (good, bad) = (answers(&[GOOD]), answers(&[BAD]));
    let group = group(good.port());
    let elsewhere = Check {
        number: 1,
        rules: CheckRules {
            port: Some(bad.port()),
            ..rules()
        },
        ..check()
    };
    assert_eq!(rounds(elsewhere, &group, 1), [false]);
    assert_eq!(rounds(check(), &group, 1), [false]);
    // Without the second check in the configuration the peer is healthy.
    assert_eq!(group.add_check(), Some(0));
    group.keep_checks();
    assert!(group.peers()[0].state().is_healthy());
}

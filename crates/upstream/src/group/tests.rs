#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::{
    Address, Balancer, Commanded, FailReason, Group, GroupSettings, GroupStates, Measure, Mode,
    Peer, PeerSettings, Selection, Until,
};

/// A time long after the start of all clocks.
const NOW_MS: u64 = 1_000_000;

fn address(number: u16) -> Address {
    Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, number)))
}

fn peer(number: u16, settings: &PeerSettings, states: &GroupStates) -> Arc<Peer> {
    let name = address(number).to_string();
    let state = states.state(&name, 0, settings.weight);
    Arc::new(Peer::new(&name, address(number), settings.clone(), state))
}

const BALANCERS: [Balancer; 8] = [
    Balancer::RoundRobin,
    Balancer::LeastConnections,
    Balancer::IpHash,
    Balancer::Hash,
    Balancer::ConsistentHash,
    Balancer::Random,
    Balancer::RandomTwo(Measure::Connections),
    Balancer::LeastTime {
        until: Until::Header,
        inflight: true,
    },
];

/// Commands of a round about the first two peers.
fn commanded(peers: &[Arc<Peer>], round: u32) -> Commanded {
    let mode = if round.is_multiple_of(2) {
        Mode::Down
    } else {
        Mode::Up
    };
    Commanded {
        modes: [(peers[0].name().to_owned(), mode)].into(),
        weights: [(peers[1].name().to_owned(), round % 5)].into(),
        ..Commanded::default()
    }
}

/// Lanes choose peers, answer and fail at the same time, while peers are commanded and replaced:
/// limits are never exceeded, and no peer stays busy.
#[test]
fn limits_are_obeyed_by_concurrent_requests() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 2_000;
    const MAX_CONNS: u32 = 2;
    for balancer in BALANCERS {
        let states = Arc::new(GroupStates::default());
        let settings = PeerSettings {
            max_conns: MAX_CONNS,
            max_fails: 0,
            ..PeerSettings::default()
        };
        let peers: Vec<Arc<Peer>> = (0..3)
            .map(|number| peer(number, &settings, &states))
            .collect();
        let group_settings = GroupSettings {
            balancer,
            ..GroupSettings::default()
        };
        let lines = vec![peers.clone()];
        let group = Group::new("group", group_settings, lines, Arc::clone(&states));
        let busy: Arc<[AtomicU32; 3]> = Arc::default();
        let choose = |seed: u64| {
            let (group, busy) = (Arc::clone(&group), Arc::clone(&busy));
            move || {
                for round in 0..ROUNDS {
                    let key = round.to_string();
                    let mut tries = group.begin(&Selection {
                        key: key.as_bytes(),
                        random: seed * ROUNDS + round,
                        ..Selection::default()
                    });
                    let Ok(picked) = tries.next(NOW_MS) else {
                        continue;
                    };
                    let Address::Inet(address) = picked.address() else {
                        continue;
                    };
                    let count = &busy[usize::from(address.port())];
                    assert!(count.fetch_add(1, Ordering::SeqCst) < MAX_CONNS);
                    thread::yield_now();
                    count.fetch_sub(1, Ordering::SeqCst);
                    match round % 3 {
                        0 => picked.succeeded(NOW_MS, 1, 2),
                        1 => drop(picked.failed(FailReason::Error, NOW_MS)),
                        _ => drop(picked),
                    }
                }
            }
        };
        let lanes: Vec<_> = (0..THREADS)
            .map(|seed| thread::spawn(choose(seed)))
            .collect();
        for round in 0..200_u32 {
            group.command(commanded(&peers, round));
            // The same peers again, as a repeated name lookup gives them.
            let again = (0..3).map(|number| peer(number, &settings, &states));
            group.replace(0, again.collect());
            thread::yield_now();
        }
        for lane in lanes {
            lane.join().unwrap();
        }
        for peer in group.peers() {
            assert_eq!(peer.state().active(), 0, "{balancer:?}");
        }
    }
}

#[test]
fn states_stay_while_the_peer_is_used() {
    let states = GroupStates::default();
    let settings = PeerSettings::default();
    let first = peer(1, &settings, &states);
    first.state().count_failure(FailReason::Timeout);
    first.command_mode(Some(Mode::Down));
    let again = peer(1, &settings, &states);
    assert_eq!((again.mode(), again.state().failures()), (Mode::Down, 1));
    assert_eq!(again.state().failures_by_reason(), [0, 1, 0, 0, 0]);
    for reason in [
        FailReason::Error,
        FailReason::InvalidHeader,
        FailReason::Status(502),
        FailReason::HealthCheck,
        FailReason::Timeout,
    ] {
        first.state().count_failure(reason);
        let last = again.state().last_failure().map(|(last, _)| last);
        assert_eq!(last, Some(reason));
    }
    let twin = states.state(first.name(), 1, 1);
    assert_ne!(twin.id(), first.state().id());
    drop((first, again));
    states.forget_unused(); // not what a twin is kept for
    let kept = peer(1, &settings, &states);
    assert_eq!(kept.mode(), Mode::Down);
    drop((twin, kept));
    states.forget_unused();
    assert_eq!(peer(1, &settings, &states).mode(), Mode::Up);
}

#[test]
fn peers_come_and_go() {
    let states = Arc::new(GroupStates::default());
    let settings = PeerSettings::default();
    let backup = PeerSettings {
        backup: true,
        ..settings.clone()
    };
    let lines = vec![vec![peer(1, &settings, &states)], Vec::new()];
    let group = Group::new(
        "group",
        GroupSettings::default(),
        lines,
        Arc::clone(&states),
    );
    let names = || -> Vec<String> {
        let peers = group.peers();
        let port = |name: &str| name.rsplit(':').next().unwrap().to_owned();
        peers.iter().map(|peer| port(peer.name())).collect()
    };
    group.replace(
        1,
        vec![peer(2, &backup, &states), peer(3, &settings, &states)],
    );
    assert_eq!(names(), ["1", "3", "2"]);
    let added = Commanded {
        added: vec![peer(4, &settings, &states)],
        ..Commanded::default()
    };
    group.command(added.clone());
    group.replace(1, vec![peer(5, &settings, &states)]);
    assert_eq!(names(), ["1", "5", "4"]);
    let removed = Commanded {
        removed: [address(5).to_string()].into(),
        ..added
    };
    group.command(removed);
    assert_eq!(names(), ["1", "4"]);
    // A lookup that finds it again does not bring it back.
    group.replace(1, vec![peer(5, &settings, &states)]);
    assert_eq!(names(), ["1", "4"]);
    // A request in progress continues among the current peers.
    let mut tries = group.begin(&Selection::default());
    let first = tries.next(NOW_MS).unwrap();
    group.replace(0, Vec::new());
    let second = tries.next(NOW_MS).unwrap();
    assert_ne!(first.name(), second.name());
}

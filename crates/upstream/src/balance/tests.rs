#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::Balancer;
use crate::Address;
use crate::group::{
    FailReason, Group, GroupSettings, GroupStates, Mode, NoPeer, Peer, PeerSettings, Picked,
    Selection,
};

/// A moment long after the start of all clocks.
const NOW_MS: u64 = 1_000_000;

fn plain() -> PeerSettings {
    PeerSettings::default()
}

fn weighted(weight: u32) -> PeerSettings {
    PeerSettings { weight, ..plain() }
}

/// Peers on ports 1, 2, 3 ...
fn group(balancer: Balancer, peers: Vec<PeerSettings>) -> Arc<Group> {
    let states = Arc::new(GroupStates::default());
    let peer = |(index, settings): (usize, PeerSettings)| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, index as u16 + 1));
        let address = Address::Inet(address);
        let state = states.state(&address.to_string(), 0, settings.weight);
        Arc::new(Peer::new("peer", address, settings, state))
    };
    let peers = peers.into_iter().enumerate().map(peer).collect();
    let settings = GroupSettings {
        balancer,
        ..GroupSettings::default()
    };
    Group::new("group", settings, peers, states)
}

/// The number of the peer's port.
fn port(picked: &Picked) -> u16 {
    match picked.address() {
        Address::Inet(address) => address.port(),
        Address::Unix(_) => 0,
    }
}

/// The peers of so many requests one after the other, all answered.
fn sequence(group: &Arc<Group>, count: usize) -> String {
    let one = |_| {
        let mut tries = group.begin(&Selection::default());
        let picked = tries.next(NOW_MS).unwrap();
        let port = port(&picked);
        picked.succeeded(NOW_MS, 1, 1);
        char::from_digit(u32::from(port), 10).unwrap()
    };
    (0..count).map(one).collect()
}

#[test]
fn round_robin_is_smooth() {
    let cases: [(&[u32], &str); 4] = [
        (&[1, 1, 1], "123123123"),
        (&[5, 1, 1], "11213111121311"),
        (&[2, 1], "121121121"),
        (&[1, 3, 2], "231232231232"),
    ];
    for (weights, expected) in cases {
        let peers = weights.iter().map(|weight| weighted(*weight)).collect();
        let group = group(Balancer::RoundRobin, peers);
        assert_eq!(sequence(&group, expected.len()), expected, "{weights:?}");
    }
}

#[test]
fn a_failed_peer_is_out_until_its_time_is_over() {
    let group = group(Balancer::RoundRobin, vec![plain(), plain()]);
    let mut tries = group.begin(&Selection::default());
    assert_eq!(tries.left(), 2);
    let first = tries.next(NOW_MS).unwrap();
    assert_eq!((port(&first), tries.left()), (1, 1));
    assert!(first.failed(FailReason::Error, NOW_MS));
    let second = tries.next(NOW_MS).unwrap();
    assert_eq!((port(&second), tries.left()), (2, 0));
    second.succeeded(NOW_MS, 1, 1);
    assert_eq!(tries.next(NOW_MS).err(), Some(NoPeer));
    assert_eq!(sequence(&group, 3), "222");
    // One request is let through when the time is over; until it is answered, no other.
    let later_ms = NOW_MS + 10_001;
    let ports = |count: usize| -> Vec<(u16, Picked)> {
        let one = |_| {
            let picked = group.begin(&Selection::default()).next(later_ms).unwrap();
            (port(&picked), picked)
        };
        (0..count).map(one).collect()
    };
    let mut picked = ports(4);
    let numbers: Vec<u16> = picked.iter().map(|(port, _)| *port).collect();
    assert_eq!(
        numbers.iter().filter(|port| **port == 1).count(),
        1,
        "{numbers:?}"
    );
    let at = numbers.iter().position(|port| *port == 1).unwrap();
    picked.swap_remove(at).1.succeeded(later_ms, 1, 1);
    let numbers: Vec<u16> = ports(4).iter().map(|(port, _)| *port).collect();
    assert_eq!(
        numbers.iter().filter(|port| **port == 1).count(),
        2,
        "{numbers:?}"
    );
}

#[test]
fn backups_are_asked_when_no_other_can_be() {
    let backup = PeerSettings {
        backup: true,
        ..plain()
    };
    let group = group(Balancer::RoundRobin, vec![plain(), backup]);
    assert_eq!(sequence(&group, 2), "11");
    let mut tries = group.begin(&Selection::default());
    tries
        .next(NOW_MS)
        .unwrap()
        .failed(FailReason::Timeout, NOW_MS);
    assert_eq!(port(&tries.next(NOW_MS).unwrap()), 2);
    assert_eq!(sequence(&group, 2), "22");
}

#[test]
fn limits_and_modes_hold() {
    let limited = PeerSettings {
        max_conns: 1,
        ..plain()
    };
    let down = PeerSettings {
        mode: Mode::Down,
        ..plain()
    };
    let draining = PeerSettings {
        mode: Mode::Draining,
        ..plain()
    };
    let group = group(Balancer::RoundRobin, vec![limited, down, draining]);
    let next = || group.begin(&Selection::default()).next(NOW_MS);
    let busy = next().unwrap();
    assert_eq!(port(&busy), 1);
    assert_eq!(next().err(), Some(NoPeer));
    drop(busy);
    assert_eq!(port(&next().unwrap()), 1);
    let bound = Selection {
        sticky: Some(b"127.0.0.1:3"),
        ..Selection::default()
    };
    assert_eq!(port(&group.begin(&bound).next(NOW_MS).unwrap()), 3);
}

#[test]
fn a_single_peer_is_always_asked() {
    let group = group(Balancer::RoundRobin, vec![plain()]);
    for _ in 0..3 {
        let mut tries = group.begin(&Selection::default());
        let picked = tries.next(NOW_MS).unwrap();
        assert!(!picked.failed(FailReason::Error, NOW_MS));
        assert_eq!(tries.left(), 0);
    }
    let mut tries = group.begin(&Selection::default());
    let picked = tries.next(NOW_MS).unwrap();
    tries.forgive(picked);
    assert_eq!(tries.left(), 1);
    assert!(tries.next(NOW_MS).is_ok());
}

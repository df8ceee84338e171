#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::{Address, Balancer, Measure, Until};
use crate::{
    FailReason, Group, GroupSettings, GroupStates, Mode, NoPeer, Peer, PeerSettings, Picked,
    Selection,
};

/// A time long after the start of all clocks.
const NOW_MS: u64 = 1_000_000;

fn plain() -> PeerSettings {
    PeerSettings::default()
}

fn weighted(weight: u32) -> PeerSettings {
    PeerSettings { weight, ..plain() }
}

/// Peers on the ports from 18081 on, as in the recorded runs of nginx.
fn group(balancer: Balancer, peers: Vec<PeerSettings>) -> Arc<Group> {
    let states = Arc::new(GroupStates::default());
    let peer = |(index, settings): (usize, PeerSettings)| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, index as u16 + 18_081));
        let server = address.to_string();
        let state = states.state(&server, 0, settings.weight);
        Arc::new(Peer::new(&server, Address::Inet(address), settings, state))
    };
    let peers = peers.into_iter().enumerate().map(peer).collect();
    let settings = GroupSettings {
        balancer,
        ..GroupSettings::default()
    };
    Group::new("group", settings, vec![peers], states)
}

/// The number of the peer, from 1.
fn port(picked: &Picked) -> u16 {
    match picked.address() {
        Address::Inet(address) => address.port() - 18_080,
        Address::Unix(_) => 0,
    }
}

/// The peer that answers a request, if peer `bad` always fails.
fn answer(group: &Arc<Group>, selection: &Selection<'_>, bad: u16) -> char {
    let mut tries = group.begin(selection);
    loop {
        let picked = tries.next(NOW_MS).unwrap();
        let port = port(&picked);
        if port == bad {
            picked.failed(FailReason::Error, NOW_MS);
            continue;
        }
        picked.succeeded(NOW_MS, 1, 1);
        return char::from_digit(u32::from(port), 10).unwrap();
    }
}

/// The peers of `count` requests in a row.
fn sequence(group: &Arc<Group>, count: usize) -> String {
    let one = |_| answer(group, &Selection::default(), 0);
    (0..count).map(one).collect()
}

/// Sequences recorded from nginx.
#[test]
fn round_robin_matches_nginx() {
    let down = PeerSettings {
        mode: Mode::Down,
        ..plain()
    };
    let backup = PeerSettings {
        backup: true,
        ..plain()
    };
    let stubborn = PeerSettings {
        max_fails: 2,
        ..weighted(4)
    };
    let cases: [(&str, u16, Vec<PeerSettings>); 6] = [
        ("123123123", 0, vec![plain(), plain(), plain()]),
        ("11213111121311", 0, vec![weighted(5), plain(), plain()]),
        ("231232231232", 0, vec![plain(), weighted(3), weighted(2)]),
        ("32332332", 1, vec![plain(), plain(), weighted(2), backup]),
        ("323323323323", 1, vec![stubborn, plain(), weighted(2)]),
        ("131313", 0, vec![plain(), down, plain()]),
    ];
    for (expected, bad, peers) in cases {
        let group = group(Balancer::RoundRobin, peers.clone());
        let one = |_| answer(&group, &Selection::default(), bad);
        let sequence: String = (0..expected.len()).map(one).collect();
        assert_eq!(sequence, expected, "{peers:?}");
    }
    let group = group(
        Balancer::LeastConnections,
        vec![weighted(2), plain(), plain()],
    );
    assert_eq!(sequence(&group, 9), "123112311");
}

const KEYS: [&str; 16] = [
    "a", "b", "c", "d", "e", "foo", "bar", "baz", "hello", "world", "key1", "key2", "key3", "key4",
    "key5", "",
];

/// The peers of these keys in nginx, except for the empty key, which uses round robin.
#[test]
fn keys_go_where_nginx_sends_them() {
    let three = || vec![plain(), plain(), plain()];
    let down = PeerSettings {
        mode: Mode::Down,
        ..plain()
    };
    let cases = [
        (Balancer::Hash, three(), "3133322121212331"),
        (
            Balancer::Hash,
            vec![weighted(2), down.clone(), plain()],
            "3311333113113311",
        ),
        (Balancer::ConsistentHash, three(), "2321313333133111"),
        (
            Balancer::ConsistentHash,
            vec![weighted(2), down, weighted(3)],
            "3313313333133313",
        ),
    ];
    for (balancer, peers, expected) in cases {
        let group = group(balancer, peers.clone());
        let one = |key: &&str| {
            let selection = Selection {
                key: key.as_bytes(),
                ..Selection::default()
            };
            answer(&group, &selection, 0)
        };
        let sequence: String = KEYS[..15].iter().map(one).collect();
        assert_eq!(sequence, expected[..15], "{balancer:?} {peers:?}");
    }
}

#[test]
fn the_ring_matches_nginx() {
    let group = group(Balancer::ConsistentHash, vec![plain(), plain(), plain()]);
    let one = |number: u32| {
        let key = format!("/path/{number}");
        let selection = Selection {
            key: key.as_bytes(),
            ..Selection::default()
        };
        answer(&group, &selection, 0)
    };
    let sequence: String = (0..60).map(one).collect();
    assert_eq!(
        sequence,
        "113332111322232222231313332313113323133111313332313132311212"
    );
}

const CLIENTS: [&str; 13] = [
    "10.0.0.1",
    "10.0.1.1",
    "10.0.2.1",
    "10.0.3.200",
    "192.168.1.1",
    "192.168.2.1",
    "8.8.8.8",
    "1.1.1.1",
    "172.16.5.4",
    "2001:db8::1",
    "2001:db8::2",
    "fe80::1",
    "::1",
];

#[test]
fn clients_go_where_nginx_sends_them() {
    let down = PeerSettings {
        mode: Mode::Down,
        ..plain()
    };
    let cases = [
        (vec![plain(), plain(), plain()], "1231233123113"),
        (vec![plain(), weighted(3), down], "1222212221221"),
    ];
    for (peers, expected) in cases {
        let group = group(Balancer::IpHash, peers);
        let one = |client: &&str| {
            let selection = Selection {
                client: Some(client.parse().unwrap()),
                ..Selection::default()
            };
            answer(&group, &selection, 0)
        };
        let sequence: String = CLIENTS.iter().map(one).collect();
        assert_eq!(sequence, expected);
    }
}

#[test]
fn random_choice_follows_weights_and_measures() {
    let drawn = |balancer: Balancer, peers: Vec<PeerSettings>| {
        let group = group(balancer, peers);
        let mut counts = [0; 4];
        for random in 1..=4000 {
            let selection = Selection {
                random,
                ..Selection::default()
            };
            let picked = group.begin(&selection).next(NOW_MS).unwrap();
            counts[usize::from(port(&picked))] += 1;
            if matches!(balancer, Balancer::RandomTwo(_)) {
                std::mem::forget(picked); // it stays busy
            }
        }
        counts
    };
    let counts = drawn(Balancer::Random, vec![weighted(2), plain(), plain()]);
    assert!((1800..2200).contains(&counts[1]), "{counts:?}");
    assert!((800..1200).contains(&counts[2]), "{counts:?}");
    let two = Balancer::RandomTwo(Measure::Connections);
    let counts = drawn(two, vec![weighted(2), plain(), plain()]);
    assert!((1990..2010).contains(&counts[1]), "{counts:?}");
    assert!((990..1010).contains(&counts[2]), "{counts:?}");
}

#[test]
fn least_time_prefers_fast_peers() {
    let balancer = Balancer::LeastTime {
        until: Until::Header,
        inflight: false,
    };
    let group = group(balancer, vec![plain(), plain(), plain()]);
    for took_ms in [150, 15, 300] {
        let picked = group.begin(&Selection::default()).next(NOW_MS).unwrap();
        picked.succeeded(NOW_MS, took_ms, took_ms);
    }
    let picked: Vec<Picked> = (0..7)
        .map(|_| group.begin(&Selection::default()).next(NOW_MS).unwrap())
        .collect();
    let ports: Vec<u16> = picked.iter().map(port).collect();
    assert_eq!(
        ports.iter().filter(|port| **port == 2).count(),
        7,
        "{ports:?}"
    );
}

#[test]
fn a_slow_peer_that_was_not_used_for_long_is_tried_again() {
    let balancer = Balancer::LeastTime {
        until: Until::LastByte,
        inflight: false,
    };
    let at_once = PeerSettings {
        fail_timeout_ms: 0,
        ..plain()
    };
    // The default is ten seconds, and a period one more.
    for (settings, period_ms) in [(at_once, 1000), (plain(), 11_000)] {
        let group = group(balancer, vec![settings; 2]);
        let pick = |now_ms: u64, took_ms: [u64; 2]| {
            let picked = group.begin(&Selection::default()).next(now_ms).unwrap();
            let port = port(&picked);
            let took_ms = took_ms[usize::from(port) - 1];
            picked.succeeded(now_ms, took_ms, took_ms);
            port
        };
        let first = [pick(NOW_MS, [3700, 1]), pick(NOW_MS, [3700, 1])];
        assert_eq!(first, [1, 2], "{period_ms}");
        for (halves, tries) in [(14, 0), (15, 1), (16, 0)] {
            let now_ms = NOW_MS + period_ms * halves / 2;
            let picked = (0..4).map(|_| pick(now_ms, [3700, 1]));
            let count = picked.filter(|port| *port == 1).count();
            assert_eq!(count, tries, "{period_ms} {halves}");
        }
    }
}

#[test]
fn each_time_of_sessions_has_its_own_average() {
    // Of three peers, each is the fastest until another point of a session.
    for (until, expected) in [
        (Until::Connect, 1),
        (Until::Header, 2),
        (Until::LastByte, 3),
    ] {
        for inflight in [false, true] {
            let group = group(Balancer::LeastTime { until, inflight }, vec![plain(); 3]);
            for (connect_ms, first_byte_ms, session_ms) in
                [(30, 600, 900), (60, 300, 900), (60, 600, 700)]
            {
                let picked = group.begin(&Selection::default()).next(NOW_MS).unwrap();
                picked.connected(NOW_MS + connect_ms);
                picked.header_received(NOW_MS + first_byte_ms);
                let now_ms = NOW_MS + session_ms;
                picked.session_ended(now_ms, connect_ms, Some(first_byte_ms), session_ms);
            }
            let next = group.begin(&Selection::default()).next(NOW_MS).unwrap();
            assert_eq!(port(&next), expected, "{until:?} {inflight}");
        }
    }
}

#[test]
fn a_failed_peer_that_answers_is_able_again_although_the_response_has_no_end() {
    let group = group(Balancer::RoundRobin, vec![plain(), plain()]);
    let next = |now_ms: u64| group.begin(&Selection::default()).next(now_ms);
    for _ in 0..2 {
        let picked = next(NOW_MS).unwrap();
        assert!(picked.failed(FailReason::Error, NOW_MS));
    }
    assert!(next(NOW_MS + 1000).is_err());
    let later_ms = NOW_MS + 60_000;
    for _ in 0..2 {
        let tunnel = next(later_ms).unwrap();
        tunnel.header_received(later_ms + 1);
        drop(tunnel);
    }
    for _ in 0..10 {
        assert!(next(later_ms + 2).is_ok());
    }
}

#[test]
fn requests_in_progress_reveal_a_hanging_peer() {
    let balancer = Balancer::LeastTime {
        until: Until::Header,
        inflight: true,
    };
    let group = group(balancer, vec![plain(), plain()]);
    let next = |now_ms: u64| group.begin(&Selection::default()).next(now_ms).unwrap();
    let hanging = next(NOW_MS);
    let other = next(NOW_MS);
    assert_eq!((port(&hanging), port(&other)), (1, 2));
    other.header_received(NOW_MS + 10);
    other.succeeded(NOW_MS + 10, 10, 20);
    for later_ms in [1000, 2000, 3000] {
        let picked = next(NOW_MS + later_ms);
        assert_eq!(port(&picked), 2);
        picked.header_received(NOW_MS + later_ms + 10);
        picked.succeeded(NOW_MS + later_ms + 10, 10, 10);
    }
}

#[test]
fn a_peer_that_comes_back_starts_slowly() {
    let slow = PeerSettings {
        slow_start_ms: 10_000,
        ..plain()
    };
    let group = group(Balancer::RoundRobin, vec![slow, plain()]);
    let first = |now_ms: u64| {
        let one = |_| {
            let picked = group.begin(&Selection::default()).next(now_ms).unwrap();
            let port = port(&picked);
            picked.succeeded(now_ms, 1, 1);
            usize::from(port == 1)
        };
        (0..100).map(one).sum::<usize>()
    };
    assert_eq!(first(NOW_MS), 50);
    let mut tries = group.begin(&Selection::default());
    while let Ok(picked) = tries.next(NOW_MS) {
        if port(&picked) == 1 {
            picked.failed(FailReason::Error, NOW_MS);
        }
    }
    assert_eq!(first(NOW_MS), 0);
    let back_ms = NOW_MS + 10_001;
    first(back_ms); // the first answer brings it back
    for (after_ms, share) in [(1_000, 9), (5_000, 33), (10_000, 50)] {
        let found = first(back_ms + after_ms);
        assert!(
            found.abs_diff(share) <= 2,
            "{found} of 100 after {after_ms}"
        );
    }
}

#[test]
fn a_failed_peer_is_disabled_for_its_time() {
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
    // One request is allowed after the time, and no other until it is answered.
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
fn backups_are_used_if_no_primary_can_be() {
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
fn limits_and_modes_are_obeyed() {
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
        route: Some("third".to_owned()),
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
        sticky: Some(b"third"),
        ..Selection::default()
    };
    assert_eq!(port(&group.begin(&bound).next(NOW_MS).unwrap()), 3);
}

#[test]
fn a_single_peer_is_always_used() {
    let group = group(Balancer::RoundRobin, vec![plain()]);
    for _ in 0..3 {
        let mut tries = group.begin(&Selection::default());
        let picked = tries.next(NOW_MS).unwrap();
        assert!(!picked.failed(FailReason::Error, NOW_MS));
        assert_eq!(tries.left(), 0);
    }
    let mut tries = group.begin(&Selection::default());
    let picked = tries.next(NOW_MS).unwrap();
    drop(picked);
    tries.allow_another();
    assert_eq!(tries.left(), 1);
    assert!(tries.next(NOW_MS).is_ok());
}

#[test]
fn an_extra_try_does_not_repeat_a_peer() {
    let group = group(Balancer::RoundRobin, vec![plain(), plain()]);
    let mut tries = group.begin(&Selection::default());
    let mut ports = Vec::new();
    while let Ok(picked) = tries.next(NOW_MS) {
        ports.push(port(&picked));
        tries.allow_another();
    }
    assert_eq!((ports, tries.left()), (vec![1, 2], 2));
}

#[test]
fn a_peer_without_a_fail_timeout_is_disabled_for_the_rest_of_the_second() {
    let unsteady = PeerSettings {
        fail_timeout_ms: 0,
        ..plain()
    };
    // The time of the failure, the time of the next request, both in milliseconds, and whether the
    // peer gets it.
    let cases = [
        (0, 0, false),
        (0, 1, false),
        (0, 999, false),
        (0, 1000, true),
        (999, 999, false),
        (999, 1000, true),
    ];
    for (failed_ms, wanted_ms, asked) in cases {
        let group = group(Balancer::RoundRobin, vec![unsteady.clone(), plain()]);
        let second_ms = NOW_MS / 1000 * 1000;
        let next = |at_ms| {
            let mut tries = group.begin(&Selection::default());
            tries.next(second_ms + at_ms).unwrap()
        };
        let first = next(failed_ms);
        assert_eq!(port(&first), 1);
        first.failed(FailReason::Error, second_ms + failed_ms);
        let ports: Vec<u16> = (0..4).map(|_| port(&next(wanted_ms))).collect();
        assert_eq!(ports.contains(&1), asked, "{failed_ms} {wanted_ms}");
    }
}

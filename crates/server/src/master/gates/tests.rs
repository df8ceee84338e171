//! Sockets through reloads: which stay, which come, which go.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use turnpike_lane::gate::AcceptMode;
use turnpike_testkit::ports;

use super::*;

fn listen(address: SocketAddr, mode: AcceptMode) -> Listen {
    let address = ListenAddress::Tcp(address);
    Listen {
        address,
        options: ListenOptions::default(),
        mode,
    }
}

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, ports::reserve().unwrap()).into()
}

fn opening(log: &ErrorLog, lanes: usize) -> Opening<'_> {
    Opening {
        lanes,
        homes: &[],
        log,
        product: Product::Turnpike,
        is_patient: false,
    }
}

fn facts(set: &GateSet) -> Vec<(usize, u64, Option<usize>)> {
    let listening_sockets = set.listening_sockets().unwrap();
    listening_sockets
        .iter()
        .map(|listening| (listening.listen, listening.gate, listening.lane))
        .collect()
}

#[test]
fn sockets_are_kept_across_reloads_and_shared_modes() {
    let log = ErrorLog::none();
    let (a, b) = (free_address(), free_address());
    let first = vec![
        listen(a, AcceptMode::Shared),
        listen(b, AcceptMode::Reuseport),
    ];
    let first = GateSet::default().extend(first, opening(&log, 2)).unwrap();
    assert_eq!(
        facts(&first),
        [(0, 1, None), (1, 2, Some(0)), (1, 3, Some(1))]
    );

    // Another order: the same sockets.
    let second = vec![
        listen(b, AcceptMode::Reuseport),
        listen(a, AcceptMode::Mutex),
    ];
    let second = first.extend(second, opening(&log, 2)).unwrap();
    assert_eq!(
        facts(&second),
        [(0, 2, Some(0)), (0, 3, Some(1)), (1, 1, None)]
    );

    // From one for all to one for each, and the other way round.
    let third = vec![
        listen(a, AcceptMode::Reuseport),
        listen(b, AcceptMode::Shared),
    ];
    let third = second.extend(third, opening(&log, 3)).unwrap();
    let expected = [
        (0, 1, Some(0)),
        (0, 4, Some(1)),
        (0, 5, Some(2)),
        (1, 2, None),
        (1, 3, None),
    ];
    assert_eq!(facts(&third), expected);

    drop((first, second));
    assert!(TcpStream::connect(a).is_ok() && TcpStream::connect(b).is_ok());
    let last = third
        .extend(vec![listen(a, AcceptMode::Shared)], opening(&log, 1))
        .unwrap();
    drop(third);
    assert!(TcpStream::connect(a).is_ok() && TcpStream::connect(b).is_err());
    drop(last);
    assert!(TcpStream::connect(a).is_err());
}

#[test]
fn sockets_of_lanes_that_go_are_kept_and_watched_by_others() {
    let log = ErrorLog::none();
    let address = free_address();
    for mode in [AcceptMode::Reuseport, AcceptMode::Steered] {
        let one = || vec![listen(address, mode)];
        let four = GateSet::default().extend(one(), opening(&log, 4)).unwrap();
        let two = four.extend(one(), opening(&log, 2)).unwrap();
        let expected = [
            (0, 1, Some(0)),
            (0, 2, Some(1)),
            (0, 3, Some(0)),
            (0, 4, Some(1)),
        ];
        assert_eq!(facts(&two), expected);
        // The kernel chooses only among those of lanes that are there.
        drop(four);
        let clients: Vec<_> = (0..64).map(|_| TcpStream::connect(address)).collect();
        assert!(clients.iter().all(Result::is_ok));
        let queued = |set: &GateSet| -> Vec<u32> {
            let gates = set.groups[0].gates.iter();
            gates
                .map(|held| held.gate.queue().unwrap().unwrap().0)
                .collect()
        };
        let waiting = queued(&two);
        // No lane reports its state to the steering program, which therefore leaves the choice to
        // the hash.
        if mode == AcceptMode::Reuseport {
            assert_eq!((waiting[2], waiting[3]), (0, 0), "{waiting:?}");
        }
        assert_eq!(waiting.iter().sum::<u32>(), 64);
        let again = two.extend(one(), opening(&log, 5)).unwrap();
        let gates: Vec<u64> = facts(&again).iter().map(|(_, gate, _)| *gate).collect();
        assert_eq!(gates, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_configuration_given_up_leaves_its_sockets_to_the_one_in_force() {
    let log = ErrorLog::none();
    let (a, b) = (free_address(), free_address());
    let both = vec![
        listen(a, AcceptMode::Reuseport),
        listen(b, AcceptMode::Shared),
    ];
    let mut first = GateSet::default().extend(both, opening(&log, 2)).unwrap();
    let wider = vec![listen(a, AcceptMode::Reuseport)];
    let second = first.extend(wider, opening(&log, 4)).unwrap();
    first.stop_listening_except(&second);
    assert!(first.reinstate(second, opening(&log, 2)));
    let expected = [
        (0, 1, Some(0)),
        (0, 2, Some(1)),
        (0, 4, Some(0)),
        (0, 5, Some(1)),
        (1, 3, None),
    ];
    assert_eq!(facts(&first), expected);
    assert!(TcpStream::connect(b).is_ok(), "it hears again");
    let same = vec![listen(a, AcceptMode::Reuseport)];
    let third = first.extend(same, opening(&log, 2)).unwrap();
    assert!(!first.reinstate(third, opening(&log, 2)), "nothing is new");
}

#[test]
fn a_taken_port_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let log = ErrorLog::none();
    let result =
        GateSet::default().extend(vec![listen(address, AcceptMode::Shared)], opening(&log, 1));
    assert_eq!(result.unwrap_err(), NotOpened { in_use: true });
}

#[test]
fn steered_sockets_accept_whatever_the_kernel_permits() {
    let log = ErrorLog::none();
    let address = free_address();
    let steered = || vec![listen(address, AcceptMode::Steered)];
    let first = GateSet::default()
        .extend(steered(), opening(&log, 2))
        .unwrap();
    let second = first.extend(steered(), opening(&log, 2)).unwrap();
    assert_eq!(facts(&first), facts(&second));
    assert!(TcpStream::connect(address).is_ok());
    let choosers = |set: &GateSet| set.groups[0].chooser.clone().unwrap();
    // Only the program is adjusted; without it the choice is made anew.
    let is_kept = Arc::ptr_eq(&choosers(&first), &choosers(&second));
    assert_eq!(is_kept, choosers(&first).is_program());
    let wider = second.extend(steered(), opening(&log, 3)).unwrap();
    assert_eq!(facts(&wider).len(), 3);
    let plain = wider.extend(
        vec![listen(address, AcceptMode::Reuseport)],
        opening(&log, 3),
    );
    let plain = plain.unwrap();
    drop((first, second, wider));
    assert!(plain.groups[0].chooser.is_none() && TcpStream::connect(address).is_ok());
}

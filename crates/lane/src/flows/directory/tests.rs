//! The lanes that flows are given to.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::event_loop::Owner;
use crate::gate::ListenAddress;

fn key(number: u16) -> FlowKey {
    FlowKey::read(Owner(1), &number.to_be_bytes()).unwrap()
}

fn inbox() -> (Arc<Inbox>, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&woken);
    let inbox = Inbox::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    (Arc::new(inbox), woken)
}

fn gate() -> Arc<OwnedFd> {
    let (gate, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    Arc::new(gate.into())
}

fn datagram() -> ForwardedDatagram {
    let local = ([127, 0, 0, 1], 53).into();
    ForwardedDatagram {
        key: key(7),
        gate_address: ListenAddress::Udp(local),
        peer: ([192, 0, 2, 1], 7).into(),
        local,
        source: None,
        arrival: Arrival::Gate(gate()),
        bytes: b"question".to_vec(),
    }
}

#[test]
fn a_flow_stays_with_the_lane_that_claimed_it_until_that_lets_go() {
    let directory = FlowDirectory::default();
    let ((one, _), (other, _)) = (inbox(), inbox());
    let gate = gate();
    let claim = |number: u16, inbox: &Arc<Inbox>| directory.claim(key(number), inbox, &gate);
    assert!(claim(7, &one).is_none());
    assert!(claim(7, &one).is_none());
    let owner = claim(7, &other);
    assert!(matches!(owner, Some(Elsewhere::Lane(owner)) if Arc::ptr_eq(&owner, &one)));
    assert!(claim(8, &other).is_none());
    directory.release(key(7), &other);
    assert!(claim(7, &other).is_some(), "not its own");
    directory.release(key(7), &one);
    assert!(claim(7, &other).is_none());
    other.close();
    assert!(claim(7, &one).is_none(), "its lane has ended");
}

#[test]
fn an_inbox_wakes_its_lane_and_is_bounded() {
    let (inbox, woken) = inbox();
    let mut taken = 0;
    for _ in 0..DATAGRAMS_MAX + 10 {
        let is_taken = matches!(inbox.put(datagram()), Put::Taken);
        assert_eq!(is_taken, woken.load(Ordering::Relaxed) > taken);
        taken += usize::from(is_taken);
    }
    assert_eq!(woken.load(Ordering::Relaxed), DATAGRAMS_MAX);
    assert_eq!(inbox.take().len(), DATAGRAMS_MAX);
    assert_eq!(inbox.take().len(), 0);
    inbox.close();
    assert!(matches!(inbox.put(datagram()), Put::Closed(_)));
    assert_eq!(inbox.take().len(), 0);
}

#[test]
fn a_lane_ends_with_an_empty_inbox_and_a_later_datagram_is_the_senders() {
    let directory = FlowDirectory::default();
    let ((ending, _), (other, _), gate) = (inbox(), inbox(), gate());
    assert!(directory.claim(key(7), &ending, &gate).is_none());
    let owner = directory.claim(key(7), &other, &gate).unwrap();
    assert!(owner.put(datagram()).is_ok());
    assert!(!ending.close_if_empty(), "a datagram waits");
    assert_eq!(ending.take().len(), 1);
    assert!(ending.close_if_empty());
    let back = owner.put(datagram()).unwrap_err();
    assert_eq!(back.bytes, b"question");
    assert!(directory.claim(key(7), &other, &gate).is_none());
}

#[test]
fn a_key_is_known_by_its_owner_and_its_bytes() {
    let key = |owner: u8, bytes: &[u8]| FlowKey::read(Owner(owner), bytes);
    assert_eq!(key(1, b"ab"), key(1, b"ab"));
    assert_ne!(key(1, b"ab"), key(2, b"ab"));
    assert_ne!(key(1, b"a"), key(1, b"a\0"));
    assert_eq!(key(3, b"ab").unwrap().owner(), Owner(3));
    assert!(key(1, &[1; super::super::KEY_BYTES_MAX]).is_some());
    assert!(key(1, &[1; super::super::KEY_BYTES_MAX + 1]).is_none());
}

//! The lanes that flows are given to.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn key(port: u16) -> FlowKey {
    FlowKey {
        local: ([127, 0, 0, 1], 53).into(),
        peer: ([192, 0, 2, 1], port).into(),
    }
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

fn stray() -> Stray {
    Stray {
        address: ListenAddress::Udp(key(0).local),
        key: key(7),
        source: None,
        way: Way::Gate(gate()),
        bytes: b"question".to_vec(),
    }
}

#[test]
fn a_flow_stays_with_the_lane_that_claimed_it_until_that_lets_go() {
    let directory = FlowDirectory::default();
    let ((one, _), (other, _)) = (inbox(), inbox());
    let gate = gate();
    let claim = |port: u16, inbox: &Arc<Inbox>| directory.claim(key(port), inbox, &gate);
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
    for _ in 0..STRAYS_MAX + 10 {
        inbox.put(stray());
    }
    assert_eq!(woken.load(Ordering::Relaxed), STRAYS_MAX);
    assert_eq!(inbox.take().len(), STRAYS_MAX);
    assert_eq!(inbox.take().len(), 0);
    inbox.close();
    inbox.put(stray());
    assert_eq!(inbox.take().len(), 0);
}

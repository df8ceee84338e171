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

fn stray() -> Stray {
    let (gate, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    Stray {
        address: ListenAddress::Udp(key(0).local),
        origin: Origin {
            key: key(7),
            gate: Arc::new(gate.into()),
            source: None,
        },
        bytes: b"question".to_vec(),
    }
}

#[test]
fn a_flow_stays_with_the_lane_that_claimed_it_until_that_lets_go() {
    let directory = FlowDirectory::default();
    let ((one, _), (other, _)) = (inbox(), inbox());
    assert!(directory.claim(key(7), &one).is_none());
    assert!(directory.claim(key(7), &one).is_none());
    let owner = directory.claim(key(7), &other).unwrap();
    assert!(Arc::ptr_eq(&owner, &one));
    assert!(directory.claim(key(8), &other).is_none());
    directory.release(key(7), &other);
    assert!(directory.claim(key(7), &other).is_some(), "not its own");
    directory.release(key(7), &one);
    assert!(directory.claim(key(7), &other).is_none());
    other.close();
    assert!(
        directory.claim(key(7), &one).is_none(),
        "its lane has ended"
    );
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

//! Two processes with a link between them, as two directories.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::super::directory::Inbox;
use super::*;

/// Far longer than a message takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A lane of a process, and its wake-ups.
struct Lane {
    inbox: Arc<Inbox>,
    woken: Receiver<()>,
}

impl Lane {
    fn new() -> Self {
        let (wake, woken) = channel();
        Self {
            inbox: Arc::new(Inbox::new(move || wake.send(()).unwrap())),
            woken,
        }
    }

    fn next(&self) -> ForwardedDatagram {
        self.woken.recv_timeout(PATIENCE).unwrap();
        self.inbox.take().pop_front().unwrap()
    }
}

fn gate() -> Arc<OwnedFd> {
    let (gate, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    Arc::new(gate.into())
}

fn datagram(key: FlowKey, gate: &Arc<OwnedFd>, text: &str) -> ForwardedDatagram {
    ForwardedDatagram {
        key,
        gate_address: OWN,
        peer: ([192, 0, 2, 7], 1).into(),
        local: LOCAL,
        source: Some(LOCAL.ip()),
        arrival: Arrival::Gate(Arc::clone(gate)),
        bytes: text.into(),
    }
}

const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 53);
const OWN: ListenAddress =
    ListenAddress::Udp(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 53));

fn key(number: u16) -> FlowKey {
    FlowKey::read(Owner(1), &number.to_be_bytes()).unwrap()
}

/// Two processes, and what is told when the second one may read the gates.
fn linked() -> ([Arc<FlowDirectory>; 2], Receiver<()>) {
    let processes: [Arc<FlowDirectory>; 2] = Default::default();
    let (before, after) = descriptor::packet_pair().unwrap();
    let (free, is_free) = channel();
    processes[0].add_successor(before).unwrap();
    let free = move || free.send(()).unwrap();
    processes[1].follow(after, free).unwrap();
    (processes, is_free)
}

fn is_elsewhere(directory: &FlowDirectory, key: FlowKey, lane: &Lane) -> bool {
    directory.claim(key, &lane.inbox, &gate()).is_some()
}

#[test]
fn a_flow_stays_with_its_process_until_it_ends() {
    let ([before, after], is_free) = linked();
    let (old, new, gate) = (Lane::new(), Lane::new(), gate());
    // More than one message holds.
    let ports = 1..=2 * KEYS_MAX as u16;
    for port in ports.clone() {
        assert!(before.claim(key(port), &old.inbox, &gate).is_none());
    }
    before.hand_over().unwrap();
    is_free.recv_timeout(PATIENCE).unwrap();
    for port in ports {
        let owner = after.claim(key(port), &new.inbox, &gate).unwrap();
        assert!(owner.put(datagram(key(port), &gate, "question")).is_ok());
        let got = old.next();
        assert_eq!(
            (got.key, got.bytes.as_slice()),
            (key(port), &b"question"[..])
        );
        assert_eq!(got.source, Some(LOCAL.ip()));
        assert_eq!((got.gate_address, got.local), (OWN, LOCAL));
        assert!(matches!(got.arrival, Arrival::Process(_)));
    }
    assert!(!is_elsewhere(&after, key(u16::MAX), &new), "a new one");
    before.release(key(7), &old.inbox);
    let owner = after.claim(key(7), &new.inbox, &gate).unwrap();
    // Both are on their way before the lane has seen that the first one comes back.
    for text in ["late", "later"] {
        assert!(owner.put(datagram(key(7), &gate, text)).is_ok());
    }
    let mut returned = Vec::new();
    while returned.len() < 2 {
        new.woken.recv_timeout(PATIENCE).unwrap();
        returned.extend(new.inbox.take());
    }
    let texts = returned.iter().map(|datagram| datagram.bytes.as_slice());
    assert!(texts.eq([&b"late"[..], b"later"]));
    let first = &returned[0];
    assert_eq!(first.key, key(7));
    assert!(matches!(&first.arrival, Arrival::Gate(own) if Arc::ptr_eq(own, &gate)));
    assert!(!is_elsewhere(&after, key(7), &new));
}

#[test]
fn a_process_between_two_others_passes_on() {
    let ([first, second], is_free) = linked();
    let (of_first, of_second, of_third, gate) = (Lane::new(), Lane::new(), Lane::new(), gate());
    assert!(first.claim(key(1), &of_first.inbox, &gate).is_none());
    first.hand_over().unwrap();
    is_free.recv_timeout(PATIENCE).unwrap();
    assert!(second.claim(key(2), &of_second.inbox, &gate).is_none());
    let third = Arc::<FlowDirectory>::default();
    let (end, own_end) = descriptor::packet_pair().unwrap();
    let (free, is_free) = channel();
    second.add_successor(end).unwrap();
    third
        .follow(own_end, move || free.send(()).unwrap())
        .unwrap();
    second.hand_over().unwrap();
    is_free.recv_timeout(PATIENCE).unwrap();
    for (port, lane) in [(1, &of_first), (2, &of_second)] {
        let owner = third.claim(key(port), &of_third.inbox, &gate).unwrap();
        assert!(owner.put(datagram(key(port), &gate, "question")).is_ok());
        assert_eq!(lane.next().key, key(port));
    }
    // Only when the first process is done may the second one end.
    let (end, has_ended) = channel();
    second.release(key(2), &of_second.inbox);
    second.at_end(move || end.send(()).unwrap());
    let owner = third.claim(key(1), &of_third.inbox, &gate).unwrap();
    assert!(has_ended.try_recv().is_err());
    first.release(key(1), &of_first.inbox);
    has_ended.recv_timeout(PATIENCE).unwrap();
    assert!(
        owner.put(datagram(key(1), &gate, "late")).is_err(),
        "the link has ended"
    );
    while is_elsewhere(&third, key(1), &of_third) {
        thread::yield_now();
    }
}

#[test]
fn a_link_ends_with_the_last_flow_and_with_its_process() {
    let ([before, after], is_free) = linked();
    let (old, new, gate) = (Lane::new(), Lane::new(), gate());
    assert!(before.claim(key(1), &old.inbox, &gate).is_none());
    before.hand_over().unwrap();
    is_free.recv_timeout(PATIENCE).unwrap();
    assert!(is_elsewhere(&after, key(1), &new));
    before.release(key(1), &old.inbox);
    while is_elsewhere(&after, key(1), &new) {
        thread::yield_now();
    }
    // Without a word, as when the process is killed.
    let (end, own_end) = descriptor::packet_pair().unwrap();
    let (free, is_free) = channel();
    after
        .follow(own_end, move || free.send(()).unwrap())
        .unwrap();
    drop(end);
    is_free.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn addresses_and_datagrams_are_read_as_they_were_written() {
    let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 5, 2);
    let addresses = [([192, 0, 2, 1], 1).into(), SocketAddr::from(scoped)];
    for address in addresses {
        let mut message = Vec::new();
        write_address(&mut message, address);
        for length in 0..message.len() {
            assert_eq!(read_address(&mut &message[..length]), None);
        }
        assert_eq!(read_address(&mut message.as_slice()), Some(address));
    }
    let mut message = Vec::new();
    write_key(&mut message, &key(7));
    for length in 0..message.len() {
        assert_eq!(read_key(&mut &message[..length]), None);
    }
    assert_eq!(read_key(&mut message.as_slice()), Some(key(7)));
    assert_eq!(read_key(&mut [0, u8::MAX].as_slice()), None);
    assert!(read_datagram(b"\x04", Arrival::Returned).is_none());
    assert_eq!(read_address(&mut [9; 40].as_slice()), None);
}

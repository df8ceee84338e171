//! Tests of gates on the loopback, and of the accept mutex in every order of its steps.

#![allow(clippy::unwrap_used)]

use std::{
    cell::Cell,
    net::{IpAddr, TcpStream, UdpSocket},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::sys::datagram::{self, Batch, DATAGRAMS_MAX, Route};

use super::*;

fn any_port(text: &str) -> ListenAddress {
    ListenAddress::Tcp(text.parse().unwrap())
}

fn tcp(gate: &Gate) -> std::net::SocketAddr {
    match gate.address() {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => *address,
        ListenAddress::Unix(_) => panic!("not TCP"),
    }
}

fn everything() -> ListenOptions {
    ListenOptions {
        backlog: 7,
        deferred: true,
        reuseport: Reuseport::Hash,
        multipath: false,
        fast_open_queue: Some(3),
        receive_buffer_bytes: Some(8192),
        send_buffer_bytes: Some(8192),
        ipv6_only: false,
        keepalive: Some(Keepalive {
            on: true,
            idle_s: Some(60),
            interval_s: Some(5),
            count: Some(3),
        }),
    }
}

#[test]
fn a_gate_opens_with_every_option_and_reports_its_queue() {
    let cases = [
        ("127.0.0.1:0", ListenOptions::default()),
        ("[::1]:0", ListenOptions::default()),
        ("127.0.0.1:0", everything()),
        ("[::1]:0", everything()),
    ];
    for (text, options) in cases {
        let mut ignored = Vec::new();
        let gate = Gate::open(&any_port(text), &options, &mut ignored).unwrap();
        assert!(ignored.is_empty(), "{ignored:?}");
        assert_ne!(gate.address().port(), Some(0));
        let _client = TcpStream::connect(tcp(&gate)).unwrap();
        let queued = u32::from(!options.deferred);
        let backlog = options.backlog as u32;
        let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let backlog = backlog.min(somaxconn.trim().parse().unwrap());
        assert_eq!(gate.queue().unwrap(), Some((queued, backlog)));
        gate.configure(
            &ListenOptions {
                backlog: 9,
                ..options
            },
            &mut ignored,
        );
        assert_eq!(gate.queue().unwrap(), Some((queued, 9)));
        assert!(ignored.is_empty(), "{ignored:?}");
    }
}

#[test]
fn a_taken_address_is_reported_as_in_use() {
    let mut ignored = Vec::new();
    let options = ListenOptions::default();
    let gate = Gate::open(&any_port("127.0.0.1:0"), &options, &mut ignored).unwrap();
    let error = Gate::open(gate.address(), &options, &mut ignored).unwrap_err();
    assert!(error.is_address_in_use());
    let text = error.sentence(gate.address());
    assert!(
        text == format!("bind() to {} failed", gate.address()),
        "{text}"
    );
}

#[test]
fn failures_give_nginx_messages() {
    let unix = ListenAddress::Unix(b"/run/x.sock"[..].into());
    let inet = any_port("0.0.0.0:80");
    let cases = [
        (GateStep::Socket, &inet, "socket() 0.0.0.0:80 failed"),
        (GateStep::Bind, &unix, "bind() to unix:/run/x.sock failed"),
        (GateStep::Mode, &unix, "chmod() \"/run/x.sock\" failed"),
        (
            GateStep::Listen(511),
            &inet,
            "listen() to 0.0.0.0:80, backlog 511 failed",
        ),
        (
            GateStep::Option("SO_RCVBUF", Some(8)),
            &inet,
            "setsockopt(SO_RCVBUF, 8) 0.0.0.0:80 failed",
        ),
        (
            GateStep::Option("TCP_DEFER_ACCEPT", Some(1)),
            &inet,
            "setsockopt(TCP_DEFER_ACCEPT, 1) for 0.0.0.0:80 failed",
        ),
        (
            GateStep::Option("SO_REUSEADDR", None),
            &inet,
            "setsockopt(SO_REUSEADDR) 0.0.0.0:80 failed",
        ),
    ];
    for (step, address, expected) in cases {
        let error = GateError {
            step,
            error: io::ErrorKind::Other.into(),
        };
        assert_eq!(error.sentence(address), expected);
    }
}

#[test]
fn a_unix_gate_is_open_to_all_and_keeps_its_file_until_removal() {
    let name = format!("lane-gate-{}.sock", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let address = ListenAddress::Unix(path.as_os_str().as_encoded_bytes().into());
    let mut ignored = Vec::new();
    let options = ListenOptions {
        deferred: true,
        ..ListenOptions::default()
    };
    let gate = Gate::open(&address, &options, &mut ignored).unwrap();
    assert!(ignored.is_empty(), "{ignored:?}");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o666
    );
    let _client = UnixStream::connect(&path).unwrap();
    assert_eq!(gate.accept().unwrap().1, PeerAddress::Unix);
    assert_eq!(gate.queue().unwrap(), None);

    let gate = Gate::adopt(gate.into_descriptor()).unwrap();
    assert_eq!(gate.address(), &address);
    drop(gate);
    let stale = Gate::open(&address, &options, &mut ignored).unwrap_err();
    assert!(stale.is_address_in_use(), "a stale file is not removed");
    let gate = Gate {
        descriptor: socket::open(address.family(), Kind::Stream).unwrap(),
        address,
    };
    gate.remove_file().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_group_shares_one_port_and_gates_can_be_adopted() {
    let options = ListenOptions {
        reuseport: Reuseport::Hash,
        ..ListenOptions::default()
    };
    let mut ignored = Vec::new();
    let any = any_port("127.0.0.1:0");
    let gates = Gate::open_group(&any, &options, 3, &mut ignored).unwrap();
    assert_eq!(gates.len(), 3);
    for gate in gates {
        let address = gate.address().clone();
        let gate = Gate::adopt(gate.into_descriptor()).unwrap();
        assert_eq!(gate.address(), &address);
        assert_eq!(gate.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
    let alone = ListenOptions::default();
    assert!(
        Gate::open_group(&any, &alone, 2, &mut ignored)
            .unwrap_err()
            .is_address_in_use()
    );
    let deaf = socket::open(any.family(), Kind::Stream).unwrap();
    assert_eq!(
        Gate::adopt(deaf).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn a_turn_goes_from_lane_to_lane() {
    use Turn::{Listen, Rest};
    let mutex = AcceptMutex::new();
    let (mut one, mut two) = (AcceptTurn::new(0), AcceptTurn::new(1));
    assert_eq!(one.begin(&mutex), Listen { arm: true });
    assert_eq!(
        (mutex.holder(), two.begin(&mutex)),
        (Some(0), Rest { disarm: false })
    );
    one.end(&mutex);
    assert_eq!(one.begin(&mutex), Listen { arm: false });
    one.end(&mutex);
    assert_eq!(two.begin(&mutex), Listen { arm: true });
    assert_eq!(one.begin(&mutex), Rest { disarm: true });
    two.end(&mutex);
    // If fewer than 100/8 are free, the lane pauses for the missing number of turns and then tries
    // again.
    for (free, rounds) in [(50, 0), (12, 0), (10, 2), (0, 12)] {
        two.balance(100, free);
        for round in 0..rounds {
            assert!(
                matches!(two.begin(&mutex), Rest { .. }),
                "free {free}, round {round}"
            );
        }
        assert!(matches!(two.begin(&mutex), Listen { .. }), "free {free}");
        two.end(&mutex);
    }
    assert_eq!(two.begin(&mutex), Listen { arm: false });
    two.end(&mutex);
    // A pause ends early where nobody else would accept.
    two.balance(100, 0);
    assert!(two.rests());
    two.end_rest();
    assert!(!two.rests());
    assert!(matches!(two.begin(&mutex), Rest { .. }));
    assert!(matches!(two.begin(&mutex), Listen { .. }));
    two.end(&mutex);
    two.begin(&mutex);
    two.disarmed(&mutex);
    assert_eq!(
        (mutex.holder(), two.begin(&mutex)),
        (None, Rest { disarm: false })
    );
    assert_eq!(two.begin(&mutex), Listen { arm: true });
}

/// Tests every order in which three lanes can take four steps each: begin, end, begin, end.
#[test]
fn in_every_interleaving_one_lane_at_most_holds_the_mutex() {
    const LANES: usize = 3;
    const STEPS: usize = 4;
    fn explore(schedule: &mut Vec<usize>, taken: &mut [usize; LANES], count: &mut usize) {
        if schedule.len() == LANES * STEPS {
            replay(schedule);
            *count += 1;
            return;
        }
        for lane in 0..LANES {
            if taken[lane] < STEPS {
                taken[lane] += 1;
                schedule.push(lane);
                explore(schedule, taken, count);
                schedule.pop();
                taken[lane] -= 1;
            }
        }
    }
    fn replay(schedule: &[usize]) {
        let mutex = AcceptMutex::new();
        let mut turns: Vec<_> = (0..LANES).map(AcceptTurn::new).collect();
        let mut steps = [0; LANES];
        let (mut armed, mut holds) = ([false; LANES], [false; LANES]);
        for &lane in schedule {
            if steps[lane] % 2 == 1 {
                turns[lane].end(&mutex);
                holds[lane] = false;
            } else {
                let was_free = !holds.contains(&true);
                let turn = turns[lane].begin(&mutex);
                holds[lane] = matches!(turn, Turn::Listen { .. });
                assert_eq!(holds[lane], was_free, "{schedule:?}");
                match turn {
                    Turn::Listen { arm } => assert_eq!(arm, !armed[lane], "{schedule:?}"),
                    Turn::Rest { disarm } => assert_eq!(disarm, armed[lane], "{schedule:?}"),
                }
                armed[lane] = holds[lane];
            }
            steps[lane] += 1;
            assert!(
                holds.iter().filter(|held| **held).count() <= 1,
                "{schedule:?}"
            );
            let holder = holds.iter().position(|held| *held);
            assert_eq!(mutex.holder(), holder, "{schedule:?}");
        }
        assert_eq!(mutex.holder(), None);
    }
    let mut count = 0;
    explore(&mut Vec::new(), &mut [0; LANES], &mut count);
    assert_eq!(count, 34_650);
}

#[test]
fn threads_never_hold_the_mutex_together() {
    let (mutex, inside, turns) = (AcceptMutex::new(), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let (mutex, inside, turns) = (&mutex, &inside, &turns);
            scope.spawn(move || {
                let mut turn = AcceptTurn::new(lane);
                let mut won = 0;
                while won < 200 {
                    if matches!(turn.begin(mutex), Turn::Listen { .. }) {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        won += 1;
                    }
                    turn.end(mutex);
                    std::thread::yield_now();
                }
                turns.fetch_add(won, Ordering::SeqCst);
            });
        }
    });
    assert_eq!((turns.into_inner(), mutex.holder()), (800, None));
}

fn read(gate: &Gate) -> Vec<(Vec<u8>, PeerAddress, Option<IpAddr>)> {
    let mut batch = Batch::default();
    match batch.receive(gate.as_fd(), DATAGRAMS_MAX) {
        Ok(count) => assert_eq!(batch.datagrams().len(), count),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
    }
    let all = batch.datagrams();
    all.map(|datagram| (datagram.bytes.to_vec(), datagram.peer, datagram.local))
        .collect()
}

#[test]
fn datagrams_come_in_batches_with_both_addresses_and_go_back_from_the_same() {
    for (listen, client, to) in [
        ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.9"),
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::]:0", "[::1]:0", "::1"),
    ] {
        let address = ListenAddress::Udp(listen.parse().unwrap());
        let options = ListenOptions::default();
        let gate = Gate::open(&address, &options, &mut Vec::new()).unwrap();
        let gate = Gate::adopt(gate.into_descriptor()).unwrap();
        assert!(gate.queue().unwrap().is_none());
        let client = UdpSocket::bind(client).unwrap();
        let to: IpAddr = to.parse().unwrap();
        client
            .connect((to, gate.address().port().unwrap()))
            .unwrap();
        for text in ["one", "", "three"] {
            client.send(text.as_bytes()).unwrap();
        }
        let all = read(&gate);
        let texts: Vec<&[u8]> = all.iter().map(|(bytes, ..)| &**bytes).collect();
        assert_eq!(texts, [b"one".as_slice(), b"", b"three"]);
        let peer = client.local_addr().unwrap();
        let is_any = listen != "127.0.0.1:0";
        assert!(all.iter().all(|(_, from, local)| {
            *from == PeerAddress::Inet(peer) && *local == is_any.then_some(to)
        }));
        let route = Route {
            peer: Some(peer),
            source: is_any.then_some(to),
        };
        // Those of one length are cut out of one send, where the kernel can do that.
        let more: [&[u8]; 6] = [b"aaaa", b"bbbb", b"cc", b"dddd", b"eeee", b"f"];
        let mut batch = Batch::default();
        for texts in [&texts[..], &more, &more[..3], &more[..1], &[]] {
            let cuts = Cell::new(true);
            let sent = datagram::send(gate.as_fd(), texts.iter().copied(), route, &cuts);
            assert_eq!(sent.unwrap(), texts.len());
            let mut answers: Vec<Vec<u8>> = Vec::new();
            while answers.len() < texts.len() {
                match batch.receive_connected(client.as_fd(), 2) {
                    Ok(_) => answers.extend(batch.bytes().map(<[u8]>::to_vec)),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            assert_eq!(answers, texts);
        }
    }
}

#[test]
fn a_flow_reaches_one_gate_of_a_group_with_any_number_of_spares() {
    for local in ["127.0.0.1:0", "[::1]:0"] {
        let options = ListenOptions {
            reuseport: Reuseport::Hash,
            ..ListenOptions::default()
        };
        let address = ListenAddress::Udp(local.parse().unwrap());
        let gates = Gate::open_group(&address, &options, 4, &mut Vec::new()).unwrap();
        let to: std::net::SocketAddr = match gates[0].address() {
            ListenAddress::Udp(address) => *address,
            other => panic!("{other}"),
        };
        for (lanes, flows) in [(4, 16), (2, 32), (1, 4), (3, 8)] {
            crate::steering::prefer_first(&gates, lanes);
            let clients: Vec<UdpSocket> = (0..flows)
                .map(|_| UdpSocket::bind(local).unwrap())
                .collect();
            for client in &clients {
                for _ in 0..3 {
                    client.send_to(b"x", to).unwrap();
                }
            }
            let mut found = Vec::new();
            for (place, gate) in gates.iter().enumerate() {
                loop {
                    let all = read(gate);
                    if all.is_empty() {
                        break;
                    }
                    found.extend(all.into_iter().map(|(_, peer, _)| (place, peer)));
                }
            }
            assert_eq!(found.len(), flows * 3);
            assert!(
                found.iter().all(|(place, _)| *place < lanes),
                "{lanes}: {found:?}"
            );
            found.sort_by_key(|(place, peer)| (*place, peer.inet()));
            found.dedup();
            assert_eq!(found.len(), flows, "one gate a flow");
            let used: std::collections::BTreeSet<usize> =
                found.iter().map(|(place, _)| *place).collect();
            assert!(used.len() > 1 || lanes == 1, "{lanes}: {found:?}");
        }
    }
}

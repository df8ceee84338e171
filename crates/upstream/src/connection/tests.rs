#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

use tokio::runtime::Builder;
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Origin, Step};

use super::{ConnectError, ConnectOptions, Connection};
use crate::{Address, KeepAlive, Liveness, Picked, Pool};
use crate::{Group, GroupSettings, GroupStates, Peer, PeerSettings, PeerState, Selection};

/// The time limit of a test's waits.
const PATIENCE_MS: u64 = 60_000;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test)
}

fn picked(port: u16) -> Picked {
    let address = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let peer = Peer::new("peer", address, PeerSettings::default(), PeerState::new(1));
    let states = Arc::new(GroupStates::default());
    let group = Group::new(
        "group",
        GroupSettings::default(),
        vec![vec![Arc::new(peer)]],
        states,
    );
    group.begin(&Selection::default()).next(1).unwrap()
}

fn options() -> ConnectOptions<'static> {
    ConnectOptions {
        timeout_ms: PATIENCE_MS,
        ..ConnectOptions::default()
    }
}

/// Sends a request and reads one piece of its response.
async fn exchange(connection: &Connection) -> Vec<u8> {
    let mut answer = Vec::new();
    connection
        .write_all(b"GET / HTTP/1.1\r\n\r\n", PATIENCE_MS)
        .await
        .unwrap();
    connection
        .read(&mut answer, 4096, PATIENCE_MS)
        .await
        .unwrap();
    answer
}

#[test]
fn only_a_second_piece_has_to_be_sent_without_delay() {
    // It closes only after our side: the last pieces would otherwise meet a closed connection.
    let origin = Origin::start(vec![vec![Step::ReadToEnd]]);
    let head = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    run(async {
        let picked = picked(origin.port());
        for is_file in [false, true] {
            let connection = Connection::open(&picked, &options(), 0).await.unwrap();
            connection.write_all(head, PATIENCE_MS).await.unwrap();
            assert!(connection.delays.get());
            if is_file {
                let sent = connection.send_file(file.as_fd(), 0, 2, PATIENCE_MS);
                assert_eq!(sent.await.unwrap(), 2);
            } else {
                connection.write_all(b"bo", PATIENCE_MS).await.unwrap();
            }
            assert!(!connection.delays.get(), "{is_file}");
            connection.write_all(b"dy", PATIENCE_MS).await.unwrap();
            assert!(!connection.delays.get());
        }
    });
}

#[test]
fn a_connection_is_kept_and_used_again() {
    let turn = || [Step::ReadHead, Step::send("answer")];
    let origin = Origin::start(vec![[turn(), turn()].concat()]);
    run(async {
        let (picked, pool) = (picked(origin.port()), Pool::new(KeepAlive::default()));
        assert!(pool.take(&picked, &options(), 0, Liveness::Trust).is_none());
        let connection = Connection::open(&picked, &options(), 0).await.unwrap();
        assert_eq!(exchange(&connection).await, b"answer");
        assert!(!connection.is_reused());
        assert_eq!(
            (connection.bytes_sent(), connection.bytes_received()),
            (18, 6)
        );
        pool.put(connection, 5);
        let other = ConnectOptions {
            location: 1,
            ..options()
        };
        assert!(pool.take(&picked, &other, 6, Liveness::Trust).is_none());
        let connection = pool.take(&picked, &options(), 6, Liveness::Trust).unwrap();
        assert!(connection.is_reused() && pool.is_empty());
        assert_eq!(exchange(&connection).await, b"answer");
        assert_eq!(
            (connection.bytes_sent(), connection.bytes_received()),
            (18, 6)
        );
    });
    assert_eq!(origin.received().len(), 1);
}

#[test]
fn connections_closed_by_the_peer_are_not_reused() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send("answer")]]);
    run(async {
        let (picked, pool) = (picked(origin.port()), Pool::new(KeepAlive::default()));
        let connection = Connection::open(&picked, &options(), 0).await.unwrap();
        assert_eq!(exchange(&connection).await, b"answer");
        // The origin closes after its script; after that event the pool must notice it.
        connection.relay_end().readable().await.unwrap();
        pool.put(connection, 0);
        assert!(pool.take(&picked, &options(), 0, Liveness::Trust).is_none());
    });
}

#[test]
fn idle_connections_are_limited_by_age_uses_and_number() {
    let turn = vec![Step::ReadHead, Step::send("answer"), Step::ReadToEnd];
    let origin = Origin::start(vec![turn]);
    let settings = KeepAlive {
        connections_max: 2,
        requests_max: 2,
        time_ms: 1_000,
        timeout_ms: 100,
        local: false,
    };
    run(async {
        let (picked, pool) = (picked(origin.port()), Pool::new(settings));
        let open = async || Connection::open(&picked, &options(), 0).await.unwrap();
        for count in [1, 2, 2] {
            pool.put(open().await, 0);
            assert_eq!(pool.len(), count);
        }
        let second = pool.take(&picked, &options(), 50, Liveness::Trust).unwrap();
        pool.put(second, 50); // its second request was its last
        assert_eq!(pool.len(), 1);
        pool.tick(99);
        assert_eq!(pool.len(), 1);
        pool.tick(100);
        assert!(pool.is_empty());
        pool.put(open().await, 1_001); // too old
        assert!(pool.is_empty());
        pool.put(open().await, 0);
        pool.forget(&picked);
        assert!(pool.is_empty());
    });
}

#[test]
fn as_many_connections_again_are_kept_for_a_moment() {
    let origin = Origin::start(vec![vec![Step::ReadToEnd]]);
    let settings = KeepAlive {
        connections_max: 33,
        ..KeepAlive::default()
    };
    run(async {
        let (picked, pool) = (picked(origin.port()), Pool::new(settings));
        for opened in 1..=80 {
            let connection = Connection::open(&picked, &options(), opened).await;
            pool.put(connection.unwrap(), opened);
            assert_eq!(pool.len() as u64, opened.min(66));
        }
        // The oldest was put back at 15.
        for (now_ms, count) in [(114, 66), (115, 65), (118, 62), (150, 33), (1_000, 33)] {
            pool.tick(now_ms);
            assert_eq!(pool.len(), count, "{now_ms}");
        }
        let kept = pool
            .take(&picked, &options(), 1_000, Liveness::Trust)
            .unwrap();
        assert_eq!(kept.opened_ms(), 80);
    });
}

#[test]
fn failures_name_their_cause() {
    let refused = RefusedPort::new().unwrap();
    run(async {
        let error = Connection::open(&picked(refused.number()), &options(), 0)
            .await
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "connect() failed (111: Connection refused)"
        );
        assert!(matches!(error, ConnectError::Connect(_)));
    });
    let origin = Origin::start(vec![vec![Step::ReadToEnd]]);
    run(async {
        let connection = Connection::open(&picked(origin.port()), &options(), 0)
            .await
            .unwrap();
        let read = connection.read(&mut Vec::new(), 1, 1).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

//! Answers as they come on the wire, each to a question of a check of its own.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use turnpike_lane::log::ErrorLog;
use turnpike_testkit::{Origin, Step};
use turnpike_upstream::{
    Address, Asks, BackgroundTask as _, Check, CheckRules, Group, GroupSettings, GroupStates, Peer,
    PeerSettings, PeerState,
};

use super::HttpQuestion;

/// How long a test waits for what must come.
const PATIENCE_MS: u64 = 60_000;

/// Answers, and whether they make a peer well.
const CASES: &[(&str, bool)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true),
    ("HTTP/1.0 302 Moved\r\n\r\nuntil the end", true),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        false,
    ),
    ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", false),
    ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false),
    ("garbage\r\n\r\n", false),
    ("", false),
];

fn group(port: u16) -> Arc<Group> {
    let address = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let peer = Peer::new("peer", address, PeerSettings::default(), PeerState::new(1));
    let states = Arc::new(GroupStates::default());
    let peers = vec![vec![Arc::new(peer)]];
    Group::new("group", GroupSettings::default(), peers, states)
}

/// Checks the peer until it is well, or until it is not. One that is to become well takes nothing
/// before its first good answer.
fn wait_until(port: u16, well: bool, read_timeout_ms: u64) {
    let group = group(port);
    let check = Check {
        group: Arc::downgrade(&group),
        number: 0,
        rules: CheckRules {
            mandatory: well,
            ..CheckRules::default()
        },
        question: Asks::Connection(Arc::new(HttpQuestion {
            request: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            conditions: None,
            read_timeout_ms,
        })),
        proxy_header: Vec::new(),
        tls: None,
        connect_timeout_ms: PATIENCE_MS,
        log: ErrorLog::none(),
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let task = tokio::task::spawn_local(Arc::new(check).run());
        // The check has begun: it says at once which peers wait for it.
        tokio::task::yield_now().await;
        let is_well = || group.peers()[0].state().is_healthy();
        let changed = async {
            while is_well() != well {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let limit = tokio::time::timeout(Duration::from_millis(PATIENCE_MS), changed);
        limit.await.unwrap();
        task.abort();
    });
}

#[test]
fn answers_are_judged() {
    for (text, well) in CASES {
        let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(text)]]);
        wait_until(origin.port(), *well, PATIENCE_MS);
    }
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    wait_until(silent.local_addr().unwrap().port(), false, 1);
}

//! `hash ... consistent`: every server has points on a ring, and a key goes to the next one
//! (ketama, as in Cache::Memcached::Fast).

use std::sync::Arc;

use super::choice::Choice;
use super::crc32::Crc32;
use super::round_robin;
use crate::peer::Peer;

/// The points of a server for each unit of its weight.
const POINTS_PER_WEIGHT: i64 = 160;

/// The most points of a ring: a weight may be any `u32`, and a ring for the largest would not fit
/// into memory.
const POINTS_MAX: usize = 4 << 20;

/// The ring: the positions of points, and their servers.
pub(crate) struct Ring {
    points: Vec<Point>,
    servers: Vec<Box<str>>,
}

struct Point {
    hash: u32,
    server: u32,
}

impl Ring {
    /// The ring of these peers. All addresses of one name are one server.
    pub(crate) fn new(peers: &[Arc<Peer>]) -> Ring {
        let mut ring = Ring {
            points: Vec::new(),
            servers: Vec::new(),
        };
        for peer in peers {
            ring.add(peer);
        }
        ring.points.sort_by_key(|point| point.hash);
        ring.points.dedup_by_key(|point| point.hash);
        ring
    }

    fn add(&mut self, peer: &Peer) {
        let server = self.servers.len() as u32;
        self.servers.push(peer.server().into());
        let (host, port) = parts(peer.server());
        let base = Crc32::new().with(host).with(b"\0").with(port);
        let mut previous = 0_u32;
        for _ in 0..peer.weight().saturating_mul(POINTS_PER_WEIGHT) {
            if self.points.len() >= POINTS_MAX {
                return;
            }
            let hash = base.with(&previous.to_le_bytes()).value();
            self.points.push(Point { hash, server });
            previous = hash;
        }
    }
}

/// Host and port for the hash: digits after the last colon are a port.
fn parts(server: &str) -> (&[u8], &[u8]) {
    let bytes = server.as_bytes();
    if bytes.len() >= 5 && bytes[..5].eq_ignore_ascii_case(b"unix:") {
        return (&bytes[5..], b"");
    }
    let digits = bytes
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let port = bytes.len() - digits;
    match bytes[..port].split_last() {
        Some((b':', host)) => (host, &bytes[port..]),
        _ => (bytes, b""),
    }
}

pub(super) fn next<'a>(
    ring: &Ring,
    peers: &'a [Arc<Peer>],
    choice: &mut Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    if choice.key.is_empty() || ring.points.is_empty() {
        return None;
    }
    let mut place = match choice.hash {
        Some(place) => place,
        None => {
            let hash = Crc32::new().with(&choice.key).value();
            ring.points.partition_point(|point| point.hash < hash) as u64
        }
    };
    loop {
        let point = &ring.points[place as usize % ring.points.len()];
        let server = &*ring.servers[point.server as usize];
        let of_server = |peer: &Peer| peer.server() == server;
        if let Some(peer) = round_robin::among(peers, choice, now_ms, of_server) {
            choice.hash = Some(place);
            return Some(peer);
        }
        place += 1;
        choice.hash = Some(place);
        if choice.proposal_failed() {
            return None;
        }
    }
}

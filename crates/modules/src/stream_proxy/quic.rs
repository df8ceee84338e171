//! Connections of QUIC: a client whose address changes begins another flow, and that flow goes to
//! the server that has the connection.
//!
//! A server says in its first packets, which are not encrypted as far, by which ID its client is to
//! call it. IDs that it gives later are encrypted: a client that takes one of them at the same time
//! as another address is not recognised. The server itself checks the new address (RFC 9000 section
//! 8.2), since it sees another one of ours too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnpike_plan::builder::Builder;
use turnpike_wire::quic::{CONNECTION_ID_BYTES_MAX, Header, header};

use crate::common::zone;
use crate::upstream::Sessions;

/// Connections that are remembered, some 10 MB: the one that began longest ago makes room.
const CONNECTIONS_MAX: usize = 65_536;

/// How long one is remembered. Its packets are not looked at once it has begun, so that nobody
/// knows its end.
const LIFE_MS: u64 = 24 * 3600 * 1000;

/// The servers of connections, for all lanes. A reload keeps them.
pub(super) struct Connections {
    servers: Sessions,
    /// The lengths of IDs that servers have chosen, a bit each.
    lengths: AtomicU32,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            servers: Sessions::of_number(CONNECTIONS_MAX, LIFE_MS),
            lengths: AtomicU32::new(0),
        }
    }
}

impl Connections {
    /// The connections that were noted so far.
    pub(super) fn open<S>(builder: &mut Builder<'_, S>) -> Arc<Connections> {
        zone::unnamed(builder, "quic connections", Connections::default)
    }

    /// The identity of the server that has the connection of a client's datagram, if it is known.
    pub(super) fn server(&self, datagram: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        match header(datagram)? {
            Header::Long { destination, .. } => self.servers.server(destination, now_ms),
            Header::Short { rest } => {
                let lengths = self.lengths.load(Ordering::Relaxed);
                (1..=CONNECTION_ID_BYTES_MAX)
                    .filter(|length| lengths & bit(*length) != 0)
                    .filter_map(|length| rest.get(..length))
                    .find_map(|id| self.servers.server(id, now_ms))
            }
        }
    }

    /// Notes the IDs that a server gives itself in these datagrams.
    pub(super) fn note<'a>(
        &self,
        datagrams: impl Iterator<Item = &'a [u8]>,
        server: &str,
        now_ms: u64,
    ) {
        for datagram in datagrams {
            if let Some(Header::Long {
                version: 1..,
                source,
                ..
            }) = header(datagram)
                && (1..=CONNECTION_ID_BYTES_MAX).contains(&source.len())
            {
                let lengths = bit(source.len());
                self.lengths.fetch_or(lengths, Ordering::Relaxed);
                self.servers.begin(source, server, now_ms);
            }
        }
    }
}

fn bit(length: usize) -> u32 {
    1 << length
}

#[cfg(test)]
mod tests {
    use super::{Connections, LIFE_MS};

    /// A server's packet with a long header of this version, by which it calls itself `id`.
    fn given(version: u8, id: &[u8]) -> Vec<u8> {
        let head = [0xc0, 0, 0, 0, version, 2, b'c', b'l', id.len() as u8];
        [&head, id, b"rest"].concat()
    }

    #[test]
    fn datagrams_lead_to_the_server_that_has_the_connection() {
        let connections = Connections::default();
        let packets = [
            given(1, b"eight888"),
            given(1, b"four"),
            given(0, b"negotiated"),
            given(1, &[b'x'; 21]),
            b"\x40short".to_vec(),
        ];
        for (packet, server) in packets.iter().zip(["one", "two", "one", "one", "one"]) {
            connections.note([packet.as_slice()].into_iter(), server, 0);
        }
        let long = |id: &[u8]| [&[0xe0, 0, 0, 0, 1, id.len() as u8], id, b"\0"].concat();
        let cases: [(&[u8], Option<&str>); 8] = [
            (b"\x40eight888 and more", Some("one")),
            (b"\x41four and more", Some("two")),
            (&long(b"four"), Some("two")),
            (b"\x40eight88", None),
            (b"\x40negotiated", None),
            (b"\x40xxxxxxxxxxxxxxxxxxxxx", None),
            (b"\x40other", None),
            (b"", None),
        ];
        for (datagram, expected) in cases {
            let server = connections.server(datagram, 1);
            assert_eq!(
                server.as_deref(),
                expected.map(str::as_bytes),
                "{datagram:?}"
            );
        }
        assert_eq!(connections.server(b"\x40four", LIFE_MS), None);
    }
}

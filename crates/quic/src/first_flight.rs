//! The first flight of a client: its ClientHello is put together from the CRYPTO frames of Initial
//! packets, which anybody can decrypt, before a connection is made of it. So the server is chosen
//! first, as over TCP. A hello with keys of post-quantum groups takes two datagrams, in any order.

use bytes::BytesMut;
use quinn_proto::crypto::Keys;
use turnpike_wire::quic::initial::{self, InitialPacket};

use crate::limits::HELLO_BYTES_MAX;

/// Pieces of a hello that may be apart from each other. Browsers cut it into a dozen pieces on
/// purpose, and send them in any order.
const PIECES_MAX: usize = 64;

/// Bytes of a handshake message before its content: its type and length (RFC 8446 section 4).
const MESSAGE_HEADER_BYTES: usize = 4;

/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;

/// Content of a TLS record, and what is before it (RFC 8446 section 5.1).
const RECORD_BYTES_MAX: usize = 16 * 1024;
const RECORD_HEADER: [u8; 3] = [22, 3, 1];

/// What has come of a first flight.
pub(crate) struct FirstFlight {
    keys: Keys,
    /// The hello, with gaps.
    hello: Vec<u8>,
    /// The parts of it that have come, sorted, apart from each other.
    pieces: Vec<(usize, usize)>,
}

/// The state of a ClientHello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelloState {
    /// More has to come.
    Partial,
    /// The ClientHello, as records of TLS.
    Whole(Vec<u8>),
    /// What has come is none, or is larger than any.
    Invalid,
}

impl FirstFlight {
    /// A flight whose packets have these keys.
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            keys,
            hello: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes what a datagram has of it. Packets that nobody has encrypted well are left out, as if
    /// they had been lost.
    pub(crate) fn add(&mut self, datagram: &[u8]) -> HelloState {
        for packet in initial::packets(datagram) {
            let Some(payload) = self.decrypt(datagram, packet) else {
                continue;
            };
            let mut is_invalid = false;
            let Self { hello, pieces, .. } = self;
            let whole = initial::crypto_frames(&payload, |offset, data| {
                is_invalid |= !place(hello, pieces, offset, data);
            });
            if is_invalid || whole.is_none() {
                return HelloState::Invalid;
            }
        }
        self.state()
    }

    fn decrypt(&self, datagram: &[u8], packet: InitialPacket<'_>) -> Option<BytesMut> {
        let mut bytes = datagram.get(packet.start..packet.end)?.to_vec();
        let number_at = packet.number_at - packet.start;
        let header_key = &self.keys.header.remote;
        // The sample for the header begins four bytes behind the number.
        if bytes.len() < number_at + 4 + header_key.sample_size() {
            return None;
        }
        header_key.decrypt(number_at, &mut bytes);
        let number_bytes = usize::from(bytes.first()? & 3) + 1;
        let (header, payload) = bytes.split_at_checked(number_at + number_bytes)?;
        let number = header.get(number_at..)?;
        let number = number
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let mut payload = BytesMut::from(payload);
        let key = &self.keys.packet.remote;
        key.decrypt(number, header, &mut payload).ok()?;
        Some(payload)
    }

    fn state(&self) -> HelloState {
        let come = match self.pieces.first() {
            Some((0, end)) => self.hello.get(..*end).unwrap_or_default(),
            _ => return HelloState::Partial,
        };
        let Some((header, _)) = come.split_first_chunk::<MESSAGE_HEADER_BYTES>() else {
            return HelloState::Partial;
        };
        let [kind, a, b, c] = *header;
        let length = u32::from_be_bytes([0, a, b, c]) as usize + MESSAGE_HEADER_BYTES;
        match come.get(..length) {
            _ if kind != CLIENT_HELLO || length > HELLO_BYTES_MAX => HelloState::Invalid,
            Some(hello) => HelloState::Whole(records(hello)),
            None => HelloState::Partial,
        }
    }
}

/// Puts a piece of the hello where it belongs; `false`: there is no place for it.
fn place(hello: &mut Vec<u8>, pieces: &mut Vec<(usize, usize)>, offset: u64, data: &[u8]) -> bool {
    let Ok(mut start) = usize::try_from(offset) else {
        return false;
    };
    let Some(mut end) = start
        .checked_add(data.len())
        .filter(|end| *end <= HELLO_BYTES_MAX)
    else {
        return false;
    };
    if hello.len() < end {
        hello.resize(end, 0);
    }
    hello[start..end].copy_from_slice(data);
    pieces.retain(|(other_start, other_end)| {
        let touches = *other_start <= end && start <= *other_end;
        if touches {
            (start, end) = (start.min(*other_start), end.max(*other_end));
        }
        !touches
    });
    let at = pieces.partition_point(|(other_start, _)| *other_start < start);
    pieces.insert(at, (start, end));
    pieces.len() <= PIECES_MAX
}

/// A handshake message as records, in which TLS over TCP has it.
fn records(message: &[u8]) -> Vec<u8> {
    let mut records = Vec::with_capacity(message.len() + 2 * (RECORD_HEADER.len() + 2));
    for content in message.chunks(RECORD_BYTES_MAX) {
        records.extend_from_slice(&RECORD_HEADER);
        records.extend_from_slice(&(content.len() as u16).to_be_bytes());
        records.extend_from_slice(content);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::{PIECES_MAX, place, records};

    #[test]
    fn pieces_come_in_any_order_and_overlap() {
        let (mut hello, mut pieces) = (Vec::new(), Vec::new());
        for (offset, data) in [(4, "ef"), (0, "ab"), (5, "fgh"), (1, "bcde")] {
            assert!(place(&mut hello, &mut pieces, offset, data.as_bytes()));
        }
        assert_eq!(
            (hello.as_slice(), pieces.as_slice()),
            (b"abcdefgh".as_slice(), [(0, 8)].as_slice())
        );
    }

    #[test]
    fn pieces_are_limited() {
        let (mut hello, mut pieces) = (Vec::new(), Vec::new());
        for number in 0..PIECES_MAX as u64 {
            assert!(place(&mut hello, &mut pieces, 2 * number, b"a"));
        }
        assert!(!place(&mut hello, &mut pieces, 2 * PIECES_MAX as u64, b"a"));
        assert!(!place(&mut Vec::new(), &mut Vec::new(), u64::MAX, b"a"));
        assert!(!place(&mut Vec::new(), &mut Vec::new(), 1 << 20, b"a"));
    }

    #[test]
    fn a_message_becomes_records() {
        assert_eq!(records(b"ab"), b"\x16\x03\x01\0\x02ab");
        assert_eq!(records(&[0; 16 * 1024 + 1]).len(), 16 * 1024 + 1 + 10);
    }
}

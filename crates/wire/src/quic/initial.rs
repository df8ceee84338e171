//! Initial packets (RFC 9000 section 17.2.2), and the CRYPTO frames in them: the first flight of a
//! client holds its ClientHello, in one piece or in many, in any order.

use super::LongType;
use crate::varint;

/// The version that is read (RFC 9000).
pub const VERSION: u32 = 1;

/// Set in the first byte of a long header.
const LONG: u8 = 0x80;

/// Bytes of a packet's first byte and version.
const BEGINNING_BYTES: usize = 5;

/// Frames (RFC 9000 section 12.4), of which others must not stand in an Initial packet.
const PADDING: u64 = 0x00;
const PING: u64 = 0x01;
const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;
const CRYPTO: u64 = 0x06;

/// Ranges of an ACK frame that are read: a client has not got more packets of a first flight.
const ACK_RANGES_MAX: u64 = 256;

/// An Initial packet in a datagram, by places in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialPacket<'b> {
    /// The ID that the client has chosen for the server, or has got from it.
    pub destination: &'b [u8],
    /// Where the packet begins.
    pub start: usize,
    /// Where its packet number begins, which is encrypted.
    pub number_at: usize,
    /// Where the packet ends.
    pub end: usize,
}

/// The Initial packets in a datagram. What is not well-formed ends them.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = InitialPacket<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (packet, is_initial) = packet_at(datagram, at)?;
            at = packet.end;
            if is_initial {
                return Some(packet);
            }
        }
    })
}

/// The packet that begins there, and whether it is an Initial one; `None`: none does that says
/// where it ends.
fn packet_at(datagram: &[u8], start: usize) -> Option<(InitialPacket<'_>, bool)> {
    let packet = datagram.get(start..)?;
    let (first, rest) = packet.split_first()?;
    let kind = LongType::of(*first);
    let (version, _) = rest.split_first_chunk()?;
    if first & LONG == 0 || u32::from_be_bytes(*version) != VERSION || kind == LongType::Retry {
        return None;
    }
    let mut rest = packet.get(BEGINNING_BYTES..)?;
    let destination = take_id(&mut rest)?;
    take_id(&mut rest)?;
    if kind == LongType::Initial {
        let token_bytes = usize::try_from(varint::read(&mut rest)?).ok()?;
        rest = rest.get(token_bytes..)?;
    }
    let length = usize::try_from(varint::read(&mut rest)?).ok()?;
    rest.get(..length)?;
    let number_at = datagram.len() - rest.len();
    let packet = InitialPacket {
        destination,
        start,
        number_at,
        end: number_at + length,
    };
    Some((packet, kind == LongType::Initial))
}

/// Calls `each` for every CRYPTO frame in a decrypted payload, with its offset; `None`: the payload
/// is not well-formed, or has a frame that must not be there.
pub fn crypto_frames(mut payload: &[u8], mut each: impl FnMut(u64, &[u8])) -> Option<()> {
    while !payload.is_empty() {
        match varint::read(&mut payload)? {
            PADDING | PING => {}
            kind @ (ACK | ACK_ECN) => skip_ack(&mut payload, kind == ACK_ECN)?,
            CRYPTO => {
                let offset = varint::read(&mut payload)?;
                let length = usize::try_from(varint::read(&mut payload)?).ok()?;
                let (data, rest) = payload.split_at_checked(length)?;
                payload = rest;
                each(offset, data);
            }
            _ => return None,
        }
    }
    Some(())
}

fn skip_ack(payload: &mut &[u8], has_ecn: bool) -> Option<()> {
    varint::read(payload)?;
    varint::read(payload)?;
    let ranges = varint::read(payload)?;
    if ranges > ACK_RANGES_MAX {
        return None;
    }
    let counts = if has_ecn { 3 } else { 0 };
    for _ in 0..1 + 2 * ranges + counts {
        varint::read(payload)?;
    }
    Some(())
}

fn take_id<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (id, rest) = super::connection_id(bytes)?;
    *bytes = rest;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::{InitialPacket, crypto_frames, packets};

    #[test]
    fn packets_are_found_among_others() {
        let initial = b"\xc3\0\0\0\x01\x02ab\0\x01t\x03xyz";
        let handshake = b"\xe3\0\0\0\x01\x02ab\0\x02xy";
        let datagram = [initial.as_slice(), handshake, initial, b"\x40"].concat();
        let packet = |start| InitialPacket {
            destination: b"ab",
            start,
            number_at: start + 12,
            end: start + 15,
        };
        let found: Vec<_> = packets(&datagram).collect();
        assert_eq!(found, [packet(0), packet(initial.len() + handshake.len())]);
        for length in 0..initial.len() {
            assert_eq!(packets(&initial[..length]).count(), 0, "{length}");
        }
    }

    #[test]
    fn crypto_frames_are_found_among_others() {
        let read = |payload: &[u8]| {
            let mut found = Vec::new();
            let whole = crypto_frames(payload, |at, data| found.push((at, data.to_vec())));
            whole.map(|()| found)
        };
        let payload = b"\0\x01\x06\x40\x05\x02ab\x02\x01\0\x01\0\0\0\x06\0\x01c";
        assert_eq!(
            read(payload),
            Some(vec![(5, b"ab".to_vec()), (0, b"c".to_vec())])
        );
        for bad in [b"\x06\0\x02a".as_slice(), b"\x08\0", b"\x02\0\0\x7f\xff\0"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}

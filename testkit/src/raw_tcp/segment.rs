//! A TCP segment in a packet of IPv4, made and read byte by byte (RFC 791, RFC 9293).

use std::net::{Ipv4Addr, SocketAddrV4};

/// Flags of a segment.
pub const FIN: u8 = 0x01;
/// The segment begins a connection.
pub const SYN: u8 = 0x02;
/// The segment ends a connection at once.
pub const RST: u8 = 0x04;
/// The text goes to the application at once.
pub const PSH: u8 = 0x08;
/// The acknowledgement counts.
pub const ACK: u8 = 0x10;

const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const PROTOCOL_TCP: u8 = 6;

/// A segment, with numbers as they stand on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The address of the sender.
    pub source: SocketAddrV4,
    /// The address of the receiver.
    pub destination: SocketAddrV4,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledged number.
    pub acknowledgement: u32,
    /// [`FIN`] and others.
    pub flags: u8,
    /// Window, not shifted.
    pub window: u16,
    /// Options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// Text.
    pub text: Vec<u8>,
}

impl Segment {
    /// A SYN.
    pub fn syn(source: SocketAddrV4, destination: SocketAddrV4, options: &[u8]) -> Segment {
        Segment {
            source,
            destination,
            // Another one for each port: the kernel tells a new connection from an old one by it.
            sequence: u32::from(source.port()).wrapping_mul(0x9e37_79b9),
            acknowledgement: 0,
            flags: SYN,
            window: 64240,
            options: options.to_vec(),
            text: Vec::new(),
        }
    }

    /// The packet.
    pub fn bytes(&self) -> Vec<u8> {
        let tcp_bytes = TCP_BYTES + self.options.len() + self.text.len();
        let mut packet = Vec::with_capacity(IP_BYTES + tcp_bytes);
        packet.extend([0x45, 0]);
        packet.extend(((IP_BYTES + tcp_bytes) as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
        packet.extend(self.source.ip().octets());
        packet.extend(self.destination.ip().octets());
        put_sum(&mut packet, 10, 0);
        let tcp = packet.len();
        packet.extend(self.source.port().to_be_bytes());
        packet.extend(self.destination.port().to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.acknowledgement.to_be_bytes());
        packet.push((((TCP_BYTES + self.options.len()) / 4) << 4) as u8);
        packet.push(self.flags);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(&self.options);
        packet.extend(&self.text);
        let pseudo = sum(&packet[12..IP_BYTES]) + u32::from(PROTOCOL_TCP) + tcp_bytes as u32;
        put_sum(&mut packet[tcp..], 16, pseudo);
        packet
    }

    /// Reads a packet; `None`: it is no segment, or not whole.
    pub fn parse(packet: &[u8]) -> Option<Segment> {
        let byte = |at: usize| packet.get(at).copied();
        let u16_at = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let u32_at = |at: usize| Some(u32::from(u16_at(at)?) << 16 | u32::from(u16_at(at + 2)?));
        if byte(0)? != 0x45 || byte(9)? != PROTOCOL_TCP {
            return None;
        }
        let end = usize::from(u16_at(2)?);
        let text = IP_BYTES + usize::from(byte(IP_BYTES + 12)? >> 4) * 4;
        let address = |ip: usize, port: usize| {
            let ip = Ipv4Addr::from_bits(u32_at(ip)?);
            Some(SocketAddrV4::new(ip, u16_at(port)?))
        };
        Some(Segment {
            source: address(12, IP_BYTES)?,
            destination: address(16, IP_BYTES + 2)?,
            sequence: u32_at(IP_BYTES + 4)?,
            acknowledgement: u32_at(IP_BYTES + 8)?,
            flags: byte(IP_BYTES + 13)?,
            window: u16_at(IP_BYTES + 14)?,
            options: packet.get(IP_BYTES + TCP_BYTES..text)?.to_vec(),
            text: packet.get(text..end)?.to_vec(),
        })
    }

    /// The numbers that the segment takes of the sequence: bytes of text, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.text.len() as u32 + u32::from(self.flags & (SYN | FIN) != 0)
    }

    /// The value of the option with timestamps (RFC 7323); `None`: there is none.
    pub fn timestamp(&self) -> Option<u32> {
        let mut rest = self.options.as_slice();
        loop {
            rest = match rest {
                [1, rest @ ..] => rest,
                [8, 10, a, b, c, d, ..] => return Some(u32::from_be_bytes([*a, *b, *c, *d])),
                [0, ..] => return None,
                [_, length, ..] => rest.get(usize::from(*length).max(2)..)?,
                _ => return None,
            }
        }
    }
}

/// Writes the checksum (RFC 1071) of what stands there and of `more`.
fn put_sum(bytes: &mut [u8], at: usize, more: u32) {
    let mut sum = sum(bytes) + more;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| {
        let second = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_be_bytes([pair[0], second]))
    });
    words.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_as_it_was_made() {
        let [source, destination] = [
            SocketAddrV4::new([10, 9, 0, 7].into(), 4000),
            SocketAddrV4::new([10, 9, 0, 1].into(), 80),
        ];
        let mut segment = Segment::syn(source, destination, &[1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 0, 0]);
        segment.text = b"abc".to_vec();
        let packet = segment.bytes();
        assert_eq!(Segment::parse(&packet), Some(segment.clone()));
        assert_eq!((segment.timestamp(), segment.length()), (Some(258), 4));
        // Both sums are right: with them, all words make 0xffff.
        let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
        assert_eq!(folded(sum(&packet[..20])), 0xffff);
        let pseudo = sum(&packet[12..20]) + 6 + packet[20..].len() as u32;
        assert_eq!(folded(folded(sum(&packet[20..]) + pseudo)), 0xffff);
        for cut in 0..packet.len() {
            assert_eq!(Segment::parse(&packet[..cut]), None, "{cut}");
        }
    }
}

//! A TCP segment in a packet of IPv4 or IPv6, made and read byte by byte (RFC 791, RFC 8200,
//! RFC 9293).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const PROTOCOL_TCP: u8 = 6;

/// A segment, with numbers as they stand on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The address of the sender.
    pub source: SocketAddr,
    /// The address of the receiver.
    pub destination: SocketAddr,
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
    pub fn syn(source: SocketAddr, destination: SocketAddr, options: &[u8]) -> Segment {
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
    ///
    /// # Panics
    /// One address is of IPv4 and the other of IPv6.
    pub fn bytes(&self) -> Vec<u8> {
        let tcp_bytes = TCP_BYTES + self.options.len() + self.text.len();
        let (mut packet, addresses) = self.ip_header(tcp_bytes);
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
        let pseudo = sum(&packet[addresses..tcp]) + u32::from(PROTOCOL_TCP) + tcp_bytes as u32;
        put_sum(&mut packet[tcp..], 16, pseudo);
        packet
    }

    /// The header before the segment, and where its addresses begin.
    fn ip_header(&self, tcp_bytes: usize) -> (Vec<u8>, usize) {
        let mut packet = Vec::with_capacity(IPV6_BYTES + tcp_bytes);
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                packet.extend([0x45, 0]);
                packet.extend(((IPV4_BYTES + tcp_bytes) as u16).to_be_bytes());
                packet.extend([0, 0, 0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
                packet.extend(source.octets());
                packet.extend(destination.octets());
                put_sum(&mut packet, 10, 0);
                (packet, 12)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                packet.extend([0x60, 0, 0, 0]);
                packet.extend((tcp_bytes as u16).to_be_bytes());
                packet.extend([PROTOCOL_TCP, 64]);
                packet.extend(source.octets());
                packet.extend(destination.octets());
                (packet, 8)
            }
            addresses => panic!("addresses of two families: {addresses:?}"),
        }
    }

    /// Reads a packet; `None`: it is no segment, or not whole.
    pub fn parse(packet: &[u8]) -> Option<Segment> {
        let byte = |at: usize| packet.get(at).copied();
        let u16_at = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let u32_at = |at: usize| Some(u32::from(u16_at(at)?) << 16 | u32::from(u16_at(at + 2)?));
        let (tcp, end, [source, destination]) = match (byte(0)? >> 4, byte(6)?, byte(9)?) {
            (4, _, PROTOCOL_TCP) if byte(0)? == 0x45 => {
                let end = usize::from(u16_at(2)?);
                let ip = |at| Some(IpAddr::V4(Ipv4Addr::from_bits(u32_at(at)?)));
                (IPV4_BYTES, end, [ip(12)?, ip(16)?])
            }
            (6, PROTOCOL_TCP, _) => {
                let end = IPV6_BYTES + usize::from(u16_at(4)?);
                let ip = |at: usize| {
                    let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                    Some(IpAddr::V6(Ipv6Addr::from(octets)))
                };
                (IPV6_BYTES, end, [ip(8)?, ip(24)?])
            }
            _ => return None,
        };
        let text = tcp + usize::from(byte(tcp + 12)? >> 4) * 4;
        Some(Segment {
            source: SocketAddr::new(source, u16_at(tcp)?),
            destination: SocketAddr::new(destination, u16_at(tcp + 2)?),
            sequence: u32_at(tcp + 4)?,
            acknowledgement: u32_at(tcp + 8)?,
            flags: byte(tcp + 13)?,
            window: u16_at(tcp + 14)?,
            options: packet.get(tcp + TCP_BYTES..text)?.to_vec(),
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Source, destination, and where in the packet addresses and segment begin.
    const PACKETS: &[(&str, &str, usize, usize)] = &[
        ("10.9.0.7:4000", "10.9.0.1:80", 12, 20),
        ("[fd09::7]:4000", "[fd09::1]:80", 8, 40),
    ];

    #[test]
    fn a_segment_is_read_as_it_was_made() {
        for (source, destination, addresses, tcp) in PACKETS {
            let [source, destination] = [source, destination].map(|text| text.parse().unwrap());
            let options = [1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 0, 0];
            let mut segment = Segment::syn(source, destination, &options);
            segment.text = b"abc".to_vec();
            let packet = segment.bytes();
            assert_eq!(Segment::parse(&packet), Some(segment.clone()));
            assert_eq!((segment.timestamp(), segment.length()), (Some(258), 4));
            // The sums are right: with them, all words make 0xffff.
            let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
            if source.is_ipv4() {
                assert_eq!(folded(sum(&packet[..*tcp])), 0xffff);
            }
            let pseudo = sum(&packet[*addresses..*tcp]) + 6 + packet[*tcp..].len() as u32;
            assert_eq!(folded(folded(sum(&packet[*tcp..]) + pseudo)), 0xffff);
            for cut in 0..packet.len() {
                assert_eq!(Segment::parse(&packet[..cut]), None, "{cut}");
            }
        }
    }
}

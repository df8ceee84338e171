//! Ethernet frames with a TCP segment, made and read byte by byte.

use super::cookie::Connection;

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PUSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// Options of a SYN as Linux sends them: segment size 1460, SACK, timestamps, window scale 7.
pub(super) const LINUX_OPTIONS: [u8; 20] = [
    2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 48, 57, 0, 0, 0, 0, 1, 3, 3, 7,
];

/// An address; an IPv4 one is the last four bytes.
type Address = [u8; 16];

const CLIENT_V4: Address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2];
const SERVER_V4: Address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
const CLIENT_V6: Address = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const SERVER_V6: Address = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// A segment in its frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    vlan_tags: usize,
    is_v6: bool,
    protocol: u8,
    fragment: u16,
    source: Address,
    destination: Address,
    source_port: u16,
    port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    window: u16,
    pub(super) options: Vec<u8>,
    pub(super) text: Vec<u8>,
    /// Whether a bit of the text is changed on the way.
    is_damaged: bool,
    /// The same of the header of IPv4, in a field that nobody looks at.
    is_header_damaged: bool,
    /// The checksums of IP and TCP as they came.
    checksums: (u16, u16),
    /// Whether that of TCP is right, of a frame that came.
    is_whole: bool,
    /// What stands in front of IP, of one that came.
    head: Vec<u8>,
}

impl Frame {
    /// A SYN of a client.
    pub(super) fn syn_v4() -> Frame {
        Frame {
            vlan_tags: 0,
            is_v6: false,
            protocol: 6,
            fragment: 0,
            source: CLIENT_V4,
            destination: SERVER_V4,
            source_port: 4000,
            port: 80,
            sequence: 1_000_000,
            acknowledgement: 0,
            flags: SYN,
            window: 64240,
            options: vec![2, 4, 5, 180],
            text: Vec::new(),
            is_damaged: false,
            is_header_damaged: false,
            checksums: (0, 0),
            is_whole: true,
            head: Vec::new(),
        }
    }

    /// The same over IPv6.
    pub(super) fn syn_v6() -> Frame {
        Frame {
            is_v6: true,
            source: CLIENT_V6,
            destination: SERVER_V6,
            ..Frame::syn_v4()
        }
    }

    pub(super) fn is_ipv6(&self) -> bool {
        self.is_v6
    }

    /// What the cookie of a client's segment is made from.
    pub(super) fn connection(&self) -> Connection {
        let halves = |address: Address| {
            let whole = u128::from_le_bytes(address);
            [whole as u64, (whole >> 64) as u64]
        };
        Connection {
            source: halves(self.source),
            destination: halves(self.destination),
            source_port: self.source_port,
            port: self.port,
        }
    }

    pub(super) fn with_vlan(self, vlan_tags: usize) -> Frame {
        Frame { vlan_tags, ..self }
    }

    pub(super) fn with_options(&self, options: &[u8]) -> Frame {
        let options = options.to_vec();
        Frame {
            options,
            ..self.clone()
        }
    }

    pub(super) fn with_text(&self, text: &str) -> Frame {
        self.with_bytes(text.as_bytes())
    }

    pub(super) fn with_bytes(&self, text: &[u8]) -> Frame {
        let text = text.to_vec();
        let flags = self.flags | if self.flags == ACK { PUSH } else { 0 };
        Frame {
            text,
            flags,
            ..self.clone()
        }
    }

    pub(super) fn with_flags(&self, flags: u8) -> Frame {
        Frame {
            flags,
            ..self.clone()
        }
    }

    pub(super) fn with_port(self, port: u16) -> Frame {
        Frame { port, ..self }
    }

    pub(super) fn with_source_port(&self, source_port: u16) -> Frame {
        Frame {
            source_port,
            ..self.clone()
        }
    }

    /// The same from another address.
    pub(super) fn with_neighbour(&self) -> Frame {
        let mut frame = self.clone();
        frame.source[15] += 1;
        frame
    }

    pub(super) fn with_acknowledgement(&self, acknowledgement: u32) -> Frame {
        Frame {
            acknowledgement,
            ..self.clone()
        }
    }

    pub(super) fn with_window(&self, window: u16) -> Frame {
        Frame {
            window,
            ..self.clone()
        }
    }

    pub(super) fn with_fragment(&self, fragment: u16) -> Frame {
        Frame {
            fragment,
            ..self.clone()
        }
    }

    pub(super) fn with_protocol(&self, protocol: u8) -> Frame {
        Frame {
            protocol,
            ..self.clone()
        }
    }

    pub(super) fn damaged(&self) -> Frame {
        Frame {
            is_damaged: true,
            ..self.clone()
        }
    }

    pub(super) fn with_damaged_header(&self) -> Frame {
        Frame {
            is_header_damaged: true,
            ..self.clone()
        }
    }

    /// The next segment of this side, without text, once the other side has answered.
    pub(super) fn after(&self, answer: &Frame) -> Frame {
        let phantom = u32::from(answer.flags & (SYN | FIN) != 0);
        Frame {
            sequence: answer.acknowledgement,
            acknowledgement: answer.sequence + answer.text.len() as u32 + phantom,
            flags: ACK,
            options: answer.echoed(),
            text: Vec::new(),
            ..self.clone()
        }
    }

    /// Timestamps that answer those of this segment.
    fn echoed(&self) -> Vec<u8> {
        let mut kinds = self.options.windows(10);
        match kinds.find(|options| options[..2] == [8, 10]) {
            Some(found) => {
                let mut options = vec![1, 1, 8, 10, 0, 0, 48, 58];
                options.extend_from_slice(&found[2..6]);
                options
            }
            None => Vec::new(),
        }
    }

    fn ip_bytes(&self) -> usize {
        if self.is_v6 { 40 } else { 20 }
    }

    /// The segment from its TCP header on, with the checksum given.
    fn tcp(&self, checksum: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.source_port.to_be_bytes());
        bytes.extend_from_slice(&self.port.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.acknowledgement.to_be_bytes());
        bytes.push((((20 + self.options.len()) / 4) << 4) as u8);
        bytes.push(self.flags);
        bytes.extend_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(&checksum.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&self.options);
        bytes.extend_from_slice(&self.text);
        bytes
    }

    fn tcp_checksum(&self) -> u16 {
        let tcp = self.tcp(0);
        !sum(&[self.pseudo_header(tcp.len()), tcp].concat())
    }

    fn pseudo_header(&self, tcp_bytes: usize) -> Vec<u8> {
        let from = if self.is_v6 { 0 } else { 12 };
        let mut bytes = self.source[from..].to_vec();
        bytes.extend_from_slice(&self.destination[from..]);
        bytes.extend_from_slice(&[0, 6]);
        bytes.extend_from_slice(&(tcp_bytes as u16).to_be_bytes());
        bytes
    }

    /// What stands in place of the checksum if a card is to fill it in.
    fn pseudo_header_sum(&self) -> u16 {
        sum(&self.pseudo_header(self.tcp(0).len()))
    }

    fn ip(&self, tcp_bytes: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.is_v6 {
            bytes.extend_from_slice(&[0x60, 0, 0, 0]);
            bytes.extend_from_slice(&(tcp_bytes as u16).to_be_bytes());
            // A fragment is named by a header of its own.
            bytes.push(if self.fragment == 0 {
                self.protocol
            } else {
                44
            });
            bytes.push(64);
            bytes.extend_from_slice(&self.source);
            bytes.extend_from_slice(&self.destination);
            return bytes;
        }
        bytes.extend_from_slice(&[0x45, 0]);
        bytes.extend_from_slice(&(20 + tcp_bytes as u16).to_be_bytes());
        bytes.extend_from_slice(&[0, 1]);
        bytes.extend_from_slice(&self.fragment.to_be_bytes());
        bytes.extend_from_slice(&[64, self.protocol, 0, 0]);
        bytes.extend_from_slice(&self.source[12..]);
        bytes.extend_from_slice(&self.destination[12..]);
        let checksum = !sum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes[8] ^= u8::from(self.is_header_damaged);
        bytes
    }

    /// The frame.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tag in 0..self.vlan_tags {
            let kind = if tag + 1 < self.vlan_tags {
                0x88a8_u16
            } else {
                0x8100
            };
            bytes.extend_from_slice(&kind.to_be_bytes());
            bytes.extend_from_slice(&[0, 7]);
        }
        let kind = if self.is_v6 { 0x86dd_u16 } else { 0x0800 };
        bytes.extend_from_slice(&kind.to_be_bytes());
        let tcp = self.tcp(self.tcp_checksum());
        bytes.extend_from_slice(&self.ip(tcp.len()));
        bytes.extend_from_slice(&tcp);
        if self.is_damaged
            && let Some(last) = bytes.len().checked_sub(12)
        {
            bytes[last] ^= 1;
        }
        bytes
    }

    /// Puts the right checksum of TCP into the bytes of this frame, some of which were changed.
    pub(super) fn mend(&self, bytes: &mut [u8]) {
        let ip = 14 + 4 * self.vlan_tags;
        let tcp = ip + self.ip_bytes();
        let addresses = if self.is_v6 {
            ip + 8..ip + 40
        } else {
            ip + 12..ip + 20
        };
        let tcp_bytes = (bytes.len() - tcp) as u16;
        bytes[tcp + 16..tcp + 18].fill(0);
        let head = [&bytes[addresses], &[0, 6], &tcp_bytes.to_be_bytes()].concat();
        let checksum = !sum(&[&head, &bytes[tcp..]].concat());
        bytes[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads a frame.
    pub(super) fn parse(bytes: &[u8]) -> Frame {
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        let mut vlan_tags = 0;
        while matches!(u16_at(12 + 4 * vlan_tags), 0x8100 | 0x88a8) {
            vlan_tags += 1;
        }
        let ip = 14 + 4 * vlan_tags;
        let is_v6 = bytes[ip] >> 4 == 6;
        let mut frame = Frame {
            vlan_tags,
            is_v6,
            ..Frame::syn_v4()
        };
        let tcp = ip + frame.ip_bytes();
        let end = if is_v6 {
            tcp + usize::from(u16_at(ip + 4))
        } else {
            ip + usize::from(u16_at(ip + 2))
        };
        if is_v6 {
            frame.source.copy_from_slice(&bytes[ip + 8..ip + 24]);
            frame.destination.copy_from_slice(&bytes[ip + 24..ip + 40]);
        } else {
            frame.source[12..].copy_from_slice(&bytes[ip + 12..ip + 16]);
            frame.destination[12..].copy_from_slice(&bytes[ip + 16..ip + 20]);
        }
        let text = tcp + usize::from(bytes[tcp + 12] >> 4) * 4;
        frame.source_port = u16_at(tcp);
        frame.port = u16_at(tcp + 2);
        frame.sequence = u32_at(tcp + 4);
        frame.acknowledgement = u32_at(tcp + 8);
        frame.flags = bytes[tcp + 13];
        frame.window = u16_at(tcp + 14);
        frame.options = bytes[tcp + 20..text].to_vec();
        frame.text = bytes[text..end].to_vec();
        let of_ip = if is_v6 { 0 } else { sum(&bytes[ip..tcp]) };
        frame.checksums = (of_ip, u16_at(tcp + 16));
        frame.head = bytes[..ip].to_vec();
        let covered = [&frame.pseudo_header(end - tcp), &bytes[tcp..end]].concat();
        frame.is_whole = sum(&covered) == 0xffff;
        frame
    }

    /// Whether a frame that came goes back to where another one came from.
    pub(super) fn is_turned(&self, other: &Frame) -> bool {
        let turned = (self.destination, self.port) == (other.source, other.source_port)
            && (self.source, self.source_port) == (other.destination, other.port);
        let stations = self.head[..6] == other.head[6..12] && self.head[6..12] == other.head[..6];
        turned && stations && self.head[12..] == other.head[12..]
    }

    /// Whether the checksum of TCP is right of a frame that came, or is left to the card.
    pub(super) fn tcp_checksum_is_right(&self) -> bool {
        self.is_whole || self.checksums.1 == self.pseudo_header_sum()
    }

    /// Whether the checksums are right of a frame that came.
    pub(super) fn checksums_are_right(&self) -> bool {
        let of_ip = self.is_v6 || self.checksums.0 == 0xffff;
        of_ip && self.checksums.1 == self.tcp_checksum()
    }
}

/// The ones' complement sum (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let second = pair.get(1).copied().unwrap_or_default();
        u64::from(u16::from_be_bytes([pair[0], second]))
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

//! The header of QUIC packets, as far as every version has it (RFC 8999), and the Initial packets
//! of version 1, whose keys everybody knows (RFC 9001 section 5.2). All else is encrypted.

pub mod initial;

/// The longest connection ID in bytes, of versions 1 and 2 (RFC 9000 section 17.2).
pub const CONNECTION_ID_BYTES_MAX: usize = 20;

/// What a header shows to those who are not an end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header<'b> {
    /// A long header, of packets while the connection begins.
    Long {
        /// The version; 0 is a negotiation of versions.
        version: u32,
        /// The ID that the receiver has chosen, or a random one in a client's first packets.
        destination: &'b [u8],
        /// The ID that the sender has chosen for itself.
        source: &'b [u8],
    },
    /// A short header: an ID of the receiver's, whose length only the receiver knows, and what is
    /// behind it.
    Short {
        /// The bytes from the ID on.
        rest: &'b [u8],
    },
}

/// The types of packets with a long header in version 1 (RFC 9000 section 17.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl LongType {
    /// The type that a packet's first byte says.
    #[must_use]
    pub fn of(first: u8) -> Self {
        match first >> 4 & 3 {
            0 => Self::Initial,
            1 => Self::ZeroRtt,
            2 => Self::Handshake,
            _ => Self::Retry,
        }
    }
}

/// Reads the header at the start of a datagram; `None` if it has none.
#[must_use]
pub fn header(datagram: &[u8]) -> Option<Header<'_>> {
    let (first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return Some(Header::Short { rest });
    }
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (destination, rest) = connection_id(rest)?;
    let (source, _) = connection_id(rest)?;
    Some(Header::Long {
        version: u32::from_be_bytes(*version),
        destination,
        source,
    })
}

fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

#[cfg(test)]
mod tests {
    use super::{Header, LongType, header};

    /// The beginning of the client's first packet in RFC 9001 appendix A.2, and of the server's in
    /// A.3.
    const CLIENT: &[u8] = b"\xc0\0\0\0\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\0\0\x44\x9e";
    const SERVER: &[u8] = b"\xcf\0\0\0\x01\0\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\0\x40\x75";

    #[test]
    fn headers_are_read() {
        let ids = |destination, source| {
            Some(Header::Long {
                version: 1,
                destination,
                source,
            })
        };
        let client = b"\x83\x94\xc8\xf0\x3e\x51\x57\x08";
        assert_eq!(header(CLIENT), ids(client, b""));
        let server = b"\xf0\x67\xa5\x50\x2a\x42\x62\xb5";
        assert_eq!(header(SERVER), ids(b"", server));
        let types = [0xc0, 0xdf, 0xe1, 0xf0].map(LongType::of);
        let expected = [
            LongType::Initial,
            LongType::ZeroRtt,
            LongType::Handshake,
            LongType::Retry,
        ];
        assert_eq!(types, expected);
        let short = Some(Header::Short { rest: b"abc" });
        assert_eq!(header(b"\x40abc"), short);
        for length in 0..15 {
            let cut = header(&SERVER[..length]);
            assert_eq!(cut, None, "{length}");
        }
    }
}

//! Writers of headers for an upstream.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::tlv::{KIND_CRC32C, KIND_SSL, Tlv};
use super::{
    COMMAND_PROXY, FAMILY_INET, FAMILY_INET6, SIGNATURE, TRANSPORT_DATAGRAM, TRANSPORT_STREAM,
};

/// The transport of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP
    Stream,
    /// UDP
    Datagram,
}

/// The data about the client's TLS for a header of version 2.
#[derive(Clone, Copy, Debug)]
pub struct Ssl<'b> {
    /// As in [`SslSummary`](super::SslSummary).
    pub client: u8,
    /// As in [`SslSummary`](super::SslSummary).
    pub verify: u32,
    /// Version, cipher and others.
    pub tlvs: &'b [Tlv<'b>],
}

impl Ssl<'_> {
    /// The bit of `client` for a connection with TLS.
    pub const CLIENT_TLS: u8 = 1;
    /// The bit of `client` for a certificate that was shown on this connection.
    pub const CERTIFICATE_ON_CONNECTION: u8 = 2;
    /// The bit of `client` for a certificate that was shown in this session, perhaps on an earlier
    /// connection.
    pub const CERTIFICATE_IN_SESSION: u8 = 4;
}

/// The additions do not fit into a header of 65535 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Appends a header of version 1: `UNKNOWN` without addresses.
pub fn write_v1(out: &mut Vec<u8>, ends: Option<(SocketAddr, SocketAddr)>) {
    use std::io::Write;
    let Some((source, destination)) = ends else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.ip(), destination.ip());
    let (from_port, to_port) = (source.port(), destination.port());
    // A write to a vector cannot fail.
    let _ = write!(out, "PROXY {family} {from} {to} {from_port} {to_port}\r\n");
}

/// Appends a header of version 2 with a checksum; without addresses it is a local one. Addresses of
/// different families are both written as IPv6, IPv4 mapped into both as IPv4.
///
/// # Errors
/// [`TooLong`]; nothing is appended then.
pub fn write_v2(
    out: &mut Vec<u8>,
    ends: Option<(SocketAddr, SocketAddr)>,
    transport: Transport,
    tlvs: &[Tlv<'_>],
    ssl: Option<Ssl<'_>>,
) -> Result<(), TooLong> {
    let base = out.len();
    let result = append_v2(out, ends, transport, tlvs, ssl);
    if result.is_err() {
        out.truncate(base);
    }
    result
}

fn append_v2(
    out: &mut Vec<u8>,
    ends: Option<(SocketAddr, SocketAddr)>,
    transport: Transport,
    tlvs: &[Tlv<'_>],
    ssl: Option<Ssl<'_>>,
) -> Result<(), TooLong> {
    let base = out.len();
    out.extend_from_slice(SIGNATURE);
    match ends {
        Some((source, destination)) => write_ends(out, source, destination, transport),
        None => out.extend_from_slice(&[2 << 4, 0, 0, 0]),
    }
    for tlv in tlvs {
        write_tlv(out, *tlv)?;
    }
    if let Some(ssl) = ssl {
        let start = out.len();
        write_tlv(
            out,
            Tlv {
                kind: KIND_SSL,
                value: &[0; 5],
            },
        )?;
        out[start + 3] = ssl.client;
        out[start + 4..start + 8].copy_from_slice(&ssl.verify.to_be_bytes());
        for tlv in ssl.tlvs {
            write_tlv(out, *tlv)?;
        }
        let length = out.len() - start - 3;
        set_length(&mut out[start + 1..], length)?;
    }
    write_tlv(
        out,
        Tlv {
            kind: KIND_CRC32C,
            value: &[0; 4],
        },
    )?;
    let length = out.len() - base - super::V2_FIXED_BYTES;
    set_length(&mut out[base + 14..], length)?;
    let sum = crc32c(&out[base..]);
    let sum_start = out.len() - 4;
    out[sum_start..].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

fn write_ends(
    out: &mut Vec<u8>,
    source: SocketAddr,
    destination: SocketAddr,
    transport: Transport,
) {
    let transport = match transport {
        Transport::Stream => TRANSPORT_STREAM,
        Transport::Datagram => TRANSPORT_DATAGRAM,
    };
    let command = 2 << 4 | COMMAND_PROXY;
    let pair = ipv4_of(source.ip()).zip(ipv4_of(destination.ip()));
    if let Some((from, to)) = pair.filter(|_| source.is_ipv4() == destination.is_ipv4()) {
        out.extend_from_slice(&[command, FAMILY_INET << 4 | transport, 0, 0]);
        out.extend_from_slice(&from.octets());
        out.extend_from_slice(&to.octets());
    } else {
        out.extend_from_slice(&[command, FAMILY_INET6 << 4 | transport, 0, 0]);
        for ip in [source.ip(), destination.ip()] {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

fn ipv4_of(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(ip) => ip.to_ipv4_mapped(),
    }
}

fn write_tlv(out: &mut Vec<u8>, tlv: Tlv<'_>) -> Result<(), TooLong> {
    let length = u16::try_from(tlv.value.len()).map_err(|_| TooLong)?;
    out.push(tlv.kind);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(tlv.value);
    Ok(())
}

fn set_length(place: &mut [u8], length: usize) -> Result<(), TooLong> {
    let length = u16::try_from(length).map_err(|_| TooLong)?;
    place[..2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// CRC-32C (Castagnoli), bit by bit from the low end: headers are short, and one is written per
/// connection.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let mask = (sum & 1).wrapping_neg();
            sum = sum >> 1 ^ (0x82f6_3b78 & mask);
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    #[test]
    fn checksum_of_the_standard_check_value() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}

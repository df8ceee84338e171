//! How values are written, and names compared.

use std::io::Write as _;
use std::net::IpAddr;

#[cfg(test)]
mod tests;

/// Bytes of the longest address of IPv4, `255.255.255.255`.
const ADDRESS_BYTES_MAX: usize = 15;

/// Appends a number in decimal.
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends an address. The usual one is written by hand: the standard library's way costs ten times
/// the instructions, and fields for servers and logs name it.
pub fn append_address(out: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        // A vector takes all.
        let _ = write!(out, "{address}");
        return;
    };
    let mut text = [0; ADDRESS_BYTES_MAX];
    let mut length = 0;
    let mut put = |byte| {
        text[length] = byte;
        length += 1;
    };
    for (number, octet) in address.octets().into_iter().enumerate() {
        if number > 0 {
            put(b'.');
        }
        if octet >= 100 {
            put(b'0' + octet / 100);
        }
        if octet >= 10 {
            put(b'0' + octet / 10 % 10);
        }
        put(b'0' + octet % 10);
    }
    out.extend_from_slice(&text[..length]);
}

/// Appends milliseconds as seconds with three decimals.
pub(super) fn append_seconds(out: &mut Vec<u8>, milliseconds: u64) {
    append_number(out, milliseconds / 1000);
    let rest = milliseconds % 1000;
    let digit = |divisor: u64| b'0' + (rest / divisor % 10) as u8;
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

/// Whether a field's name is the variable's: case aside, underscores for hyphens.
pub(super) fn same_name(field: &[u8], variable: &[u8]) -> bool {
    field.len() == variable.len()
        && field.iter().zip(variable).all(|(left, right)| {
            let left = if *left == b'-' {
                b'_'
            } else {
                left.to_ascii_lowercase()
            };
            left == *right
        })
}

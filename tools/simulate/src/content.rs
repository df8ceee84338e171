//! The content of bodies: every line has the number of its body and its position, so that a
//! misplaced byte is detected and its origin known.

/// Bytes of a line: `KKKKKK.PPPPPPPP\n`.
const LINE_BYTES: usize = 16;

/// The body with that number and length.
pub(crate) fn body(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + LINE_BYTES);
    while bytes.len() < length {
        let mut line = *b"000000.00000000\n";
        digits(&mut line[..6], number);
        digits(&mut line[7..15], bytes.len() as u64);
        bytes.extend_from_slice(&line);
    }
    bytes.truncate(length);
    bytes
}

fn digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The body in chunks of at most `chunk_bytes_max` bytes (RFC 9112 section 7.1).
pub(crate) fn chunked(body: &[u8], chunk_bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(chunk_bytes_max.max(1)) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Bytes as text for a trace.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 400;
    let mut text: String = bytes
        .iter()
        .take(SHOWN_BYTES_MAX)
        .flat_map(|byte| byte.escape_ascii())
        .map(char::from)
        .collect();
    if bytes.len() > SHOWN_BYTES_MAX {
        text.push_str(&format!("... ({} bytes)", bytes.len()));
    }
    text
}

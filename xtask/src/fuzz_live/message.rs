//! A strict reader of HTTP/1.1 messages (RFC 9112): our server's output must pass it. It shares no
//! code with the server's own parsers, which it checks.

/// A head with everything that ends with its empty line.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) start_line: Vec<u8>,
    /// Names in lower case, values without white space around them.
    pub(super) fields: Vec<(String, Vec<u8>)>,
    /// With the empty line.
    pub(super) bytes: usize,
}

/// The body that a head announces (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
    /// Neither length nor coding: nothing in a request, all the rest in a response.
    Absent,
}

/// A piece of a message: complete, or cut off by the end of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<T> {
    Whole(T),
    Cut,
}

/// Reads a head.
///
/// # Errors
/// The broken rule.
pub(super) fn head(bytes: &[u8]) -> Result<Part<Head>, String> {
    let Some(end) = bytes.windows(4).position(|at| at == b"\r\n\r\n") else {
        return Ok(Part::Cut);
    };
    let mut lines = Vec::new();
    let mut rest = &bytes[..end];
    while let Some(at) = rest.windows(2).position(|at| at == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    for line in &lines {
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(format!(
                "CR, LF or NUL in the line \"{}\"",
                line.escape_ascii()
            ));
        }
    }
    let fields: Result<Vec<_>, String> = lines[1..].iter().map(|line| field(line)).collect();
    Ok(Part::Whole(Head {
        start_line: lines[0].to_vec(),
        fields: fields?,
        bytes: end + 4,
    }))
}

fn field(line: &[u8]) -> Result<(String, Vec<u8>), String> {
    let problem = || format!("\"{}\" is no field line", line.escape_ascii());
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or_else(problem)?;
    let name = &line[..colon];
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(problem());
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, line[colon + 1..].trim_ascii().to_vec()))
}

/// A character of a token (RFC 9110, 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

impl Head {
    /// The values of a field.
    pub(super) fn values(&self, name: &str) -> Vec<&[u8]> {
        let found = self.fields.iter().filter(|(own, _)| own == name);
        found.map(|(_, value)| value.as_slice()).collect()
    }

    /// How the body is delimited.
    ///
    /// # Errors
    /// Two parsers could disagree.
    pub(super) fn framing(&self) -> Result<Framing, String> {
        let lengths = self.values("content-length");
        let codings = self.values("transfer-encoding");
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => Ok(Framing::Absent),
            ([length], []) => number(length, 10)
                .map(Framing::Length)
                .ok_or_else(|| format!("Content-Length \"{}\"", length.escape_ascii())),
            ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            _ => Err(format!(
                "{} Content-Length and {} Transfer-Encoding, {:?}",
                lengths.len(),
                codings.len(),
                codings
                    .iter()
                    .map(|coding| coding.escape_ascii().to_string())
                    .collect::<Vec<_>>()
            )),
        }
    }
}

/// Reads a chunked body: its content, and its length in bytes.
///
/// # Errors
/// A malformed chunk line, or malformed bytes after a chunk.
pub(super) fn chunked(bytes: &[u8]) -> Result<Part<(Vec<u8>, usize)>, String> {
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        let Some(end) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(Part::Cut);
        };
        let line = &bytes[at..at + end];
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = number(digits, 16);
        let size = size.ok_or_else(|| format!("chunk line \"{}\"", line.escape_ascii()))?;
        at += end + 2;
        if size == 0 {
            return Ok(
                trailers(&bytes[at..])?.map_or(Part::Cut, |used| Part::Whole((content, at + used)))
            );
        }
        let Some(chunk) = bytes.get(at..).and_then(|rest| rest.get(..size)) else {
            return Ok(Part::Cut);
        };
        content.extend_from_slice(chunk);
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(other) => return Err(format!("\"{}\" after a chunk", other.escape_ascii())),
            None => return Ok(Part::Cut),
        }
    }
}

/// The length of a trailer section with its empty line; `None` if it is cut off.
fn trailers(bytes: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let Some(end) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let line = &bytes[at..at + end];
        at += end + 2;
        if line.is_empty() {
            return Ok(Some(at));
        }
        field(line)?;
    }
}

fn number(digits: &[u8], base: u32) -> Option<usize> {
    let plain = |byte: &u8| (*byte as char).is_digit(base);
    if digits.is_empty() || !digits.iter().all(plain) {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok()
}

#[cfg(test)]
mod tests;

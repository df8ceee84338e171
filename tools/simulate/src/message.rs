//! A reader of HTTP/1 messages that is independent of the server's parser. It accepts only messages
//! that a correct sender writes, and reports the error in others.

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
    ToTheEnd,
}

/// A message, or the part that has come.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The first line without its end.
    pub first_line: String,
    /// The fields as received.
    pub fields: Vec<(String, String)>,
    /// The received body, without chunk lines.
    pub body: Vec<u8>,
    /// Whether the message is complete.
    pub is_whole: bool,
    /// The body's length in bytes.
    pub length: usize,
}

impl Message {
    /// The value of the only field with that name, in any case: requests of HTTP/2 have small
    /// letters.
    pub fn field(&self, name: &str) -> Option<&str> {
        let is_it = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        let mut found = self.fields.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// Whether the server switches protocols: what follows the head belongs to no message.
    pub fn is_tunnel(&self) -> bool {
        self.status() == 101
    }

    /// The status of a response; 0 if there is none.
    pub fn status(&self) -> u16 {
        let number = self.first_line.split(' ').nth(1);
        number.and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Reads a head; `None` if it is incomplete.
///
/// # Errors
/// The fault of the head.
pub fn head(bytes: &[u8]) -> Result<Option<Message>, String> {
    let Some(length) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..length]).map_err(|_| "a head is not text")?;
    let mut lines = text.split("\r\n");
    let first_line = lines.next().unwrap_or_default().to_owned();
    let fields = lines
        .map(|line| match line.split_once(": ") {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("a field has no colon: {line:?}")),
        })
        .collect::<Result<_, String>>()?;
    Ok(Some(Message {
        first_line,
        fields,
        length: length + 4,
        ..Message::default()
    }))
}

/// Reads a response as far as it has come. `is_headless`: it answers HEAD. `None`: its head is
/// incomplete. Interim responses are returned too, without bodies; the body of one that switches
/// protocols is all that follows.
///
/// # Errors
/// The fault of the response.
pub fn response(
    bytes: &[u8],
    is_headless: bool,
    has_ended: bool,
) -> Result<Option<Message>, String> {
    let Some(mut message) = head(bytes)? else {
        return Ok(None);
    };
    let status = message.status();
    if !message.first_line.starts_with("HTTP/1.1 ") || !(100..600).contains(&status) {
        return Err(format!("no status line: {:?}", message.first_line));
    }
    let is_interim = status < 200 && !message.is_tunnel();
    if is_headless || is_interim || status == 204 || status == 304 {
        message.is_whole = true;
        return Ok(Some(message));
    }
    let framing = framing(&message)?.unwrap_or(Framing::ToTheEnd);
    body(&mut message, bytes, framing, has_ended)?;
    Ok(Some(message))
}

/// Reads a request as far as it has come; `None` if its head is incomplete.
///
/// # Errors
/// The fault of the request.
pub fn request(bytes: &[u8]) -> Result<Option<Message>, String> {
    let Some(mut message) = head(bytes)? else {
        return Ok(None);
    };
    let framing = framing(&message)?.unwrap_or(Framing::Length(0));
    body(&mut message, bytes, framing, false)?;
    Ok(Some(message))
}

fn framing(message: &Message) -> Result<Option<Framing>, String> {
    let has = |name: &str| message.fields.iter().any(|field| field.0 == name);
    match (has("Content-Length"), has("Transfer-Encoding")) {
        (true, true) => Err("both Content-Length and Transfer-Encoding".to_owned()),
        (true, false) => {
            let length = message.field("Content-Length");
            let length = length.and_then(|text| text.parse().ok());
            let length = length.ok_or("Content-Length is not a number or is repeated")?;
            Ok(Some(Framing::Length(length)))
        }
        (false, true) if message.field("Transfer-Encoding") == Some("chunked") => {
            Ok(Some(Framing::Chunked))
        }
        (false, true) => Err("Transfer-Encoding is not chunked".to_owned()),
        (false, false) => Ok(None),
    }
}

fn body(
    message: &mut Message,
    bytes: &[u8],
    framing: Framing,
    has_ended: bool,
) -> Result<(), String> {
    let rest = &bytes[message.length..];
    match framing {
        Framing::Length(length) => {
            let come = length.min(rest.len());
            message.body.extend_from_slice(&rest[..come]);
            message.length += come;
            message.is_whole = come == length;
        }
        Framing::ToTheEnd => {
            message.body.extend_from_slice(rest);
            message.length += rest.len();
            message.is_whole = has_ended;
        }
        Framing::Chunked => {
            let taken = chunks(rest, &mut message.body)?;
            message.is_whole = taken.is_some();
            message.length += taken.unwrap_or(rest.len());
        }
    }
    Ok(())
}

/// Decodes the chunks; returns their length in bytes once the last has come. Trailers are not
/// expected.
fn chunks(bytes: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return match rest.len() {
                0..20 => Ok(None),
                _ => Err("a chunk's size has no end".to_owned()),
            };
        };
        let size = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let size = usize::from_str_radix(size, 16)
            .map_err(|_| format!("a chunk's size is not a number: {size:?}"))?;
        let data = &rest[end + 2..];
        body.extend_from_slice(&data[..size.min(data.len())]);
        let Some(after) = data.get(size..size + 2) else {
            return Ok(None);
        };
        if after != b"\r\n" {
            return Err("a chunk has no line end after it".to_owned());
        }
        at += end + 2 + size + 2;
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

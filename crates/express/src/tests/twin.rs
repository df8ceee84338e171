//! The program's judgement of a request once more, written apart from it: by lines of text, where
//! the program goes through words of eight bytes.

/// What a request asks for that the program may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain<'a> {
    pub(super) is_head: bool,
    pub(super) target: &'a str,
    pub(super) host: &'a str,
    /// Whether the client ends the connection.
    pub(super) closes: bool,
}

/// Fields with which a request is left to the lanes.
const REFUSED: &[&str] = &[
    "content-length",
    "transfer-encoding",
    "expect",
    "trailer",
    "te",
    "upgrade",
    "http2-settings",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "authorization",
    "proxy-authorization",
    "cookie",
    "proxy-connection",
];

/// Longest host and target, in bytes.
const HOST_BYTES_MAX: usize = 128;
const TARGET_BYTES_MAX: usize = 375;

/// Reads the request of a segment; `None`: it is not plain, and for the lanes.
pub(super) fn read(text: &[u8]) -> Option<Plain<'_>> {
    let text = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.is_ascii())?;
    let head = text.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let [method, target, version] = [words.next()?, words.next()?, words.next()?];
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\';
    let is_target =
        target.starts_with('/') && target.len() <= TARGET_BYTES_MAX && target.bytes().all(is_plain);
    if words.next().is_some() || !is_target || !["GET", "HEAD"].contains(&method) {
        return None;
    }
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) {
        return None;
    }
    let is_http10 = version == "HTTP/1.0";
    let (mut host, mut connection) = (None, None);
    for line in lines {
        let (name, value) = field(line)?;
        let once = match name.as_str() {
            "host" => &mut host,
            "connection" => &mut connection,
            name if REFUSED.contains(&name) => return None,
            _ => continue,
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        let is_trimmed = !value.starts_with(' ') && !value.ends_with(' ');
        if !is_trimmed || value.is_empty() || value.len() > HOST_BYTES_MAX || once.is_some() {
            return None;
        }
        *once = Some(value);
    }
    let connection = connection.map(str::to_ascii_lowercase);
    let closes = match connection.as_deref() {
        None => is_http10,
        Some("close") => true,
        Some("keep-alive") if !is_http10 => false,
        Some(_) => return None,
    };
    Some(Plain {
        is_head: method == "HEAD",
        target,
        host: host?,
        closes,
    })
}

/// A field's name in lower case, and its value as written.
fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_value = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let is_field = !name.is_empty() && name.bytes().all(is_name) && value.bytes().all(is_value);
    is_field.then(|| (name.to_ascii_lowercase(), value))
}

//! Tests as tables: a name, a request, and the expected response.

use super::Peer;
use crate::Server;

/// The end of an expected response after which the server must close the connection.
const CLOSED: &str = "(closed)";

/// Runs every row on a new connection: `(name, request, expected)`.
///
/// Lines are written with plain line feeds; if a request has no carriage return, each of its line
/// feeds is sent as CRLF. In an expected line `*` matches any text; a line that is only `*` matches
/// any number of lines. Several responses may follow each other. A last line `(closed)` means that
/// the server closes the connection after them.
///
/// # Panics
/// The response does not match; the message has the row's name and the response.
pub fn check(server: &Server, table: &[(&str, &str, &str)]) {
    for (name, request, expected) in table {
        let request = if request.contains('\r') {
            (*request).to_owned()
        } else {
            request.replace('\n', "\r\n")
        };
        let mut peer = server.connect();
        peer.send(request);
        let body = expected.strip_suffix(CLOSED);
        let pattern = body.map_or(*expected, |body| body.strip_suffix('\n').unwrap_or(body));
        let is_right = match body {
            Some(_) => matches(pattern, &peer.rest_kept()),
            None => loop {
                if matches(pattern, peer.received()) {
                    break true;
                }
                if !peer.fill() {
                    break false;
                }
            },
        };
        let came = String::from_utf8_lossy(peer.received()).replace('\r', "");
        assert!(
            is_right,
            "{name}\n--- expected\n{expected}\n--- came\n{came}\n---"
        );
    }
}

impl Peer {
    /// Reads until the end of the connection and keeps the bytes for [`Peer::received`].
    fn rest_kept(&mut self) -> Vec<u8> {
        while self.fill() {}
        self.received().to_vec()
    }
}

/// Whether bytes match a pattern of [`check`]. CRLF counts as a line feed, but a line of a head
/// without its carriage return never matches.
pub fn matches(pattern: &str, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    if head.starts_with("HTTP/1.") && head.replace("\r\n", "").contains('\n') {
        return false;
    }
    let text = text.replace("\r\n", "\n");
    let pattern: Vec<&str> = pattern.split('\n').collect();
    let lines: Vec<&str> = text.split('\n').collect();
    matches_by(&pattern, &lines, &"*", |pattern, line| {
        let pattern: Vec<char> = pattern.chars().collect();
        let line: Vec<char> = line.chars().collect();
        matches_by(&pattern, &line, &'*', |left, right| left == right)
    })
}

/// Matches a sequence against a pattern in which `any` matches any number of elements.
fn matches_by<T: PartialEq>(
    pattern: &[T],
    found: &[T],
    any: &T,
    same: impl Fn(&T, &T) -> bool,
) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut retry: Option<(usize, usize)> = None; // after the last `any`, and what it swallowed
    while next < found.len() {
        if pattern.get(at) == Some(any) {
            retry = Some((at + 1, next));
            at += 1;
        } else if pattern
            .get(at)
            .is_some_and(|wanted| same(wanted, &found[next]))
        {
            at += 1;
            next += 1;
        } else if let Some((after, swallowed)) = retry {
            at = after;
            next = swallowed + 1;
            retry = Some((after, next));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|left| left == any)
}

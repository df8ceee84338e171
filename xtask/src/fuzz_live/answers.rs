//! A reader of a server's bytes on one connection as a sequence of responses.

use super::message::{Framing, Head, Part, chunked, head};

/// The status of a response without a head (HTTP/0.9).
pub(super) const HEADLESS: u16 = 9;

/// A final response. Interim ones are read and left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Names of its fields in lower case.
    pub(super) names: Vec<String>,
    pub(super) body: Vec<u8>,
    /// Whether the body came to the end that its head announces.
    pub(super) is_whole: bool,
    /// Whether it announces the end of the connection.
    pub(super) closes: bool,
}

/// The ways in which the responses to a connection's requests may be read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// A request may have been HEAD: its response announces a body that does not come.
    pub(super) head: bool,
    /// One may have been of HTTP/0.9: the answer to it is a body alone, and the last.
    pub(super) headless: bool,
}

/// Reads everything that came until the connection was closed.
///
/// # Errors
/// It is no sequence of well-formed responses.
pub(super) fn read(bytes: &[u8], asked: Asked) -> Result<Vec<Answer>, String> {
    let mut answers = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        if !rest.starts_with(b"HTTP/") {
            if !asked.headless && !b"HTTP/".starts_with(rest) {
                let shown = &rest[..rest.len().min(200)];
                return Err(format!(
                    "bytes after a response: \"{}\"",
                    shown.escape_ascii()
                ));
            }
            answers.push(Answer {
                status: HEADLESS,
                names: Vec::new(),
                body: rest.to_vec(),
                is_whole: true,
                closes: true,
            });
            return Ok(answers);
        }
        let Part::Whole(head) = head(rest)? else {
            answers.push(cut());
            return Ok(answers);
        };
        let status = status(&head.start_line)?;
        rest = &rest[head.bytes..];
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let (answer, used) = one(status, &head, rest, asked.head)?;
        answers.push(answer);
        rest = &rest[used..];
    }
    Ok(answers)
}

/// A response with its head.
fn one(
    status: u16,
    head: &Head,
    rest: &[u8],
    may_be_head: bool,
) -> Result<(Answer, usize), String> {
    let framing = head.framing()?;
    let names: Vec<String> = head.fields.iter().map(|(name, _)| name.clone()).collect();
    let is_bare = may_be_head && (rest.is_empty() || rest.starts_with(b"HTTP/1.1 "));
    let (body, used, is_whole) = match (status, framing) {
        (204 | 304, _) => (Vec::new(), 0, true),
        _ if is_bare => (Vec::new(), 0, true),
        (101, _) | (_, Framing::Absent) => (rest.to_vec(), rest.len(), true),
        (_, Framing::Length(length)) => match rest.get(..length) {
            Some(body) => (body.to_vec(), length, true),
            None => (rest.to_vec(), rest.len(), false),
        },
        (_, Framing::Chunked) => match chunked(rest)? {
            Part::Whole((body, used)) => (body, used, true),
            Part::Cut => (rest.to_vec(), rest.len(), false),
        },
    };
    let answer = Answer {
        status,
        names,
        body,
        is_whole,
        closes: head.values("connection").contains(&&b"close"[..]),
    };
    Ok((answer, used))
}

/// A response with a cut head.
fn cut() -> Answer {
    Answer {
        status: 0,
        names: Vec::new(),
        body: Vec::new(),
        is_whole: false,
        closes: true,
    }
}

/// The code of a status line (RFC 9112, 4).
fn status(line: &[u8]) -> Result<u16, String> {
    let problem = || format!("\"{}\" is no status line", line.escape_ascii());
    let rest = line.strip_prefix(b"HTTP/1.1 ").ok_or_else(problem)?;
    let (code, reason) = rest.split_at_checked(3).ok_or_else(problem)?;
    let is_reason = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
    if !code.iter().all(u8::is_ascii_digit) || reason.first().is_some_and(|byte| *byte != b' ') {
        return Err(problem());
    }
    if !reason.iter().all(is_reason) {
        return Err(problem());
    }
    let code = std::str::from_utf8(code)
        .ok()
        .and_then(|code| code.parse().ok());
    code.filter(|code| *code >= 100).ok_or_else(problem)
}

impl Asked {
    /// The possible readings of these request bytes.
    pub(super) fn by(sent: &[u8]) -> Asked {
        let has = |line: &[u8], word: &[u8]| line.windows(word.len()).any(|at| at == word);
        let has_target = |line: &[u8]| has(line, b" /") || has(line, b"://");
        let is_bare = |line: &[u8]| has_target(line) && !has(line, b" HTTP/1.");
        let mut lines = sent.split(|byte| matches!(byte, b'\r' | b'\n'));
        Asked {
            head: has(sent, b"HEAD"),
            headless: lines.any(is_bare),
        }
    }
}

/// The statuses, for people.
pub(super) fn shown(answers: &[Answer]) -> String {
    let one = |answer: &Answer| match (answer.status, answer.is_whole) {
        (HEADLESS, _) => "headless".to_owned(),
        (status, true) => status.to_string(),
        (status, false) => format!("{status} cut off"),
    };
    match answers {
        [] => "nothing".to_owned(),
        some => some.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// Names of fields that the configuration can give; another one came from a request.
pub(super) fn foreign_name<'a>(answers: &'a [Answer], known: &[&str]) -> Option<&'a str> {
    let mut names = answers.iter().flat_map(|answer| &answer.names);
    names
        .find(|name| !known.contains(&name.as_str()))
        .map(String::as_str)
}

#[cfg(test)]
mod tests;

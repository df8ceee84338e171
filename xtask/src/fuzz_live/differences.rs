//! The allowed differences between our server and nginx for a changed request, with their reasons.
//! Any other difference is a finding.

use super::answers::{Answer, HEADLESS};

/// The value for a connection that was closed without a response.
const CLOSED: u16 = 0;

/// An expected difference.
struct Difference {
    /// The reason, for authors of new rows.
    #[allow(dead_code)]
    why: &'static str,
    ours: fn(u16) -> bool,
    theirs: fn(u16) -> bool,
    /// The condition on the sent bytes.
    sent: fn(&[u8]) -> bool,
}

/// The first row that fits counts. Rows that let us succeed where nginx refuses must ask for the
/// bytes that nginx refuses and RFC 9112 allows: everything else would be a way to smuggle.
const DIFFERENCES: &[Difference] = &[
    Difference {
        why: "messages are held to RFC 9112, where nginx guesses",
        ours: |status| status == 400,
        theirs: |_| true,
        sent: |_| true,
    },
    Difference {
        why: "a coding or method that is not known is refused by RFC 9110",
        ours: |status| status == 501,
        theirs: |_| true,
        sent: |_| true,
    },
    Difference {
        why: "a request line that breaks off at a bare CR has no version to answer in",
        ours: |status| status == HEADLESS || status == CLOSED,
        theirs: |status| status == 400,
        sent: |sent| has(sent, |pair| pair[0] == b'\r' && pair[1] != b'\n'),
    },
    Difference {
        why: "the answer to a HEAD of HTTP/0.9 has neither head nor body",
        ours: |status| status == CLOSED,
        theirs: |status| status == HEADLESS,
        sent: |sent| sent.starts_with(b"HEAD "),
    },
    Difference {
        why: "the bytes of a chunk count when they come; nginx counts what a chunk announces",
        ours: |status| status == CLOSED || status == 400,
        theirs: |status| status == 413,
        sent: |_| true,
    },
    Difference {
        why: "HTAB is white space around a value (RFC 9112, 5); nginx takes it for a part of it",
        ours: |_| true,
        theirs: |_| true,
        sent: has_tab_around_value,
    },
];

/// The first difference that the table does not explain.
pub(super) fn unexplained(ours: &[Answer], theirs: &[Answer], sent: &[u8]) -> Option<String> {
    for index in 0..ours.len().max(theirs.len()) {
        let (mine, other) = (status(ours, index), status(theirs, index));
        if mine == other {
            // A body that was cut off on one side only is a difference too.
            let whole = |answers: &[Answer]| answers.get(index).is_none_or(|it| it.is_whole);
            if whole(theirs) && !whole(ours) {
                return Some(format!("response {} is cut off", index + 1));
            }
            continue;
        }
        // A server that has announced the end may send less, however it has read the rest.
        let before = index.checked_sub(1).and_then(|before| ours.get(before));
        let is_last = mine == CLOSED && before.is_some_and(|answer| answer.closes);
        return if is_last || is_explained(mine, other, sent) {
            None
        } else {
            Some(format!(
                "response {}: {} here, {} from nginx",
                index + 1,
                named(mine),
                named(other)
            ))
        };
    }
    None
}

/// Whether a row of the table fits.
fn is_explained(ours: u16, theirs: u16, sent: &[u8]) -> bool {
    let mut rows = DIFFERENCES.iter();
    rows.any(|row| (row.ours)(ours) && (row.theirs)(theirs) && (row.sent)(sent))
}

fn has(sent: &[u8], is_it: fn(&[u8]) -> bool) -> bool {
    sent.windows(2).any(is_it)
}

/// Whether a line has HTAB in the white space after its first colon or at its end.
fn has_tab_around_value(sent: &[u8]) -> bool {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    sent.split(|byte| *byte == b'\n').any(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':');
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let mut around = value.iter().take_while(|byte| is_space(byte));
        let mut behind = value.iter().rev().take_while(|byte| is_space(byte));
        around.any(|byte| *byte == b'\t') || behind.any(|byte| *byte == b'\t')
    })
}

fn status(answers: &[Answer], index: usize) -> u16 {
    answers.get(index).map_or(CLOSED, |answer| answer.status)
}

fn named(status: u16) -> String {
    match status {
        CLOSED => "nothing".to_owned(),
        HEADLESS => "a response without a head".to_owned(),
        status => status.to_string(),
    }
}

#[cfg(test)]
mod tests;

//! memcached's text protocol: a key is asked for, and a value answers.

use super::parts::{ENDLESS_HEAD_BYTES, ParsedRequest, Written, at_percent};
use crate::answer::{Answer, Disorder};
use crate::content::body;

/// More bytes than any line of a request has.
const LINE_BYTES_MAX: usize = 300;

pub(super) fn read(input: &[u8]) -> Result<Option<ParsedRequest>, String> {
    let Some(feed) = input.iter().position(|byte| *byte == b'\n') else {
        return if input.len() <= LINE_BYTES_MAX {
            Ok(None)
        } else {
            Err("a line does not end".to_owned())
        };
    };
    let line = std::str::from_utf8(&input[..feed]).unwrap_or_default();
    let key = line.strip_prefix("get ");
    let key = key.and_then(|rest| rest.strip_suffix('\r'));
    let key = key.ok_or_else(|| format!("a line that asks for no key: {line:?}"))?;
    let number = key.rsplit('/').next().and_then(|text| text.parse().ok());
    Ok(Some(ParsedRequest {
        number: number.ok_or_else(|| format!("the key {key:?} has no number"))?,
        path: key.to_owned(),
        is_head: false,
        body: Vec::new(),
        length: feed + 1,
        keeps: true,
    }))
}

/// Ways in which the line before a value is wrong, and what is put in the place of a part of it.
const WRONG_LINES: &[(&str, &str)] = &[
    ("VALUE ", "VALVE "),
    ("VALUE /", "VALUE /other/"),
    (" 0 ", " none "),
    (" 0 ", " 0 -"),
];

pub(super) fn write(answer: &Answer, content: u64, asked: &ParsedRequest) -> Written {
    let is_last = answer.says_close;
    if answer.status != 200 {
        let bytes = b"END\r\n".to_vec();
        return Written {
            head_bytes: bytes.len(),
            bytes,
            broken_at: None,
            is_last,
        };
    }
    let mut line = format!("VALUE {} 0 {}", asked.path, answer.length);
    let mut broken_at = None;
    let mut trailer = *b"\r\nEND\r\n";
    match answer.disorder {
        Some(Disorder::BigField | Disorder::EndlessHead) => {
            line.push_str(&"0".repeat(ENDLESS_HEAD_BYTES));
            broken_at = Some(0);
        }
        Some(Disorder::Wrong { kind, percent }) => match WRONG_LINES.get(kind % 6) {
            Some((right, wrong)) => {
                line = line.replacen(right, wrong, 1);
                broken_at = Some(0);
            }
            None => trailer[at_percent(percent, trailer.len())] = b'x',
        },
        Some(Disorder::Surplus) | None => {}
    }
    if answer.disorder != Some(Disorder::EndlessHead) {
        line.push_str("\r\n");
    }
    let mut bytes = line.into_bytes();
    let head_bytes = bytes.len();
    bytes.extend_from_slice(&body(content, answer.length));
    if trailer != *b"\r\nEND\r\n" {
        broken_at = Some(bytes.len());
    }
    bytes.extend_from_slice(&trailer);
    Written {
        bytes,
        head_bytes,
        broken_at,
        is_last,
    }
}

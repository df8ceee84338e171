//! One line of a log, in the formats `combined` and `json`.

use jiff::civil::DateTime;
use serde_json::{Map, Value};

/// What a line says of a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry {
    /// Seconds since 1970 on the clock of the log's own time zone.
    pub(crate) time_s: Option<i64>,
    pub(crate) client: String,
    /// Empty where the format has none.
    pub(crate) host: String,
    /// The target of the request, with its query; the whole request line if it is none.
    pub(crate) uri: String,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) seconds: Option<f64>,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The names of a value in logs of JSON, ours first.
const TIME: &[&str] = &[
    "time",
    "time_iso8601",
    "@timestamp",
    "timestamp",
    "time_local",
];
const CLIENT: &[&str] = &["client", "remote_addr", "remote_ip"];
const HOST: &[&str] = &["host", "http_host", "server_name"];
const URI: &[&str] = &["uri", "request_uri", "path", "request"];
const BYTES: &[&str] = &["body_bytes", "body_bytes_sent", "bytes_sent"];
const SECONDS: &[&str] = &["seconds", "request_time"];

impl Entry {
    /// Reads a line; `None` if it is in neither format.
    pub(crate) fn read(line: &[u8]) -> Option<Entry> {
        match line.first() {
            Some(b'{') => Entry::of_object(&serde_json::from_slice(line).ok()?),
            _ => Entry::of_combined(&String::from_utf8_lossy(line)),
        }
    }

    fn of_object(object: &Map<String, Value>) -> Option<Entry> {
        let value = |names: &[&str]| names.iter().find_map(|name| object.get(*name));
        let text = |names| match value(names) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        // Values stand in quotes in some formats.
        let number = |names| match value(names) {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let status = number(&["status"])?;
        let uri = text(URI);
        Some(Entry {
            time_s: time(&text(TIME)),
            client: text(CLIENT),
            host: text(HOST),
            uri: target(&uri).to_owned(),
            status: status as u16,
            body_bytes: number(BYTES).unwrap_or(0.0) as u64,
            seconds: number(SECONDS).filter(|seconds| *seconds >= 0.0),
        })
    }

    fn of_combined(line: &str) -> Option<Entry> {
        let (before, rest) = line.split_once(" [")?;
        let (time_text, rest) = rest.split_once("] ")?;
        let (request, rest) = quoted(rest)?;
        let mut words = rest.trim_start().splitn(3, ' ');
        let status = words.next()?.parse().ok()?;
        let body_bytes = words.next()?.parse().unwrap_or(0);
        // The referer and the agent, and what people add.
        let mut rest = words.next().unwrap_or_default().trim_start();
        while let Some((_, after)) = quoted(rest) {
            rest = after.trim_start();
        }
        let seconds = rest.split(' ').find(|word| word.contains('.'));
        Some(Entry {
            time_s: time(time_text),
            client: before.split(' ').next().unwrap_or_default().to_owned(),
            host: String::new(),
            uri: target(request).to_owned(),
            status,
            body_bytes,
            seconds: seconds.and_then(|word| word.parse().ok()),
        })
    }
}

/// The text between two quotes, and what follows. A backslash takes the next character along.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inside.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    Some((&inside[..end], &inside[end + 1..]))
}

/// The target of a request line: `/a` of `GET /a HTTP/1.1`; a target alone is its own.
fn target(request: &str) -> &str {
    let mut words = request.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some(_), Some(target), Some(version)) if version.starts_with("HTTP/") => target,
        _ => request,
    }
}

/// A time such as `2026-11-29T10:00:00+01:00` or `29/Nov/2026:10:00:00 +0100`.
fn time(text: &str) -> Option<i64> {
    let time: DateTime = match text.get(4..5)? {
        "-" => text.get(..19)?.parse().ok()?,
        _ => {
            let month = MONTHS
                .iter()
                .position(|month| text.get(3..6) == Some(month))?;
            let number = |from: usize, to: usize| text.get(from..to)?.parse::<i8>().ok();
            let year = text.get(7..11)?.parse().ok()?;
            let month = i8::try_from(month + 1).ok()?;
            let (day, hour) = (number(0, 2)?, number(12, 14)?);
            DateTime::new(year, month, day, hour, number(15, 17)?, number(18, 20)?, 0).ok()?
        }
    };
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_second())
}

//! Tests as tables: lines and what they say, and whole logs with their reports.

#![allow(clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};

use crate::busiest::{Busiest, Counts, KEYS_MAX};
use crate::entry::Entry;
use crate::options::Options;
use crate::summary::Summary;
use crate::timeline::Timeline;
use crate::{page, text};

/// 2026-11-29 10:00:00 in seconds since 1970.
const TEN_S: i64 = 1_795_946_400;

const COMBINED: &str = "192.0.2.1 - anna [29/Nov/2026:10:00:00 +0100] \
                        \"GET /a?b=c HTTP/1.1\" 200 512 \"-\" \"curl \\\"x\\\" 8.1\"";

fn entry(uri: &str, seconds: Option<f64>) -> Entry {
    Entry {
        time_s: Some(TEN_S),
        client: "192.0.2.1".to_owned(),
        host: String::new(),
        uri: uri.to_owned(),
        status: 200,
        body_bytes: 512,
        seconds,
    }
}

#[test]
fn lines_of_both_formats_are_read() {
    let json = "{\"time\":\"2026-11-29T10:00:00+01:00\",\"client\":\"192.0.2.1\",\
                \"host\":\"x\",\"uri\":\"/a?b=c\",\"status\":200,\"body_bytes\":512,\
                \"seconds\":0.25}";
    let other = "{\"time_local\":\"29/Nov/2026:10:00:00 +0100\",\"remote_addr\":\"192.0.2.1\",\
                 \"request\":\"GET /a?b=c HTTP/1.1\",\"status\":\"200\",\
                 \"body_bytes_sent\":\"512\",\"request_time\":\"0.25\"}";
    let cases = [
        (COMBINED.to_owned(), Some(entry("/a?b=c", None))),
        (
            format!("{COMBINED} 0.25 \"x\""),
            Some(entry("/a?b=c", Some(0.25))),
        ),
        (
            COMBINED.replace("GET /a?b=c HTTP/1.1", "\\x16\\x03"),
            Some(entry("\\x16\\x03", None)),
        ),
        (
            json.to_owned(),
            Some(Entry {
                host: "x".to_owned(),
                ..entry("/a?b=c", Some(0.25))
            }),
        ),
        (other.to_owned(), Some(entry("/a?b=c", Some(0.25)))),
        ("{\"status\":".to_owned(), None),
        ("2026/11/29 10:00:00 [error] 7#7: no".to_owned(), None),
        ("a [b] \"c\" d".to_owned(), None),
        (String::new(), None),
    ];
    for (line, expected) in cases {
        assert_eq!(Entry::read(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn times_that_are_none_are_left_out() {
    for time in [
        "29/Nov/2026",
        "31/Feb/2026:10:00:00 +0000",
        "é",
        "2026-13-01T00:00:00Z",
        "-",
    ] {
        let line = COMBINED.replace("29/Nov/2026:10:00:00 +0100", time);
        assert_eq!(Entry::read(line.as_bytes()).unwrap().time_s, None, "{time}");
    }
}

#[test]
fn command_lines_are_read() {
    let read = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let options = Options::read(&words)?;
        Ok((
            options.files.len(),
            options.top,
            options.with_query,
            options.page.is_some(),
        ))
    };
    let cases = [
        ("a.log - b.gz", Ok((3, 10, false, false))),
        ("a --top 3 --query --html x", Ok((1, 3, true, true))),
        ("-- --top", Ok((1, 10, false, false))),
        ("--top 0 a", Err("--top needs a number from 1 to 1000")),
        ("--tip a", Err("there is no option \"--tip\"")),
        ("--query", Err("a FILE is missing (- is standard input)")),
    ];
    for (line, expected) in cases {
        assert_eq!(read(line), expected.map_err(str::to_owned), "{line}");
    }
}

/// Three requests of two paths, an error, and a line that is none.
fn summary() -> Summary {
    let mut summary = Summary::new(false);
    let slow = COMBINED
        .replace("200 512", "502 2048")
        .replace("/a?b=c", "/slow<");
    let lines = [
        format!("{COMBINED} 0.001"),
        COMBINED
            .replace("b=c", "b=d")
            .replace("10:00:00", "10:02:59")
            + " 0.003",
        format!("{slow} 1.5"),
        "nonsense".to_owned(),
    ];
    for (number, line) in (1..).zip(&lines) {
        summary.take(OsStr::new("access.log"), number, line.as_bytes());
    }
    summary
}

#[test]
fn a_log_is_summarised_as_text() {
    let shown = text::show(&summary(), 10);
    let expected = [
        "3 requests from 2026-11-29 10:00 to 2026-11-29 10:02, 3.00 KiB sent in bodies\n",
        "Not counted: 1 lines in neither of the formats combined and json, the first in \
         access.log:4\n",
        "\nStatuses\n         200           2  66.7 %  ████",
        "\nRequests per minute\n  2026-11-29 10:00           2  ████████████████████████████████\
         ████████  1 with 5xx\n  2026-11-29 10:02           1  ████████████████████\n",
        "\nPaths\n  requests   share      sent  4xx  5xx  average  longest  path\n         2  \
         66.7 %  1.00 KiB    0    0  2.00 ms  3.00 ms  /a\n",
        "\nPaths by total time\n",
        "\nPaths by errors (5xx)\n",
        "\nClients\n",
    ];
    for part in expected {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("Hosts"), "{shown}");
    let times = text::times(&summary()).unwrap();
    assert!(times.starts_with("half within 3.00 ms"), "{times}");
    let first = text::show(&summary(), 1);
    assert!(first.contains("/a\n  and 1 more\n"), "{first}");
}

#[test]
fn a_page_has_the_same_and_escapes_what_clients_wrote() {
    let page = page::show(&summary(), 10).unwrap();
    let expected = [
        "3 requests from 2026-11-29 10:00",
        "<th scope=\"row\" title=\"/slow&lt;\">/slow&lt;</th><td>1</td>",
        "aria-label=\"Requests per minute\"",
        "2026-11-29 10:02: 1 requests, 0 with 5xx",
    ];
    for part in expected {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let mut summary = Summary::new(true);
    let line = "{\"uri\":\"/\\u001b[2J\\u009b\",\"status\":200}";
    summary.take(OsStr::new("-"), 1, line.as_bytes());
    let shown = text::show(&summary, 1);
    assert!(shown.contains("/\\x1B[2J\\x9B"), "{shown}");
    assert!(
        !shown.chars().any(|one| one.is_control() && one != '\n'),
        "{shown:?}"
    );
}

#[test]
fn rare_keys_are_forgotten_and_busy_ones_stay() {
    let mut busiest = Busiest::default();
    for number in 0..3 * KEYS_MAX {
        busiest.of(&format!("rare {number}")).add(200, 1, None);
        busiest.of("busy").add(500, 1, Some(0.5));
    }
    let (first, count) = busiest.first(1, |counts| counts.requests as f64);
    assert!(count <= KEYS_MAX && busiest.lost_max > 0, "{count}");
    let (key, counts) = first[0];
    assert_eq!((key, counts.requests), ("busy", 3 * KEYS_MAX as u64));
    assert_eq!(counts.seconds_average(), Some(0.5));
}

#[test]
fn intervals_grow_when_there_are_too_many() {
    let mut timeline = Timeline::new();
    let minutes: i64 = 5000;
    for minute in 0..minutes {
        timeline.of(TEN_S + minute * 60).unwrap().add(200, 1, None);
    }
    assert_eq!(timeline.length_s(), 600);
    let (length_s, intervals) = timeline.at_most(10);
    let sum = |intervals: &[(i64, Counts)]| -> u64 {
        intervals.iter().map(|(_, counts)| counts.requests).sum()
    };
    assert_eq!((length_s, sum(&intervals)), (86_400, minutes as u64));
    // Times that are nonsense neither fill the memory nor end the program.
    for year in 0..3000 {
        if let Some(counts) = timeline.of(year * 31_536_000) {
            counts.add(200, 1, None);
        }
    }
    assert!(timeline.left_out > 0);
}

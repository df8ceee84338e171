#![allow(clippy::unwrap_used)]

use turnpike_conf::{Complaint, Span, Word};
use turnpike_http::variables::table;

use super::escape::Escape;
use super::files::{CacheRules, FileCache};
use super::format::Format;

fn words(texts: &[&str]) -> Vec<Word> {
    let span = Span {
        file: turnpike_conf::FileId(0),
        line: 1,
    };
    let word = |text: &&str| Word {
        text: (*text).to_owned(),
        quoted: false,
        span,
    };
    texts.iter().map(word).collect()
}

#[test]
fn escapes_from_where_the_value_starts() {
    let cases: &[(Escape, &[u8], &str)] = &[
        (Escape::Default, b"plain/path?a=1", "plain/path?a=1"),
        (Escape::Default, b"a\"b\\c", "a\\x22b\\x5Cc"),
        (Escape::Default, b"\x00\x1f\x7f\xff", "\\x00\\x1F\\x7F\\xFF"),
        (Escape::Json, b"a\"b\\c/d", "a\\\"b\\\\c/d"),
        (Escape::Json, b"\n\r\t\x08\x0c", "\\n\\r\\t\\b\\f"),
        (Escape::Json, b"\x01\x1f\x7f", "\\u0001\\u001F\x7f"),
        (Escape::None, b"\"\n\\", "\"\n\\"),
    ];
    for (escape, value, expected) in cases {
        let (mut line, mut spare) = (b"\"head ".to_vec(), Vec::new());
        line.extend_from_slice(value);
        escape.apply(&mut line, 6, &mut spare);
        let expected = format!("\"head {expected}").into_bytes();
        assert_eq!(line, expected, "{escape:?} of {value:?}");
    }
}

#[test]
fn compiles_formats_or_says_what_is_wrong() {
    let cases: &[(&[&str], &str)] = &[
        (&["$uri:$status"], ""),
        (&["escape=json", "{\"a\":\"${uri}b\"}"], ""),
        (&["escape=none"], ""),
        (&["escape=xml", "a"], "unknown log format escaping \"xml\""),
        (&["a $"], "invalid parameter \"$\""),
        (&["a $-b"], "invalid parameter \"$-b\""),
        (
            &["${uri"],
            "the closing bracket in \"uri\" variable is missing",
        ),
    ];
    for (text, message) in cases {
        let mut variables = table([]);
        let result = Format::compile(&words(text), &mut variables);
        let got = result.err().map(String::from).unwrap_or_default();
        assert_eq!(&got, message, "{text:?}");
    }
}

#[test]
fn reads_the_cache_of_log_files() {
    let cases: &[(&[&str], Result<bool, &str>)] = &[
        (&["off"], Ok(false)),
        (&["max=3"], Ok(true)),
        (
            &["max=3", "inactive=20s", "valid=1m", "min_uses=2"],
            Ok(true),
        ),
        (
            &["inactive=20s"],
            Err("\"open_log_file_cache\" must have \"max\" parameter"),
        ),
        (
            &["max=x"],
            Err("invalid \"open_log_file_cache\" parameter \"max=x\""),
        ),
        (
            &["size=1"],
            Err("invalid \"open_log_file_cache\" parameter \"size=1\""),
        ),
    ];
    for (text, expected) in cases {
        let got = CacheRules::read(&words(text)).map(|rules| rules.is_some());
        assert_eq!(got, expected.map_err(Complaint::from), "{text:?}");
    }
}

#[test]
fn the_least_recently_used_log_is_closed_though_all_were_used_in_one_millisecond() {
    let rules = CacheRules::read(&words(&["max=16"])).unwrap().unwrap();
    let now_ms = 1;
    let mut cache = FileCache::default();
    let path = |number: usize| format!("/logs/{number}").into_bytes();
    let keep = |cache: &mut FileCache, number: usize| {
        assert!(cache.used(&path(number), &rules, now_ms).is_none());
        let file = std::fs::File::open("/dev/null").unwrap();
        cache.keep(&path(number), file.into(), &rules, now_ms);
    };
    for number in 0..16 {
        keep(&mut cache, number);
    }
    for number in 0..8 {
        assert!(cache.used(&path(number), &rules, now_ms).is_some());
    }
    for number in 16..24 {
        keep(&mut cache, number);
    }
    for number in 0..24 {
        let is_open = cache.used(&path(number), &rules, now_ms).is_some();
        assert_eq!(is_open, !(8..16).contains(&number), "log {number}");
    }
}

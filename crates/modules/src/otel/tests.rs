#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use turnpike_testkit::collector;

use super::context::TraceContext;
use super::message::{self, Attribute, SPAN_ATTRIBUTES, Times};
use super::plan::parse_endpoint;
use super::sender::send;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_traceparent_is_read_as_the_recommendation_says() {
    for (text, sampled) in [
        (PARENT.to_owned(), Some(true)),
        (PARENT.replace("-01", "-00"), Some(false)),
        // Other flags are not looked at.
        (PARENT.replace("-01", "-fe"), Some(false)),
        (PARENT.replace("-01", "-ff"), Some(true)),
        // A later version may have more after it.
        (PARENT.replacen("00-", "cc-", 1), Some(true)),
        (PARENT.replacen("00-", "cc-", 1) + "-what", Some(true)),
        (PARENT.replacen("00-", "cc-", 1) + ".what", None),
        (PARENT.to_owned() + "-what", None),
        (PARENT.replacen("00-", "ff-", 1), None),
        (PARENT.to_uppercase(), None),
        (
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            None,
        ),
        (PARENT.replace("b7ad6b7169203331", &"0".repeat(16)), None),
        (PARENT.replace("b7ad", "b7a-"), None),
        (PARENT.replace('-', "_"), None),
        (PARENT[..54].to_owned(), None),
        (String::new(), None),
    ] {
        let context = TraceContext::parse(text.as_bytes(), b"a=b");
        let found = context.as_ref().map(|context| context.is_sampled);
        assert_eq!(found, sampled, "{text}");
        assert!(context.is_none_or(|context| &*context.state == b"a=b"));
    }
    let long = "x".repeat(5000);
    let context = TraceContext::parse(PARENT.as_bytes(), long.as_bytes()).unwrap();
    assert!(context.state.is_empty());
}

#[test]
fn a_span_stays_in_the_trace_of_its_parent() {
    let parent = TraceContext::parse(PARENT.as_bytes(), b"a=b").unwrap();
    let own = TraceContext::begin(Some(&parent)).unwrap();
    assert_eq!((own.trace, &own.state), (parent.trace, &parent.state));
    assert_ne!(own.span, parent.span);
    let mut own = TraceContext::begin(None).unwrap();
    assert_ne!(own.trace, parent.trace);
    own.is_sampled = true;
    assert_eq!(TraceContext::parse(own.text().as_bytes(), b""), Some(own));
}

#[test]
fn another_decoder_reads_what_is_written() {
    let own = TraceContext::parse(PARENT.as_bytes(), b"a=b").unwrap();
    let times = Times {
        start_ns: 1_700_000_000_000_000_000,
        end_ns: u64::MAX,
    };
    let span = message::span(&own, Some([1; 8]), b"n\xff", &times, true, |span| {
        span.attribute(
            SPAN_ATTRIBUTES,
            "text",
            Attribute::Text("ü\u{7f}".as_bytes()),
        );
        span.attribute(
            SPAN_ATTRIBUTES,
            "number",
            Attribute::Number(u64::from(u32::MAX)),
        );
        span.attribute(SPAN_ATTRIBUTES, "texts", Attribute::Texts(b"x"));
        span.attribute(SPAN_ATTRIBUTES, "long", Attribute::Text(&[b'y'; 9000]));
    });
    let plain = message::span(&own, None, b"", &times, false, |_| {});
    let resource = [("service.name".to_owned(), "s".to_owned())];
    let spans = collector::decode(&message::batch(&resource, "1", &[span, plain])).unwrap();
    let [first, second] = &*spans else {
        panic!("{spans:?}");
    };
    assert_eq!(first.trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(
        (&*first.span, &*first.parent),
        ("b7ad6b7169203331", "0101010101010101")
    );
    // What is no UTF-8 would spoil the whole batch.
    assert_eq!((&*first.name, &*first.state), ("n\u{fffd}", "a=b"));
    assert_eq!((first.kind, first.status), (2, 2));
    assert_eq!((first.start_ns, first.end_ns), (times.start_ns, u64::MAX));
    let number = u32::MAX.to_string();
    for (name, value) in [("text", "ü\u{7f}"), ("number", &number), ("texts", "[x]")] {
        assert_eq!(first.attributes[name], value, "{name}");
    }
    assert_eq!(first.attributes["long"].len(), 4096);
    assert_eq!((second.status, &*second.parent), (0, ""));
    assert_eq!(second.resource["service.name"], "s");
}

#[test]
fn endpoints_are_read_as_nginx_reads_them_and_with_a_path() {
    for (text, host, port, path) in [
        ("localhost:4317", "localhost", 4317, None),
        ("collector", "collector", 4317, None),
        ("http://10.0.0.1:1", "10.0.0.1", 1, None),
        ("HTTP://h:1/", "h", 1, None),
        ("http://h/v1/traces", "h", 4318, Some("/v1/traces")),
        ("https://[::1]:443/a?b=c", "::1", 443, Some("/a?b=c")),
    ] {
        let endpoint = parse_endpoint(text).unwrap();
        let found = (&*endpoint.host, endpoint.port, endpoint.path.as_deref());
        assert_eq!(found, (host, port, path), "{text}");
        assert_eq!(endpoint.tls.is_some(), text.starts_with("https"), "{text}");
    }
    for text in [
        ":4317",
        "h:",
        "h:0",
        "h:70000",
        "h:1:2",
        "[::1",
        "h:4317x",
        "a b:1",
        "http://",
        "http://h/a b",
        "http://u@h:1",
    ] {
        assert!(parse_endpoint(text).is_err(), "{text}");
    }
}

const REQUEST: &str = "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\
    Content-Type: application/x-protobuf\r\nContent-Length: 5\r\nConnection: close\r\n\
    X-Key: secret\r\n\r\nbatch";

const NO_RESPONSE: Result<(), &str> = Err("the collector sent no HTTP response");

/// Answers of a collector, and what they mean.
const ANSWERS: &[(&str, Result<(), &str>)] = &[
    ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
    ("HTTP/1.0 202 Accepted\r\nContent-Length: 9\r\n\r\n", Ok(())),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        Ok(()),
    ),
    (
        "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        Err("the collector answered with status 503"),
    ),
    ("HTTP/1.1 200 OK\r\n", NO_RESPONSE),
    ("HTTP/1.1 200 OK\r\nX-Wrong: \0\r\n\r\n", NO_RESPONSE),
    ("SSH-2.0-OpenSSH_10.0\r\n\r\n", NO_RESPONSE),
    ("", NO_RESPONSE),
];

#[test]
fn a_collector_is_asked_and_understood_by_http() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let endpoint = parse_endpoint(&format!("http://127.0.0.1:{port}/v1/traces")).unwrap();
    let headers = [("X-Key".to_owned(), "secret".to_owned())];
    let expected = REQUEST.replace("PORT", &port.to_string());
    for (answer, outcome) in ANSWERS {
        let sent = std::thread::scope(|scope| {
            let collector = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = vec![0; expected.len()];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8(request).unwrap()
            });
            let deadline = Instant::now() + Duration::from_secs(3600);
            let sent = send(&endpoint, &headers, b"batch", deadline);
            assert_eq!(collector.join().unwrap(), expected);
            sent
        });
        let failed = sent.err();
        assert_eq!(failed.as_deref(), outcome.err(), "{answer:?}");
    }
}

//! A comparison with httparse: if both parsers accept a head, they must find the same in it.

use turnpike_testkit::random::Random;

use super::*;

const SEEDS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
    "GET /a/b?c=d HTTP/1.1\r\nHost: h\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n",
    "POST /form HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n",
    "GET http://example.com/x HTTP/1.0\r\nConnection: keep-alive\r\nCookie: a=b; c=d\r\n\r\n",
    "PUT /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nExpect: 100-continue\n\n",
    "GET /%7Euser/../x HTTP/1.1\r\nHost:h\r\nRange: bytes=0-5 \r\nIf-None-Match: \"x\"\r\n\r\n",
];

#[test]
fn heads_both_take_are_read_alike() {
    // The seed is fixed, so that a failure can be repeated.
    let mut random = Random::new(1);
    let mut both = 0;
    for round in 0..30_000 {
        let mut text = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..random.index(4) {
            let at = random.index(text.len());
            match random.index(3) {
                0 => text[at] = b" \r\n:\t/AZaz09_.%?#\0\x7f\x80"[random.index(20)],
                1 => drop(text.remove(at)),
                _ => text.insert(at, text[random.index(text.len())]),
            }
        }
        for strictness in [Strictness::Rfc, Strictness::Nginx] {
            both += usize::from(compare(&text, strictness));
        }
    }
    assert!(both > 10_000, "{both}");
}

fn compare(text: &[u8], strictness: Strictness) -> bool {
    let rules = HeadRules {
        invalid_fields: InvalidFields::Keep,
        strictness,
        ..HeadRules::default()
    };
    let mut head = RequestHead::default();
    let ours = parse_request(text, 0, &rules, &mut head);
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut theirs = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = theirs.parse(text) else {
        return false;
    };
    if ours != Ok(HeadStep::Complete) || head.version == Version::Http09 {
        return false;
    }
    let shown = String::from_utf8_lossy(text);
    assert_eq!(head.head_len, len, "{shown:?}");
    assert_eq!(
        head.method_span.of(text),
        theirs.method.unwrap().as_bytes(),
        "{shown:?}"
    );
    assert_eq!(
        head.target.of(text),
        theirs.path.unwrap().as_bytes(),
        "{shown:?}"
    );
    assert_eq!(
        head.version == Version::Http11,
        theirs.version == Some(1),
        "{shown:?}"
    );
    assert_eq!(head.fields.len(), theirs.headers.len(), "{shown:?}");
    for (ours, theirs) in head.fields.iter().zip(theirs.headers.iter()) {
        assert_eq!(ours.name.of(text), theirs.name.as_bytes(), "{shown:?}");
        if strictness == Strictness::Rfc {
            assert_eq!(ours.value.of(text), theirs.value, "{shown:?}");
        }
        // httparse removes tabs from a value, nginx does not.
        assert_eq!(
            ours.value.of(text).trim_ascii(),
            theirs.value.trim_ascii(),
            "{shown:?}"
        );
    }
    true
}

//! Answers of FastCGI, SCGI, uwsgi and memcached that are cut at each byte, too large, endless, of
//! another protocol or slow: the client never takes them for a whole body that is wrong.

use turnpike_testkit::{Origin, Server, Step, wait_for};

/// The body of every whole answer.
const BODY: &str = "0123456789";

/// A protocol of an upstream server.
struct Codec {
    name: &'static str,
    directives: &'static str,
    /// The bytes of the request that these directives make.
    request_bytes: usize,
    /// What stands before the body.
    head: fn() -> Vec<u8>,
    /// What stands behind it.
    tail: fn() -> Vec<u8>,
    /// What begins a head of which this many bytes follow.
    large: fn(usize) -> Vec<u8>,
    /// An answer of another protocol, and the log's line about it.
    other: (&'static [u8], &'static str),
}

/// The head of an application's answer.
const CGI_HEAD: &str = "Status: 200 OK\r\nContent-Length: 10\r\n\r\n";

/// A record's head of FastCGI: the application's output, with so many bytes.
fn output(bytes: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(bytes).unwrap().to_be_bytes();
    vec![1, 6, 0, 1, high, low, 0, 0]
}

fn cgi_head() -> Vec<u8> {
    CGI_HEAD.as_bytes().to_vec()
}

fn large_field(bytes: usize) -> Vec<u8> {
    format!("X-Large: {}", "x".repeat(bytes)).into_bytes()
}

const CODECS: &[Codec] = &[
    Codec {
        name: "fastcgi",
        directives: "fastcgi_pass_request_headers off; fastcgi_param A b; \
                     fastcgi_param HTTP_HOST '';",
        request_bytes: 48,
        head: || [output(CGI_HEAD.len() + BODY.len()), cgi_head()].concat(),
        tail: || vec![1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        large: |bytes| {
            let piece = [output(60_000), vec![b'x'; 60_000]].concat();
            let begin = [output(9), b"X-Large: ".to_vec()].concat();
            let pieces = piece.repeat(bytes.div_ceil(60_000));
            [begin, pieces].concat()
        },
        other: (
            b"HTTP/1.1 200 OK\r\n\r\n0123456789",
            "upstream sent unsupported FastCGI protocol version",
        ),
    },
    Codec {
        name: "scgi",
        directives: "scgi_pass_request_headers off; scgi_param A bcd; \
                     scgi_param HTTP_HOST '';",
        request_bytes: 27,
        head: cgi_head,
        tail: Vec::new,
        large: large_field,
        other: (
            b"\x01\x06\0\x01\0\x0a\0\0\r\n\r\n0123456789",
            "upstream sent ",
        ),
    },
    Codec {
        name: "uwsgi",
        directives: "uwsgi_pass_request_headers off; uwsgi_param A bcd; \
                     uwsgi_param HTTP_HOST '';",
        request_bytes: 12,
        head: cgi_head,
        tail: Vec::new,
        large: large_field,
        other: (
            b"\x01\x06\0\x01\0\x0a\0\0\r\n\r\n0123456789",
            "upstream sent ",
        ),
    },
    Codec {
        name: "memcached",
        directives: "set $memcached_key /a;",
        request_bytes: 8,
        head: || b"VALUE /a 0 10\r\n".to_vec(),
        tail: || b"\r\nEND\r\n".to_vec(),
        large: |bytes| format!("VALUE /a {}", "0".repeat(bytes)).into_bytes(),
        other: (
            b"HTTP/1.1 200 OK\r\n\r\n0123456789",
            "memcached sent invalid response",
        ),
    },
];

impl Codec {
    fn whole(&self) -> Vec<u8> {
        [(self.head)(), BODY.as_bytes().to_vec(), (self.tail)()].concat()
    }

    /// The script of a connection that answers the request so.
    fn script(&self, mut answer: Vec<Step>) -> Vec<Step> {
        answer.insert(0, Step::ReadBytes(self.request_bytes));
        answer
    }

    fn server(&self, scripts: Vec<Vec<Step>>) -> (Origin, Server) {
        let origin = Origin::start(scripts);
        let (name, directives, port) = (self.name, self.directives, origin.port());
        let configuration = format!(
            "error_log %FOLDER%/error.log info;
            events {{ }}
            http {{ server {{
                listen 127.0.0.1:%PORT%;
                location / {{ {name}_pass 127.0.0.1:{port}; {directives} }}
            }} }}"
        );
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        (origin, server)
    }
}

/// The status and the body of a response, as far as they came, and the log's new lines once they
/// hold `logged`.
fn answer(server: &Server, logged: &str) -> (u16, String, String) {
    let before = server.log("error.log").len();
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let response = String::from_utf8_lossy(&server.exchange(request)).into_owned();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let added = || {
        let log = server.log("error.log").split_off(before);
        log.contains(logged).then_some(log)
    };
    let log = wait_for(added).unwrap_or_else(|| panic!("no {logged:?}: {response}"));
    if status == 200 {
        assert!(head.contains("Content-Length: 10"), "{head}");
    }
    (status, body.to_owned(), log)
}

#[test]
fn an_answer_cut_at_any_byte_is_cut_for_the_client_too() {
    for codec in CODECS {
        let whole = codec.whole();
        let head_bytes = (codec.head)().len();
        let cuts = 0..=whole.len();
        let script = |cut| codec.script(vec![Step::send(&whole[..cut])]);
        let (_origin, server) = codec.server(cuts.clone().map(script).collect());
        for cut in cuts {
            let is_whole = cut >= head_bytes + BODY.len();
            let logged = ["upstream prematurely closed", ""][usize::from(is_whole)];
            let (status, body, log) = answer(&server, logged);
            let shown = format!("{} cut at {cut}: {status} {body} {log}", codec.name);
            if cut < head_bytes {
                assert_eq!(status, 502, "{shown}");
                continue;
            }
            let came = (cut - head_bytes).min(BODY.len());
            assert_eq!((status, body.as_str()), (200, &BODY[..came]), "{shown}");
        }
    }
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_whole() {
    for codec in CODECS {
        let bytes = codec.whole().into_iter();
        let steps = bytes.flat_map(|byte| [Step::Send(vec![byte]), Step::DelayMs(1)]);
        let (_origin, server) = codec.server(vec![codec.script(steps.collect())]);
        let (status, body, log) = answer(&server, "");
        assert_eq!(
            (status, body.as_str()),
            (200, BODY),
            "{}: {log}",
            codec.name
        );
    }
}

#[test]
fn heads_that_cannot_be_are_502() {
    for codec in CODECS {
        let (other, about_other) = codec.other;
        // Somewhat more than the buffer, and more than any socket holds.
        let answers = [
            ((codec.large)(6000), "upstream sent too big header"),
            ((codec.large)(16 << 20), "upstream sent too big header"),
            (other.to_vec(), about_other),
        ];
        let script = |(bytes, _): &(Vec<u8>, &str)| {
            // The connection stays open: nothing but the answer may end the request.
            codec.script(vec![Step::send(bytes), Step::ReadToEnd])
        };
        let (_origin, server) = codec.server(answers.iter().map(script).collect());
        for (number, (_, logged)) in answers.iter().enumerate() {
            let (status, body, log) = answer(&server, logged);
            let shown = format!("{} {number}: {body} {log}", codec.name);
            assert_eq!(status, 502, "{shown}");
            assert!(!body.contains(BODY), "{shown}");
        }
    }
}

//! Tests of requests that wait for their response on a kept connection, without a task: the usual
//! case, and the failures.

use std::io::Read as _;
use std::net::TcpListener;

use turnpike_testkit::{Origin, Peer, Server, Signal, Step, process, wait_for};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server in front of an origin; `directives` are in its location.
fn server(origin: &Origin, directives: &str) -> Server {
    server_before(origin.port(), directives)
}

fn server_before(port: u16, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format up '$status $upstream_status $upstream_connect_time.';
            access_log %FOLDER%/access.log up;
            proxy_cache_path %FOLDER%/cache keys_zone=z:1m;
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://127.0.0.1:{port}; {directives} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// An origin that answers once, and then runs these steps on the same connection.
fn origin(then: Vec<Step>) -> Origin {
    let mut steps = vec![Step::ReadHead, Step::send(OK), Step::ReadHead];
    steps.extend(then);
    steps.push(Step::ReadToEnd);
    Origin::start(vec![
        steps,
        vec![Step::ReadHead, Step::send(OK), Step::ReadToEnd],
    ])
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// The origin's second answer, and the client's response.
const ANSWERS: &[(&str, &[&str], u16, &str)] = &[
    ("in one piece", &[OK], 200, "ok"),
    (
        "in a torn head",
        &["HTTP/1.1 200 O", "K\r\nContent-Length: 2\r\n", "\r\nok"],
        200,
        "ok",
    ),
    (
        "in a torn body",
        &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na", "bc", "d"],
        200,
        "abcd",
    ),
    (
        "in torn chunks",
        &[
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r",
            "\nab\r\n0\r\n",
            "\r\n",
        ],
        200,
        "ab",
    ),
    (
        "after hints",
        &["HTTP/1.1 103 Hints\r\n\r\n", OK],
        200,
        "ok",
    ),
    (
        "with an error",
        &["HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx"],
        404,
        "x",
    ),
];

#[test]
fn answers_come_in_any_pieces() {
    for (name, pieces, status, body) in ANSWERS {
        let mut steps = Vec::new();
        for piece in *pieces {
            steps.push(Step::send(piece));
            steps.push(Step::DelayMs(20));
        }
        let origin = origin(steps);
        let server = server(&origin, "");
        let mut peer = server.connect();
        assert_eq!(peer.round(GET).text(), "ok", "{name}");
        let response = peer.round(GET);
        assert_eq!(
            (response.status, response.text().as_str()),
            (*status, *body),
            "{name}"
        );
        assert_eq!(origin.received().len(), 1, "{name}");
    }
}

/// A body that fits into the buffers, but not into the first part.
const BODY_BYTES: usize = 16 * 1024;

/// The same as `answers_come_in_any_pieces` for larger bodies: the number of their bytes after the
/// head, and in each piece after that.
const BODIES: &[(&str, &str, &[usize])] = &[
    ("behind the head", "", &[BODY_BYTES]),
    ("behind the head by a byte", "", &[1, BODY_BYTES - 1]),
    ("in a piece of its own", "", &[0, BODY_BYTES]),
    ("in pieces", "", &[5000, 6000, 5000, 384]),
    ("unbuffered", "proxy_buffering off;", &[5000, 11384]),
    ("slower", "proxy_limit_rate 1m;", &[5000, 11384]),
    ("in small buffers", "proxy_buffers 3 4k;", &[5000, 11384]),
    (
        "counted by a cache",
        "proxy_cache z; proxy_cache_valid 1m;",
        &[5000, 11384],
    ),
    (
        "compressed",
        "gzip on; gzip_types *; gunzip on;",
        &[5000, 11384],
    ),
];

#[test]
fn bodies_that_fit_the_buffers_come_in_any_pieces() {
    let body: Vec<u8> = (0..BODY_BYTES).map(|at| b'a' + (at % 23) as u8).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    for (name, directives, pieces) in BODIES {
        let mut steps = Vec::new();
        let (mut piece, mut at) = (head.clone().into_bytes(), 0);
        for bytes in *pieces {
            piece.extend_from_slice(&body[at..at + bytes]);
            at += bytes;
            steps.extend([Step::Send(std::mem::take(&mut piece)), Step::DelayMs(20)]);
        }
        let origin = origin(steps);
        let server = server(&origin, directives);
        let mut peer = server.connect();
        assert_eq!(
            peer.round("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").text(),
            "ok",
            "{name}"
        );
        let response = peer.round(GET);
        assert_eq!(response.status, 200, "{name}");
        assert!(
            response.body == body,
            "{name}: {} bytes",
            response.body.len()
        );
        assert_eq!(origin.received().len(), 1, "{name}");
    }
}

#[test]
fn a_part_of_a_body_waits_for_the_rest_for_a_short_time_only() {
    let origin = origin(vec![
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
        // The script waits without end: the client sends again when it has the first half.
        Step::ReadHead,
        Step::send("def"),
    ]);
    let server = server(&origin, "proxy_read_timeout 1h;");
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).text(), "ok");
    peer.send(GET);
    let mut stream = peer.stream();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"abc") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_body_that_breaks_off_is_cut_short() {
    for (name, last, line) in [
        ("closed", vec![], "upstream prematurely closed connection"),
        (
            "reset",
            vec![Step::Reset],
            "recv() failed (104: Connection reset by peer)",
        ),
    ] {
        let mut steps = vec![
            Step::ReadHead,
            Step::send(OK),
            Step::ReadHead,
            Step::send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
            Step::DelayMs(20),
        ];
        steps.extend(last);
        let origin = Origin::start(vec![steps]);
        let server = server(&origin, "");
        let mut peer = server.connect();
        assert_eq!(peer.round(GET).text(), "ok", "{name}");
        peer.send(GET);
        let rest = String::from_utf8(peer.rest()).unwrap();
        assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {rest}");
        assert!(rest.ends_with("\r\n\r\nabc"), "{name}: {rest}");
        server.wait_for_log("error.log", line);
    }
}

#[test]
fn a_connection_with_more_than_the_body_is_not_used_again() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
    let origin = origin(vec![
        Step::send(answer),
        Step::DelayMs(20),
        Step::send("abcdefg"),
    ]);
    let server = server(&origin, "");
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).text(), "ok");
    assert_eq!(peer.round(GET).text(), "abcdef");
    server.wait_for_log(
        "error.log",
        "upstream sent more data than specified in \"Content-Length\" header",
    );
    assert_eq!(peer.round(GET).text(), "ok");
    assert_eq!(origin.received().len(), 2);
}

#[test]
fn a_kept_connection_that_breaks_is_replaced() {
    let origin = origin(vec![Step::Reset]);
    // The script ends, which closes the connection without a response.
    let server = server(
        &origin,
        "proxy_read_timeout 200ms; proxy_next_upstream off;",
    );
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).status, 200);
    assert_eq!(peer.round(GET).status, 504);
    assert_eq!(peer.round(GET).status, 200);
}

/// Receives a request without a body.
fn read_head(origin: &Peer) {
    let mut stream = origin.stream();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

#[test]
fn a_head_that_breaks_off_is_noticed_at_once() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = server_before(port, "proxy_read_timeout 1h; proxy_next_upstream off;");
    let mut client = server.connect();
    client.send(GET);
    let mut origin = Peer::over(listener.accept().unwrap().0);
    read_head(&origin);
    origin.send(OK);
    assert_eq!(client.response().status, 200);
    client.send(GET);
    read_head(&origin);
    // Half a head and the connection's end are there before the server reads.
    let serving = server.serving_pids()[0];
    process::signal(serving, Signal::SIGSTOP);
    assert!(wait_for(|| process::is_stopped(serving).then_some(())).is_some());
    origin.send("HTTP/1.1 200 OK\r\nContent-");
    drop(origin);
    process::signal(serving, Signal::SIGCONT);
    assert_eq!(client.response().status, 502);
}

#[test]
fn an_answer_that_does_not_come_is_504() {
    let origin = origin(vec![]);
    let server = server(&origin, "proxy_read_timeout 100ms;");
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).status, 200);
    assert_eq!(peer.round(GET).status, 504);
    server.wait_for_log(
        "error.log",
        "upstream timed out (110: Connection timed out)",
    );
    server.wait_for_log("access.log", "504 504 0.000.");
}

#[test]
fn a_client_that_goes_away_is_499() {
    let origin = origin(vec![]);
    let server = server(&origin, "");
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).status, 200);
    peer.send(GET);
    drop(peer);
    server.wait_for_log("access.log", "499 ");
}

#[test]
fn what_a_client_sends_meanwhile_is_served_next() {
    let origin = origin(vec![
        Step::DelayMs(100),
        Step::send(OK),
        Step::ReadHead,
        Step::send(OK),
    ]);
    let server = server(&origin, "");
    let mut peer = server.connect();
    assert_eq!(peer.round(GET).text(), "ok");
    peer.send(GET);
    std::thread::sleep(std::time::Duration::from_millis(30));
    peer.send(GET);
    assert_eq!(peer.response().text(), "ok");
    assert_eq!(peer.response().text(), "ok");
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let mut steps = Vec::new();
    for number in 0..20 {
        steps.push(Step::ReadHead);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{number:02}");
        steps.push(Step::send(answer));
    }
    let origin = Origin::start(vec![steps]);
    let server = server(&origin, "");
    let mut peer = server.connect();
    peer.send(GET.repeat(20));
    for number in 0..20 {
        assert_eq!(peer.response().text(), format!("{number:02}"));
    }
}

#[test]
fn small_bodies_are_passed_on() {
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    let round = [Step::ReadHead, Step::ReadBytes(5), Step::send(OK)];
    let steps: Vec<Step> = std::iter::repeat_n(round, 3).flatten().collect();
    let origin = Origin::start(vec![steps]);
    let server = server(&origin, "");
    let mut peer = server.connect();
    for _ in 0..3 {
        assert_eq!(peer.round(post).text(), "ok");
    }
    assert_eq!(origin.received().len(), 1);
}

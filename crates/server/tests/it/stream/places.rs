//! Tests of sessions of `stream` that use a lane's places up: silent clients and flows, and
//! sessions that come back to the address where they were accepted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::echo::echo;
use turnpike_testkit::{Origin, Server, Signal, Step, process, wait_for};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connections of a lane, and how many of them sessions may have: an HTTP server keeps two.
const CONNECTIONS: usize = 32;
const SESSIONS: usize = 30;

/// The start of a connection to `own.test` with TLS 1.2.
fn hello() -> Vec<u8> {
    let extensions = b"\0\0\0\x0d\0\x0b\0\0\x08own.test";
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0xc0, 0x2f, 1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let message = [&[1, 0, 0, body.len() as u8], body.as_slice()].concat();
    [&[22, 3, 1, 0, message.len() as u8], message.as_slice()].concat()
}

/// A client of a session.
trait Client: Read + Write {
    fn set_patience(&self);
}

impl Client for TcpStream {
    fn set_patience(&self) {
        self.set_read_timeout(Some(PATIENCE)).unwrap();
    }
}

impl Client for UnixStream {
    fn set_patience(&self) {
        self.set_read_timeout(Some(PATIENCE)).unwrap();
    }
}

/// Connects to a port of that name, or to a socket in the server's folder.
fn connect(server: &Server, to: &str) -> Box<dyn Client> {
    let client: Box<dyn Client> = if let Some(name) = to.strip_prefix('/') {
        Box::new(UnixStream::connect(server.folder().join(name)).unwrap())
    } else {
        Box::new(TcpStream::connect(("127.0.0.1", server.port_named(to))).unwrap())
    };
    client.set_patience();
    client
}

fn datagram_client(server: &Server, to: &str) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client
        .connect(("127.0.0.1", server.port_named(to)))
        .unwrap();
    client
}

fn is_closed(client: &mut dyn Client) -> bool {
    match client.read(&mut [0; 8]) {
        Ok(count) => count == 0,
        // Unread bytes turn the end into a reset.
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

fn server(text: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(text)
        .start()
}

/// How often a text is in the error log.
fn count(server: &Server, text: &str) -> usize {
    server.log("error.log").matches(text).count()
}

fn wait_for_count(server: &Server, text: &str, expected: usize) {
    let found = wait_for(|| (count(server, text) >= expected).then_some(()));
    assert!(found.is_some(), "{text} in {}", server.log("error.log"));
    assert_eq!(count(server, text), expected, "{text}");
}

const FULL: &str = "[alert] ";
const LOOP: &str = "proxy_pass loop: ";

/// A server whose clients may be silent in many ways.
const SILENT: &str = "worker_processes 1; error_log %FOLDER%/error.log info;
    events { worker_connections 32; }
    http { server { listen 127.0.0.1:%PORT_HTTP%; return 200 ok; } }
    stream {
        server {
            listen 127.0.0.1:%PORT_RELAY%;
            listen unix:%FOLDER%/relay;
            proxy_pass 127.0.0.1:%ECHO%;
        }
        server { listen 127.0.0.1:%PORT_HELLO%; ssl_preread on; proxy_pass 127.0.0.1:%ECHO%; }
        server { listen 127.0.0.1:%PORT_HEAD% proxy_protocol; proxy_pass 127.0.0.1:%ECHO%; }
        server { listen 127.0.0.1:%PORT_FLOW% udp; proxy_pass 127.0.0.1:%SINK%; }
    }";

/// That configuration; datagrams end in `sink`.
fn silent_text(sink: &UdpSocket) -> String {
    let port = sink.local_addr().unwrap().port();
    SILENT
        .replace("%ECHO%", &echo().to_string())
        .replace("%SINK%", &port.to_string())
}

fn assert_http_answers(server: &Server) {
    for _ in 0..3 {
        let mut client = connect(server, "HTTP");
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\nok"), "{text}");
    }
}

#[test]
fn silent_sessions_of_every_kind_leave_places_to_http() {
    const KINDS: [&str; 4] = ["RELAY", "/relay", "HELLO", "HEAD"];
    const FLOWS: usize = 2;
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = server(&silent_text(&sink));
    let flows: Vec<UdpSocket> = (0..FLOWS)
        .map(|_| datagram_client(&server, "FLOW"))
        .collect();
    for flow in &flows {
        assert_eq!(flow.send(b"in").unwrap(), 2);
    }
    let kinds = KINDS.iter().cycle().take(SESSIONS - FLOWS);
    let silent: Vec<_> = kinds.map(|to| connect(&server, to)).collect();
    let all_are_in = || {
        let came = count(&server, "client 127.0.0.1:") + count(&server, "client unix:");
        (came >= SESSIONS).then_some(())
    };
    wait_for(all_are_in).expect("all sessions begin");
    for (number, to) in KINDS.iter().enumerate() {
        assert!(is_closed(&mut *connect(&server, to)), "one too many: {to}");
        let line = format!("{CONNECTIONS} worker_connections are not enough");
        wait_for_count(&server, &line, number + 1);
    }
    datagram_client(&server, "FLOW").send(b"late").unwrap();
    wait_for_count(&server, FULL, KINDS.len() + 1);
    assert_http_answers(&server);
    drop(silent);
    let served = wait_for(|| {
        let mut client = connect(&server, "RELAY");
        client.write_all(b"now").ok()?;
        client.read_exact(&mut [0; 3]).ok()
    });
    assert!(served.is_some(), "places are free again");
}

#[test]
fn idle_connections_of_http_make_room_for_sessions() {
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = server(&silent_text(&sink));
    let idle: Vec<_> = (0..SESSIONS + 1)
        .map(|_| {
            let mut client = connect(&server, "HTTP");
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            assert!(client.read(&mut [0; 1024]).unwrap() > 0);
            client
        })
        .collect();
    let mut session = connect(&server, "RELAY");
    session.write_all(b"in").unwrap();
    session.read_exact(&mut [0; 2]).unwrap();
    drop(idle);
    assert_eq!(count(&server, FULL), 0);
}

#[test]
fn sessions_leave_descriptors_to_http() {
    const FILES_MAX: usize = 128;
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let text = silent_text(&sink)
        .replace("worker_connections 32", "worker_connections 1024")
        .replace(
            "worker_processes 1;",
            "worker_processes 1; worker_rlimit_nofile 128;",
        );
    let server = server(&text);
    let line = format!("{FILES_MAX} open files are not enough for another session");
    for to in ["RELAY", "HELLO", "/relay"] {
        // More than there are descriptors for: a relay has two.
        let silent: Vec<_> = (0..FILES_MAX).map(|_| connect(&server, to)).collect();
        let refused = wait_for(|| (count(&server, &line) > 0).then_some(()));
        assert!(refused.is_some(), "{to}: {}", server.log("error.log"));
        assert_http_answers(&server);
        drop(silent);
        server.write("error.log", "");
    }
    let flows: Vec<_> = (0..FILES_MAX)
        .map(|_| {
            let flow = datagram_client(&server, "FLOW");
            flow.send(b"in").unwrap();
            flow
        })
        .collect();
    wait_for(|| (count(&server, &line) > 0).then_some(())).expect("flows are refused");
    assert_http_answers(&server);
    drop(flows);
}

#[test]
fn what_one_lane_could_only_refuse_another_one_takes() {
    const LANES: usize = 2;
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    for accept in ["", "accept_mutex on; accept_mutex_delay 10ms;"] {
        let text = silent_text(&sink)
            .replace("worker_processes 1", &format!("worker_processes {LANES}"))
            .replace("events {", &format!("events {{ {accept}"));
        let server = server(&text);
        let mut silent: Vec<_> = (0..SESSIONS * LANES)
            .map(|_| connect(&server, "RELAY"))
            .collect();
        for client in &mut silent {
            client.write_all(b"in").unwrap();
            client.read_exact(&mut [0; 2]).unwrap();
        }
        let log = server.log("error.log");
        assert_eq!(count(&server, FULL), 0, "{accept}: {log}");
        assert!(is_closed(&mut *connect(&server, "RELAY")));
        wait_for_count(&server, FULL, 1);
        assert_http_answers(&server);
    }
}

#[test]
fn http_says_when_new_connections_wait() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "worker_processes 1; error_log %FOLDER%/error.log;
             events { worker_connections 32; }
             http { server { listen 127.0.0.1:%PORT_HTTP%; root %FOLDER%/html; } }",
        )
        .file("html/large", vec![0; 16 << 20])
        .start();
    // Clients that take nothing of a large answer.
    let stalled: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = connect(&server, "HTTP");
            let request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
            client.write_all(request).unwrap();
            assert!(client.read(&mut [0; 16]).unwrap() > 0);
            client
        })
        .collect();
    let late = connect(&server, "HTTP");
    server.wait_for_log("error.log", "[alert] ");
    server.wait_for_log(
        "error.log",
        "32 worker_connections are not enough; new connections wait, since none can be closed",
    );
    drop((stalled, late));
}

/// A server of one lane whose session comes back to it: the name of the case, its `stream`, where
/// clients connect to, what they send, and how the loop is named.
type Loop = (
    &'static str,
    &'static str,
    &'static str,
    &'static [u8],
    &'static str,
);

const LOOPS: &[Loop] = &[
    (
        "a relay to itself",
        "server { listen 127.0.0.1:%PORT_A%; proxy_pass 127.0.0.1:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by 127.0.0.1:",
    ),
    (
        "an address for all, and the one that stands for this machine",
        "server { listen %PORT_A%; proxy_pass 0.0.0.0:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by 0.0.0.0:",
    ),
    (
        "by IPv6",
        "server { listen [::]:%PORT_A% ipv6only=off; proxy_pass 127.0.0.1:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by [::]:",
    ),
    (
        "by two addresses",
        "server { listen 127.0.0.1:%PORT_A%; proxy_pass 127.0.0.1:%PORT_B%; }
         server { listen 127.0.0.1:%PORT_B%; proxy_pass 127.0.0.1:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by 127.0.0.1:",
    ),
    (
        "over a unix socket",
        "server { listen unix:%FOLDER%/a; proxy_pass unix:%FOLDER%/a; }",
        "/a",
        b"x",
        "the session has come by unix:",
    ),
    (
        "over a unix socket and TCP",
        "server { listen 127.0.0.1:%PORT_A%; proxy_pass unix:%FOLDER%/a; }
         server { listen unix:%FOLDER%/a; proxy_pass 127.0.0.1:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by 127.0.0.1:",
    ),
    (
        "the name that a client asks for",
        "map $ssl_preread_server_name $to { own.test 127.0.0.1:%PORT_A%; }
         server { listen 127.0.0.1:%PORT_A%; ssl_preread on; proxy_pass $to; }",
        "A",
        b"(hello)",
        "the session has come by 127.0.0.1:",
    ),
    (
        "with a header for each",
        "server { listen 127.0.0.1:%PORT_A%; proxy_pass 127.0.0.1:%PORT_B%; proxy_protocol on; }
         server {
             listen 127.0.0.1:%PORT_B% proxy_protocol;
             proxy_pass 127.0.0.1:%PORT_B%;
             proxy_protocol on;
             set_real_ip_from 127.0.0.1;
         }",
        "A",
        b"x",
        "the session has come by 127.0.0.1:",
    ),
    (
        "a connection that is given to another server",
        "server { listen 127.0.0.1:%PORT_A%; pass 127.0.0.1:%PORT_B%; }
         server { listen 127.0.0.1:%PORT_B%; proxy_pass 127.0.0.1:%PORT_A%; }",
        "A",
        b"x",
        "the session has come by 127.0.0.1:",
    ),
];

#[test]
fn a_session_that_comes_back_is_refused() {
    for (name, stream, to, sends, expected) in LOOPS {
        let server = server(&format!(
            "worker_processes 1; error_log %FOLDER%/error.log info; events {{ }}
             http {{ server {{ listen 127.0.0.1:%PORT_HTTP%; return 200 ok; }} }}
             stream {{ {stream} }}"
        ));
        let mut client = connect(&server, to);
        let hello = hello();
        let bytes = if *sends == b"(hello)" { &hello } else { *sends };
        // It may be closed already.
        let _ = client.write_all(bytes);
        assert!(is_closed(&mut *client), "{name}");
        wait_for_count(&server, LOOP, 1);
        server.wait_for_log("error.log", &format!("{LOOP}{expected}"));
        assert_http_answers(&server);
    }
}

#[test]
fn lanes_see_each_others_loops() {
    let server = server(
        "worker_processes 4; error_log %FOLDER%/error.log info; events { }
         stream {
             server { listen 127.0.0.1:%PORT_A% reuseport; proxy_pass 127.0.0.1:%PORT_A%; }
         }",
    );
    for _ in 0..50 {
        let mut client = connect(&server, "A");
        let _ = client.write_all(b"x");
        assert!(is_closed(&mut *client));
    }
    assert!(count(&server, LOOP) >= 50);
}

#[test]
fn flows_that_come_back_are_refused() {
    let server = server(
        "worker_processes 1; error_log %FOLDER%/error.log; events { worker_connections 32; }
         http { server { listen 127.0.0.1:%PORT_HTTP%; return 200 ok; } }
         stream {
             server { listen 127.0.0.1:%PORT_A% udp; proxy_pass 127.0.0.1:%PORT_A%; }
             server { listen 127.0.0.1:%PORT_B% udp; proxy_pass 127.0.0.1:%PORT_C%; }
             server {
                 listen 127.0.0.1:%PORT_C% udp;
                 proxy_upload_rate 1m;
                 proxy_pass 127.0.0.1:%PORT_B%;
             }
         }",
    );
    for (number, to) in ["A", "B"].iter().enumerate() {
        datagram_client(&server, to).send(b"x").unwrap();
        wait_for_count(&server, LOOP, number + 1);
    }
    assert_http_answers(&server);
    assert_eq!(count(&server, FULL), 0);
}

/// A chain of addresses, of which each passes on to the next and the last one answers.
fn chain(length: usize) -> String {
    let links: String = (1..length)
        .map(|link| {
            let next = link + 1;
            format!(
                "server {{ listen 127.0.0.1:%PORT_{link}%; proxy_pass 127.0.0.1:%PORT_{next}%; }}\n"
            )
        })
        .collect();
    format!(
        "worker_processes 1; error_log %FOLDER%/error.log; events {{ }}
         stream {{ {links} server {{ listen 127.0.0.1:%PORT_{length}%; return ok; }} }}"
    )
}

#[test]
fn sessions_pass_through_ten_other_addresses() {
    for (length, expected) in [(11, "ok"), (12, "")] {
        let server = server(&chain(length));
        let mut client = connect(&server, "1");
        let mut text = String::new();
        let _ = client.read_to_string(&mut text);
        assert_eq!(text, expected, "{length}");
        if expected.is_empty() {
            let line = "the session has come through more than 10 addresses of this server";
            server.wait_for_log("error.log", line);
        }
    }
}

#[test]
fn http_of_the_same_server_is_passed_to_by_name_and_again() {
    let server = server(
        "worker_processes 1; error_log %FOLDER%/error.log info; events { }
         http {
             server {
                 listen 127.0.0.1:%PORT_HTTP%;
                 location / { proxy_pass http://127.0.0.1:%PORT_HTTP%/in; }
                 location /in { proxy_pass http://127.0.0.1:%PORT_NAMES%/last; }
                 location /last { return 200 ok; }
             }
         }
         stream {
             map $ssl_preread_server_name $to { default 127.0.0.1:%PORT_HTTP%; }
             server { listen 127.0.0.1:%PORT_NAMES%; ssl_preread on; proxy_pass $to; }
         }",
    );
    let mut client = connect(&server, "NAMES");
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("\r\n\r\nok"), "{text}");
    assert_eq!(count(&server, LOOP), 0);
}

/// Stops the serving processes while `does` is done, so that they see all of it at once.
fn unseen(server: &Server, does: impl FnOnce()) {
    let signal = |signal: Signal| {
        for pid in server.serving_pids() {
            process::signal(pid, signal);
        }
    };
    signal(Signal::SIGSTOP);
    // A thread that runs on another processor stops a little later.
    let have_stopped = || {
        let threads = server.serving_pids().into_iter().flat_map(process::threads);
        let mut threads = threads.map(|(thread, _)| thread);
        threads.all(process::is_stopped).then_some(())
    };
    assert!(wait_for(have_stopped).is_some());
    does();
    signal(Signal::SIGCONT);
}

#[test]
fn a_client_that_is_gone_is_seen_before_a_server_is_asked() {
    let origin = Origin::start(vec![vec![Step::ReadToEnd]]);
    let server = server(&format!(
        "worker_processes 1; error_log %FOLDER%/error.log info; events {{ }}
         stream {{
             access_log off;
             server {{ listen 127.0.0.1:%PORT_RELAY%; proxy_pass 127.0.0.1:{0}; }}
             server {{ listen 127.0.0.1:%PORT_HELLO%; ssl_preread on; proxy_pass 127.0.0.1:{0}; }}
         }}",
        origin.port()
    ));
    let hello = hello();
    let cases: [(&str, &[u8]); 2] = [("RELAY", b""), ("HELLO", &hello)];
    for (number, (to, bytes)) in cases.into_iter().enumerate() {
        unseen(&server, || {
            let mut client = TcpStream::connect(("127.0.0.1", server.port_named(to))).unwrap();
            client.write_all(bytes).unwrap();
        });
        wait_for_count(&server, "client disconnected", number + 1);
    }
    // Bytes of a client that has only these to send are passed on.
    for to in ["RELAY", "HELLO"] {
        unseen(&server, || {
            let mut client = TcpStream::connect(("127.0.0.1", server.port_named(to))).unwrap();
            client.write_all(b"a line\n").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
    }
    origin.wait_for_ended(2);
    assert_eq!(origin.received(), [b"a line\n", b"a line\n"]);
}

/// Clients that connect to a session and say nothing, in the long run.
const SILENT_CLIENTS: usize = 600;

/// The most that a server's memory may grow by through sessions that have all ended.
const GROWTH_KB_MAX: u64 = 10 * 1024;

/// The default settings, for Turnpike and for nginx.
const DEFAULTS: &str = "worker_processes 1; error_log %FOLDER%/error.log;
    events { }
    http { access_log off; server { listen 127.0.0.1:%PORT_HTTP%; return 200 ok; } }
    stream { server { listen 127.0.0.1:%PORT_RELAY%; proxy_pass 127.0.0.1:%ECHO%; } }";

/// What became of innocent requests beside silent clients, and of the server.
#[derive(Debug)]
struct Siege {
    answered: usize,
    failed: usize,
    alerts: usize,
    grown_kb: u64,
}

/// The resident memory of a server's worker, in KB.
fn resident_kb(server: &Server) -> u64 {
    let worker = server.serving_pids()[0];
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.parse().unwrap()
}

/// One request on a connection of its own.
fn is_answered(port: u16) -> bool {
    let Ok(mut client) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut text = String::new();
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").is_ok()
        && client.read_to_string(&mut text).is_ok()
        && text.ends_with("\r\n\r\nok")
}

/// Lays siege to a server: silent clients come and stay, those that are refused come again every
/// second, and somebody else asks ten times a second.
fn besiege(server: &Server, time: Duration) -> Siege {
    let [relay, http] = ["RELAY", "HTTP"].map(|name| server.port_named(name));
    (0..10).for_each(|_| assert!(is_answered(http)));
    let before_kb = resident_kb(server);
    let mut silent: Vec<TcpStream> = Vec::new();
    let (mut answered, mut failed) = (0, 0);
    let end = Instant::now() + time;
    while Instant::now() < end {
        silent.retain(|client| !matches!(client.peek(&mut [0]), Ok(0)));
        silent.extend((silent.len()..SILENT_CLIENTS).filter_map(|_| {
            let client = TcpStream::connect(("127.0.0.1", relay)).ok()?;
            client.set_nonblocking(true).ok()?;
            Some(client)
        }));
        for _ in 0..10 {
            if is_answered(http) {
                answered += 1;
            } else {
                failed += 1;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
    let alerts = count(server, "worker_connections are not enough");
    drop(silent);
    let at_rest = wait_for(|| (resident_kb(server) < before_kb + GROWTH_KB_MAX).then_some(()));
    assert!(
        at_rest.is_some(),
        "{} KB stay",
        resident_kb(server) - before_kb
    );
    Siege {
        answered,
        failed,
        alerts,
        grown_kb: resident_kb(server).saturating_sub(before_kb),
    }
}

#[test]
#[ignore = "three minutes, of which nginx has one: make stream-long"]
fn six_hundred_silent_clients_leave_http_alone() {
    let minutes = std::env::var("TURNPIKE_TEST_MINUTES").map_or(2, |text| text.parse().unwrap());
    let text = DEFAULTS.replace("%ECHO%", &echo().to_string());
    let ours = besiege(&server(&text), Duration::from_secs(60 * minutes));
    println!("Turnpike: {ours:?}");
    let module = "/usr/lib/nginx/modules/ngx_stream_module.so";
    if Path::new(module).exists() {
        let nginx = Server::builder("/usr/sbin/nginx")
            .configuration(&format!("load_module {module}; {text}"))
            .start();
        let its = besiege(&nginx, Duration::from_secs(60 * minutes.div_ceil(2)));
        println!("nginx: {its:?}");
    }
    assert!(ours.answered > 0 && ours.failed == 0, "{ours:?}");
    assert!(ours.grown_kb < GROWTH_KB_MAX, "{ours:?}");
    assert!(ours.alerts > 0, "the log names the cause");
}

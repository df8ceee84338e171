//! Clients of HTTP/2 that cost more than they say: each is told why its connection ends, within a
//! counted number of frames and a bound on the server's processor time, and another client that
//! keeps asking has all of its requests answered meanwhile.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use turnpike_testkit::Server;

use crate::support::frames::{
    ACK, CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING,
    PRIORITY, PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get, opening,
};

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    worker_processes 1;
    events { }
    http {
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            http2_max_concurrent_streams 100000;
            keepalive_requests 1000000;
            root %FOLDER%/html;
            location = / { return 200 here; }
        }
    }";

const ENHANCE_YOUR_CALM: u8 = 11;

/// A request for `/`, all of its fields in the static table but for the host.
const REQUEST: &[u8] = b"\x82\x86\x84\x01\x01a";

/// What a client does again and again.
struct Flood {
    name: &'static str,
    /// What it sends before.
    before: fn() -> Vec<u8>,
    /// What it sends the n-th time.
    one: fn(u32) -> Vec<u8>,
    /// How often that is taken: an honest client never does it so often at once.
    accepted: u32,
    /// How often it is done at most before the connection ends.
    refused: u32,
    reason: &'static str,
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

/// The head of a request with a body to come.
fn open_stream() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, REQUEST)
}

fn request(number: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, REQUEST)
}

const RESETS: &str = "http2 flood detected: too many streams were reset";
const EMPTY: &str = "http2 flood detected: too many empty frames";
const TINY: &str = "http2 flood detected: too many tiny DATA frames";

const FLOODS: &[Flood] = &[
    Flood {
        name: "rapid reset (CVE-2023-44487)",
        before: nothing,
        one: |number| {
            let reset = frame(RST_STREAM, 0, 2 * number + 1, &[0, 0, 0, 8]);
            [request(number), reset].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "resets that we are made to send (CVE-2025-8671)",
        before: nothing,
        one: |number| {
            let window = frame(WINDOW_UPDATE, 0, 2 * number + 1, &[0; 4]);
            [request(number), window].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "resets by windows that are too large",
        before: nothing,
        one: |number| {
            let wide = [0x7f, 0xff, 0xff, 0xff];
            let window = frame(WINDOW_UPDATE, 0, 2 * number + 1, &wide);
            [request(number), window.clone(), window].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "CONTINUATION (CVE-2024-24549 and its like)",
        before: || frame(HEADERS, END_STREAM, 1, REQUEST),
        one: |_| frame(CONTINUATION, 0, 1, b"\x40\x01a\x01b"),
        accepted: 0,
        refused: 640,
        reason: "http2 flood detected: too many CONTINUATION frames",
    },
    Flood {
        name: "empty CONTINUATION",
        before: || frame(HEADERS, END_STREAM, 1, REQUEST),
        one: |_| frame(CONTINUATION, 0, 1, b""),
        accepted: 0,
        refused: 640,
        reason: "http2 flood detected: too many CONTINUATION frames",
    },
    Flood {
        name: "SETTINGS",
        before: nothing,
        one: |number| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, number as u8]),
        accepted: 60,
        refused: 640,
        reason: "http2 flood detected: too many SETTINGS frames",
    },
    Flood {
        name: "acknowledgements of SETTINGS",
        before: nothing,
        one: |_| frame(SETTINGS, ACK, 0, b""),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "PING",
        before: nothing,
        one: |_| frame(PING, 0, 0, b"12345678"),
        accepted: 1_000,
        refused: 40_960,
        reason: "http2 flood detected: too many PING frames",
    },
    Flood {
        name: "PING beside an answer, which earns a few",
        before: || {
            let window = frame(WINDOW_UPDATE, 0, 1, &30_000_u32.to_be_bytes());
            [get(1, "/file", &[]), window].concat()
        },
        one: |_| frame(PING, 0, 0, b"12345678"),
        accepted: 1_000,
        refused: 40_960,
        reason: "http2 flood detected: too many PING frames",
    },
    Flood {
        name: "PING beside bytes that are let go of one at a time",
        before: || get(1, "/file", &[]),
        one: |_| {
            let window = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
            let ping = frame(PING, 0, 0, b"12345678");
            [ping.clone(), window, ping].concat()
        },
        accepted: 500,
        refused: 20_480,
        reason: "http2 flood detected: too many PING frames",
    },
    Flood {
        name: "empty DATA",
        before: open_stream,
        one: |_| frame(DATA, 0, 1, b""),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "tiny DATA with padding",
        before: open_stream,
        one: |_| frame(DATA, PADDED, 1, &[&[255, b'x'][..], &[0; 255]].concat()),
        accepted: 1_000,
        refused: 40_000,
        reason: "http2 flood detected",
    },
    Flood {
        name: "DATA of one byte",
        before: open_stream,
        one: |_| frame(DATA, 0, 1, b"x"),
        accepted: 16_000,
        refused: 163_840,
        reason: TINY,
    },
    Flood {
        name: "DATA of two bytes",
        before: open_stream,
        one: |_| frame(DATA, 0, 1, b"xx"),
        accepted: 16_000,
        refused: 163_840,
        reason: TINY,
    },
    Flood {
        name: "unknown frames",
        before: nothing,
        one: |_| frame(0x42, 0, 0, b"x"),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "PRIORITY",
        before: nothing,
        one: |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 1]),
        accepted: 1_000,
        refused: 10_240,
        reason: "client sent too many PRIORITY frames",
    },
    Flood {
        name: "PRIORITY_UPDATE",
        before: nothing,
        one: |_| frame(PRIORITY_UPDATE, 0, 0, b"\x00\x00\x00\x01u=1"),
        accepted: 1_000,
        refused: 10_240,
        reason: "client sent too many PRIORITY frames",
    },
    Flood {
        name: "windows that are widened by a byte",
        before: || request(0),
        one: |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        accepted: 2_000,
        refused: 20_480,
        reason: "http2 flood detected: too many WINDOW_UPDATE frames",
    },
    Flood {
        name: "windows that let go of a byte at a time (CVE-2019-9511)",
        before: || get(1, "/file", &[]),
        one: |_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        accepted: 2_000,
        refused: 20_480,
        reason: "http2 flood detected: too many WINDOW_UPDATE frames",
    },
    Flood {
        name: "a list of fields that a table makes large",
        before: nothing,
        one: |_| {
            let field = [&b"\x40\x01a\x7f\xb9\x16"[..], &[b'x'; 3000]].concat();
            let block = [REQUEST, &field, &[0xbe; 4000]].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)
        },
        accepted: 0,
        refused: 1,
        reason: "client sent too large header list",
    },
];

/// The code of the GOAWAY that ends a connection.
fn ended_by(client: &mut Client) -> Option<u8> {
    while let Some(frame) = client.frame() {
        if frame.kind == GOAWAY {
            return frame.payload.get(7).copied();
        }
    }
    None
}

/// The most processor time that a flood may cost the server, in milliseconds: many times what the
/// costliest needs without optimisation, and far less than serving the whole of a flood would take.
const CPU_MS_MAX: u64 = 1_000;

/// The unit of a process's times in `/proc`: Linux counts them in hundredths of a second.
const TICK_MS: u64 = 10;

/// Requests that measure what the innocent client costs by itself.
const REQUESTS_ALONE: u32 = 200;

/// The pause between two requests of the innocent client, in milliseconds: its own cost stays small
/// beside that of a flood.
const PAUSE_MS: u64 = 2;

/// A client that asks, waits for the whole answer, and asks again.
struct Innocent {
    client: Client,
    asked: u32,
    took: Vec<Duration>,
}

impl Innocent {
    fn connect(server: &Server) -> Innocent {
        let mut client = Client::connect(server, &opening(1 << 20));
        client.widen(0, 1 << 30);
        Innocent {
            client,
            asked: 0,
            took: Vec::new(),
        }
    }

    /// Sends a request; panics if its answer does not come.
    fn ask(&mut self) {
        let begun = Instant::now();
        self.client.send(&request(self.asked));
        self.asked += 1;
        loop {
            let frame = self.client.frame();
            let frame = frame.expect("the connection of the innocent client has ended");
            assert!(![GOAWAY, RST_STREAM].contains(&frame.kind), "{frame:?}");
            if frame.kind == DATA && frame.flags & END_STREAM != 0 {
                assert_eq!(frame.payload, b"here");
                break;
            }
        }
        self.took.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }

    /// The time that 99 of 100 answers did not exceed, in microseconds.
    fn p99_us(&mut self) -> u128 {
        self.took.sort_unstable();
        let at = self.took.len() * 99 / 100;
        self.took.get(at).map_or(0, Duration::as_micros)
    }
}

/// The processor time that the serving process has used, in milliseconds.
fn cpu_ms(server: &Server) -> u64 {
    let ticks = |process: u32| {
        let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields = line.rsplit_once(')').unwrap().1.split_ascii_whitespace();
        // The fields 14 and 15 of the line, of which two were cut off.
        let used = fields.skip(11).take(2).map(|text| text.parse::<u64>());
        used.map(Result::unwrap).sum::<u64>()
    };
    server.serving_pids().into_iter().map(ticks).sum::<u64>() * TICK_MS
}

/// A client to which no response body may be sent, so that streams stay open.
fn connect(server: &Server) -> Client {
    Client::connect(server, &opening(0))
}

/// Floods the server until it ends the connection.
fn attack(server: &Server, flood: &Flood) {
    let name = flood.name;
    let before = server.log("error.log").matches(flood.reason).count();
    let mut client = connect(server);
    client.send(&(flood.before)());
    let part = |numbers: std::ops::Range<u32>| numbers.flat_map(flood.one).collect::<Vec<u8>>();
    client.send(&part(0..flood.accepted));
    assert!(
        flood.accepted == 0 || client.is_served(),
        "{name}: {} are taken",
        flood.accepted
    );
    // GOAWAY is read while the flood goes on: a reset may follow it.
    let rest = part(flood.accepted..flood.refused);
    let mut sender = client.peer.stream().try_clone().unwrap();
    let code = std::thread::scope(|scope| {
        scope.spawn(|| sender.write_all(&rest));
        ended_by(&mut client)
    });
    assert_eq!(code, Some(ENHANCE_YOUR_CALM), "{name}");
    turnpike_testkit::wait_for(|| {
        let found = server.log("error.log").matches(flood.reason).count();
        (found > before).then_some(())
    })
    .unwrap_or_else(|| panic!("{name}: the log does not say \"{}\"", flood.reason));
}

/// Runs every flood beside a client that keeps asking, whose own cost for a request is given in
/// microseconds. Prints what each flood cost.
fn attack_beside(server: &Server, asked: &AtomicU32, own_us: u64) {
    for flood in FLOODS {
        let (before_ms, asked_before) = (cpu_ms(server), asked.load(Ordering::Relaxed));
        attack(server, flood);
        let answered = asked.load(Ordering::Relaxed) - asked_before;
        let own_ms = u64::from(answered) * own_us / 1000;
        let used_ms = (cpu_ms(server) - before_ms).saturating_sub(own_ms);
        let (name, frames) = (flood.name, flood.refused);
        println!("{name}: at most {frames} taken, {used_ms} ms of processor time");
        assert!(used_ms <= CPU_MS_MAX, "{name}: {used_ms} ms");
    }
}

#[test]
fn floods_end_their_own_connection_and_no_other() {
    let server = Server::builder(TURNPIKE)
        .configuration(CONFIGURATION)
        .file("html/file", vec![b'x'; 30_000])
        .start();
    let mut innocent = Innocent::connect(&server);
    let before_ms = cpu_ms(&server);
    (0..REQUESTS_ALONE).for_each(|_| innocent.ask());
    let own_us = (cpu_ms(&server) - before_ms) * 1000 / u64::from(REQUESTS_ALONE);
    let alone_us = innocent.p99_us();
    innocent.took.clear();
    let (is_over, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                innocent.ask();
                asked.store(innocent.asked, Ordering::Relaxed);
            }
        });
        let attacking = scope.spawn(|| attack_beside(&server, &asked, own_us));
        let attacked = attacking.join();
        is_over.store(true, Ordering::Relaxed);
        assert!(asking.join().is_ok(), "the innocent client was not served");
        if let Err(panic) = attacked {
            std::panic::resume_unwind(panic);
        }
    });
    let (count, p99_us) = (innocent.took.len(), innocent.p99_us());
    println!("{count} innocent requests answered: p99 {p99_us} us, {alone_us} us alone");
    drop(innocent);
    assert!(server.quit().success());
}

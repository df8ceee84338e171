//! The scenario of a seed: a configuration, the clients with their scripts, and the weather.

use std::collections::BTreeMap;

use crate::answer::{Answer, Disorder, Ending, Failing};
use crate::client::{Cut, CutAt, How, Piece, Script};
use crate::handshake;
use crate::origin::{AUTH, MIRROR, Origins};
use crate::protocol::{OTHERS, Protocol};
use crate::request::{Request, Target, Upload};
use crate::world::Weather;
use turnpike_testkit::random::Random;

/// The lengths of the texts that `/text/N` answers with.
pub(crate) const TEXT_BYTES: &[usize] = &[0, 16, 700, 3_900];

/// Lengths of the files.
pub(crate) const FILE_BYTES: &[usize] = &[0, 16, 4_000, 17_000, 70_000, 300_000];

/// The number of files that are sent slowly: their sizes limit the time of the send.
const SLOW_FILES: usize = 4;

/// The number of a text's content; files count from there.
pub(crate) const FILE_NUMBER: u64 = 100;

/// The settings of a run's configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) keepalive_requests: usize,
    pub(crate) keepalive_timeout_ms: u64,
    pub(crate) header_timeout_ms: u64,
    pub(crate) body_timeout_ms: u64,
    pub(crate) send_timeout_ms: u64,
    pub(crate) lingering_close: &'static str,
    pub(crate) lingering_timeout_ms: u64,
    pub(crate) lingering_time_ms: u64,
    pub(crate) sendfile: bool,
    pub(crate) multi_accept: bool,
    pub(crate) resets_timed_out: bool,
    pub(crate) header_buffer_bytes: usize,
    pub(crate) rate_bytes: usize,
    /// Whether the gate is for TLS: then no client gets beyond the handshake.
    pub(crate) is_tls: bool,
    /// Whether HTTP/2 is spoken too.
    pub(crate) has_http2: bool,
    /// Whether copies of requests have their bodies.
    pub(crate) mirrors_bodies: bool,
    pub(crate) proxy: ProxySettings,
}

/// The settings of proxied requests.
#[derive(Debug)]
pub(crate) struct ProxySettings {
    /// The protocol beside HTTP/1.
    pub(crate) other: Protocol,
    /// The protocol of the origins whose answers are stored.
    pub(crate) cached_by: Protocol,
    /// Whether answers are stored in files.
    pub(crate) caches_on_disk: bool,
    pub(crate) buffering: bool,
    pub(crate) request_buffering: bool,
    /// Directives of buffers without their prefix.
    pub(crate) buffers: &'static [(&'static str, &'static str)],
    pub(crate) keepalive: usize,
    pub(crate) version: &'static str,
    pub(crate) next_upstream: &'static str,
    pub(crate) read_timeout_ms: u64,
    pub(crate) ignores_client_abort: bool,
    /// Whether the group has a server that refuses connections.
    pub(crate) has_dead_server: bool,
    pub(crate) uses_stale: bool,
    pub(crate) updates_behind: bool,
    pub(crate) locks: bool,
}

/// A run, before it begins.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) settings: Settings,
    pub(crate) scripts: Vec<Script>,
    pub(crate) origins: Origins,
    pub(crate) weather: Weather,
    /// The times of the reloads, in order.
    pub(crate) reloads_ms: Vec<u64>,
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Scenario {
        let mut random = stream(seed, 1);
        let mut settings = settings(&mut random);
        let mut numbers = 1..;
        let clients = 1 + random.index(4);
        let mut scripts: Vec<Script> = (0..clients)
            .map(|_| script(&mut random, &settings, &mut numbers))
            .collect();
        let mut tls = stream(seed, 4);
        settings.is_tls = tls.percent(TLS_PERCENT);
        if settings.is_tls {
            scripts = (0..clients).map(|_| failing_handshake(&mut tls)).collect();
        }
        let (mut http2, mut windows) = (stream(seed, 6), stream(seed, 7));
        for script in scripts.iter_mut().filter(|_| !settings.is_tls) {
            if http2.percent(HTTP2_PERCENT) {
                speak_http2(&mut http2, script);
                script.window_bytes = windows.pick(WINDOWS_BYTES);
                settings.has_http2 = true;
            }
        }
        let mut origins = origins(&mut random, &settings, &scripts);
        if !settings.is_tls && settings.proxy.version == "1.1" {
            let mut tunnels = stream(seed, 5);
            for script in &mut scripts {
                if !script.is_http2 && tunnels.percent(TUNNEL_PERCENT) {
                    let number = numbers.next().unwrap_or_default();
                    add_tunnel(&mut tunnels, number, script, &settings, &mut origins);
                }
            }
        }
        let weather = Weather {
            short_sends: random.pick(&[0, 0, 10, 50]),
            spurious: random.pick(&[0, 0, 5, 20]),
            idling: random.pick(&[0, 0, 30]),
        };
        Scenario {
            settings,
            scripts,
            origins,
            weather,
            reloads_ms: reloads_ms(&mut stream(seed, 3)),
        }
    }
}

/// The part of the clients that speak HTTP/2, in percent.
const HTTP2_PERCENT: u64 = 15;

/// The windows of clients that speak HTTP/2; `None`: the widest.
const WINDOWS_BYTES: &[Option<u32>] = &[None, Some(1_000), Some(20_000), Some(65_535)];

/// Has a client send its requests by HTTP/2, one after another or at once.
fn speak_http2(random: &mut Random, script: &mut Script) {
    script.is_http2 = true;
    script.bytes = Vec::new();
    script.pieces.clear();
    let is_sequential = random.percent(40);
    for (index, request) in script.requests.iter_mut().enumerate() {
        request.is_version_10 = false;
        request.says_close = false;
        if request.target == Target::Malformed {
            request.target = Target::Missing;
        }
        if let Some(upload) = &mut request.upload {
            upload.expects_continue = false;
        }
        script.pieces.push(Piece {
            bytes: 0..0,
            pause_ms: random.pick(&[0, 0, 0, 1, 20, 400]),
            answers: if is_sequential { index } else { 0 },
            in_tunnel: false,
        });
    }
    script.cut = random.percent(25).then(|| cut(random, 600));
}

/// The times of the reloads: most runs have none.
fn reloads_ms(random: &mut Random) -> Vec<u64> {
    let count = random.pick(&[0, 0, 0, 1, 2]);
    let mut at_ms = 0;
    let next = |_| {
        at_ms += random.pick(&[0, 1, 5, 60, 400, 1_500, 3_000]);
        at_ms
    };
    (0..count).map(next).collect()
}

/// The part of the clients whose last request asks for a tunnel, in percent.
const TUNNEL_PERCENT: u64 = 12;

/// Has a client's last request ask for a tunnel, through which both sides send bytes.
fn add_tunnel(
    random: &mut Random,
    number: u64,
    script: &mut Script,
    settings: &Settings,
    origins: &mut Origins,
) {
    if script.requests.last().is_some_and(|last| last.says_close) {
        return;
    }
    let upload_bytes = random.pick(&[0, 1, 300, 5_000, 40_000]);
    let mut request = Request {
        number,
        method: "GET",
        target: Target::Tunnel(upload_bytes),
        is_version_10: false,
        says_close: false,
        upload: None,
        end: 0,
        length: 0,
    };
    let answers = script.requests.len();
    let start = script.bytes.len();
    let text = request.bytes();
    script.bytes.extend_from_slice(&text);
    request.length = text.len();
    request.end = script.bytes.len();
    script.requests.push(request);
    script.pieces.push(Piece {
        bytes: start..script.bytes.len(),
        pause_ms: random.pick(&[0, 10, 400]),
        answers,
        in_tunnel: false,
    });
    let mut at = script.bytes.len();
    let sent = crate::content::body(number, upload_bytes);
    script.bytes.extend_from_slice(&sent);
    let most = random.pick(&[40, 3_000, 100_000]).max(upload_bytes / 20);
    while at < script.bytes.len() {
        let length = 1 + random.index((script.bytes.len() - at).min(most));
        script.pieces.push(Piece {
            bytes: at..at + length,
            pause_ms: random.pick(&[0, 0, 1, 20]),
            answers: answers + 1,
            in_tunnel: true,
        });
        at += length;
    }
    origins.tunnelled.insert(number, upload_bytes);
    let tries = (0..3).map(|_| tunnel_answer(random, settings)).collect();
    origins.scripts.insert(number, tries);
}

/// An answer that switches protocols, or one that refuses to.
fn tunnel_answer(random: &mut Random, settings: &Settings) -> Answer {
    let answer = answer(random, settings, None);
    match answer.status {
        200 => Answer {
            status: 101,
            ending: Ending::Tunnel,
            says_close: false,
            has_interim: false,
            disorder: None,
            ..answer
        },
        _ => answer,
    }
}

/// The part of the runs whose clients do not get beyond a TLS handshake, in percent.
const TLS_PERCENT: u64 = 10;

fn failing_handshake(random: &mut Random) -> Script {
    let mut script = handshake::script(random);
    let bytes = script.bytes.len();
    script.cut = random.percent(75).then(|| cut(random, bytes));
    script
}

/// The random numbers of a seed for one use, independent of those for another.
pub(crate) fn stream(seed: u64, number: u64) -> Random {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 56));
    random.number();
    random
}

fn settings(random: &mut Random) -> Settings {
    Settings {
        keepalive_requests: random.pick(&[1, 2, 3, 1000, 1000]),
        keepalive_timeout_ms: random.pick(&[1_000, 2_000, 3_000]),
        header_timeout_ms: random.pick(&[1_000, 2_000]),
        body_timeout_ms: random.pick(&[1_000, 2_000]),
        send_timeout_ms: random.pick(&[2_000, 3_000]),
        lingering_close: random.pick(&["on", "on", "always", "off"]),
        lingering_timeout_ms: random.pick(&[500, 1_000]),
        lingering_time_ms: random.pick(&[1_000, 3_000]),
        sendfile: random.percent(50),
        multi_accept: random.percent(50),
        resets_timed_out: random.percent(30),
        header_buffer_bytes: random.pick(&[64, 1024]),
        rate_bytes: random.pick(&[5_000, 20_000]),
        is_tls: false,
        has_http2: false,
        mirrors_bodies: random.percent(50),
        proxy: proxy_settings(random),
    }
}

fn proxy_settings(random: &mut Random) -> ProxySettings {
    let other = random.pick(OTHERS);
    ProxySettings {
        other,
        // A value says nothing about how long it may be stored.
        cached_by: match random.pick(&[Protocol::Http1, Protocol::Http1, other]) {
            Protocol::Memcached => Protocol::Http1,
            protocol => protocol,
        },
        caches_on_disk: random.percent(30),
        buffering: random.percent(60),
        request_buffering: random.percent(60),
        buffers: random.pick(BUFFERS),
        keepalive: random.pick(&[0, 1, 4]),
        version: random.pick(&["1.1", "1.1", "1.1", "1.0"]),
        next_upstream: random.pick(&["error timeout", "error timeout http_500", "off"]),
        read_timeout_ms: random.pick(&[1_000, 2_000]),
        ignores_client_abort: random.percent(20),
        has_dead_server: random.percent(20),
        uses_stale: random.percent(50),
        updates_behind: random.percent(50),
        locks: random.percent(50),
    }
}

/// Buffers for answers: ample, scant, and scant without a file.
const BUFFERS: &[&[(&str, &str)]] = &[
    &[("buffer_size", "4k"), ("buffers", "8 4k")],
    &[("buffer_size", "512"), ("buffers", "4 512")],
    &[
        ("buffer_size", "1k"),
        ("buffers", "4 1k"),
        ("max_temp_file_size", "0"),
    ],
];

fn script(
    random: &mut Random,
    settings: &Settings,
    numbers: &mut impl Iterator<Item = u64>,
) -> Script {
    let count = 1 + random.index(6);
    let mut requests = Vec::new();
    let mut bytes = Vec::new();
    for index in 0..count {
        let mut request = request(random, settings, numbers.next().unwrap_or_default());
        request.says_close = index + 1 == count && random.percent(40);
        let text = request.bytes();
        bytes.extend_from_slice(&text);
        request.length = text.len();
        request.end = bytes.len();
        requests.push(request);
    }
    let pieces = pieces(random, &requests);
    let cut = random.percent(25).then(|| cut(random, bytes.len()));
    let is_slow = random.percent(15);
    Script {
        start_ms: random.pick(&[0, 0, 1, 50, 700, 3_000]),
        read_bytes: if is_slow {
            random.pick(&[2_000, 6_000])
        } else {
            random.pick(&[3_000, 20_000, 100_000])
        },
        read_pause_ms: if is_slow { random.pick(&[1, 5, 10]) } else { 0 },
        cut,
        close_after_ms: random.percent(60).then(|| random.pick(&[0, 0, 100, 1_500])),
        requests,
        bytes,
        pieces,
        is_handshake: false,
        is_http2: false,
        window_bytes: None,
    }
}

fn request(random: &mut Random, settings: &Settings, number: u64) -> Request {
    let target = match random.below(100) {
        0..13 => Target::Text(random.index(TEXT_BYTES.len())),
        13..26 => Target::File(random.index(FILE_BYTES.len())),
        26..29 => Target::Slow(random.index(SLOW_FILES)),
        29..32 => Target::Missing,
        32..34 => Target::Malformed,
        34..49 => Target::Passed(Protocol::Http1),
        49..65 => Target::Passed(settings.proxy.other),
        65..71 => Target::Guarded,
        71..77 => Target::Mirrored,
        77..82 => Target::Page,
        _ => Target::Cached(random.below(CACHED_PATHS)),
    };
    let may_have_body = match target {
        Target::Passed(protocol) => protocol != Protocol::Memcached,
        Target::Text(_) | Target::Guarded | Target::Mirrored => true,
        _ => false,
    };
    let has_body = may_have_body && random.percent(40);
    let method = match random.below(100) {
        _ if has_body => "POST",
        0..15 => "HEAD",
        _ => "GET",
    };
    Request {
        number,
        method,
        target,
        is_version_10: random.percent(5) && !has_body,
        says_close: false,
        upload: has_body.then(|| upload(random)),
        end: 0,
        length: 0,
    }
}

fn upload(random: &mut Random) -> Upload {
    Upload {
        length: random.pick(&[0, 1, 100, 3_000, 20_000]),
        is_chunked: random.percent(50),
        expects_continue: random.percent(15),
    }
}

/// Splits the requests into pieces that are sent at one time. Pipelined requests are sent before
/// the answers to earlier ones have come.
fn pieces(random: &mut Random, requests: &[Request]) -> Vec<Piece> {
    let is_pipelined = random.percent(40);
    let is_torn = random.percent(50);
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let answers = if is_pipelined { 0 } else { index };
        let mut at = request.end - request.length;
        let mut pause_ms = if is_pipelined {
            0
        } else {
            random.pick(&[0, 0, 0, 10, 400])
        };
        if is_pipelined
            && !is_torn
            && let Some(last) = pieces.last_mut()
        {
            last.bytes.end = request.end;
            continue;
        }
        while at < request.end {
            let rest = request.end - at;
            let most = random.pick(&[3, 40, 4_000]);
            let length = if is_torn {
                1 + random.index(rest.min(most))
            } else {
                rest
            };
            // Many small pieces would take the run's whole time.
            let length = if pieces.len() > PIECES_MAX {
                rest
            } else {
                length
            };
            pieces.push(Piece {
                bytes: at..at + length,
                pause_ms,
                answers,
                in_tunnel: false,
            });
            at += length;
            pause_ms = random.pick(&[0, 0, 0, 1, 20]);
        }
    }
    pieces
}

/// The most pieces of one client.
const PIECES_MAX: usize = 40;

fn cut(random: &mut Random, bytes: usize) -> Cut {
    let at = if random.percent(60) {
        CutAt::Sent(random.index(bytes + 1))
    } else {
        CutAt::Received(random.index(2_000))
    };
    let how = random.pick(&[
        How::Close,
        How::Close,
        How::Reset,
        How::Reset,
        How::HalfClose,
        How::Silent,
        How::Stall,
    ]);
    Cut { at, how }
}

fn origins(random: &mut Random, settings: &Settings, scripts: &[Script]) -> Origins {
    let requests = || scripts.iter().flat_map(|script| &script.requests);
    let mut scripts = BTreeMap::new();
    let mut uploads: BTreeMap<u64, usize> = BTreeMap::new();
    for request in requests() {
        let number = request.number;
        if let Some(upload) = request.upload {
            uploads.insert(number, upload.length);
            if settings.mirrors_bodies {
                uploads.insert(MIRROR + number, upload.length);
            }
        }
        if !request.waits_for_origins() || matches!(request.target, Target::Cached(_)) {
            continue;
        }
        let mut tries = |number| {
            let tries: Vec<Answer> = (0..3).map(|_| answer(random, settings, None)).collect();
            scripts.insert(number, tries);
        };
        tries(number);
        match request.target {
            Target::Mirrored => tries(MIRROR + number),
            Target::Guarded => {
                tries(AUTH + number);
                for answer in scripts.entry(AUTH + number).or_default() {
                    answer.status = random.pick(&[200, 200, 200, 200, 401, 403, answer.status]);
                }
            }
            _ => {}
        }
    }
    let fresh_s = random.pick(&[0, 1, 1, 5]);
    let cached = (0..8)
        .map(|_| answer(random, settings, Some(fresh_s)))
        .collect();
    Origins {
        scripts,
        cached,
        uploads,
        ..Origins::default()
    }
}

fn answer(random: &mut Random, settings: &Settings, fresh_s: Option<u64>) -> Answer {
    let length = random.pick(&[0, 1, 300, 300, 2_000, 9_000, 60_000]);
    let is_late = random.percent(4);
    let ending = random.pick(&[
        Ending::Length,
        Ending::Length,
        Ending::Chunked,
        Ending::Close,
    ]);
    // A request of HTTP/1.0 gets no chunks.
    let ending = match (ending, settings.proxy.version) {
        (Ending::Chunked, "1.0") => Ending::Length,
        (ending, _) => ending,
    };
    // A short answer may come byte by byte.
    let is_slow = length <= 300 && random.percent(6);
    Answer {
        status: if random.percent(6) { 500 } else { 200 },
        length,
        ending,
        delay_ms: if is_late {
            5_000
        } else {
            random.pick(&[0, 0, 0, 5, 90, 400])
        },
        has_interim: random.percent(5) && settings.proxy.version == "1.1",
        piece_bytes: if is_slow {
            1
        } else {
            random
                .pick(&[7, 100, 3_000, 100_000, 100_000])
                .max(length / 40)
        },
        piece_pause_ms: if is_slow {
            random.pick(&[0, 1, 10])
        } else {
            random.pick(&[0, 0, 1, 20])
        },
        fails: random.percent(15).then(|| failing(random, length)),
        says_close: random.percent(15) || settings.proxy.version == "1.0",
        idle_ms: random.pick(&[0, 5, 1_000, 60_000]),
        fresh_s,
        disorder: random.percent(6).then(|| disorder(random)),
        record_bytes: random.pick(&[1, 7, 300, 8_000, 65_535]).max(length / 100),
        has_messages: random.percent(20),
        ends_stream: random.percent(70),
    }
}

/// The position and the kind of an origin's failure.
fn failing(random: &mut Random, length: usize) -> (usize, Failing) {
    let at = if random.percent(40) {
        random.index(150)
    } else {
        random.index(length + 200)
    };
    let how = random.pick(&[
        Failing::Close,
        Failing::Close,
        Failing::Reset,
        Failing::Stall,
    ]);
    (at, how)
}

fn disorder(random: &mut Random) -> Disorder {
    match random.below(6) {
        0 => Disorder::BigField,
        1 => Disorder::EndlessHead,
        2 => Disorder::Surplus,
        _ => Disorder::Wrong {
            kind: random.index(12),
            percent: random.index(100),
        },
    }
}

/// The number of cached paths.
const CACHED_PATHS: u64 = 2;

impl Settings {
    /// The text of the configuration. All plans of a run differ in `X-Plan` only, their number.
    pub(crate) fn configuration(&self, folder: &str, plan: u64) -> String {
        let flag = |on: bool| if on { "on" } else { "off" };
        let mut text = format!(
            "events {{ worker_connections 64; multi_accept {}; accept_mutex off; }}\n\
             http {{\n\
             log_format simulated '$connection $connection_requests $status $bytes_sent \
             $request_length $body_bytes_sent $server_protocol';\n\
             access_log {folder}/access simulated;\n\
             default_type text/plain;\n\
             add_header X-Plan {plan} always;\n\
             keepalive_requests {};\n\
             keepalive_timeout {}ms;\n\
             client_header_timeout {}ms;\n\
             client_body_timeout {}ms;\n\
             send_timeout {}ms;\n\
             lingering_close {};\n\
             lingering_timeout {}ms;\n\
             lingering_time {}ms;\n\
             sendfile {};\n\
             reset_timedout_connection {};\n\
             client_header_buffer_size {};\n",
            flag(self.multi_accept),
            self.keepalive_requests,
            self.keepalive_timeout_ms,
            self.header_timeout_ms,
            self.body_timeout_ms,
            self.send_timeout_ms,
            self.lingering_close,
            self.lingering_timeout_ms,
            self.lingering_time_ms,
            flag(self.sendfile),
            flag(self.resets_timed_out),
            self.header_buffer_bytes,
        );
        self.proxy.write(folder, &mut text);
        let ssl = if self.is_tls {
            format!(
                " ssl; ssl_certificate {folder}/certificate.pem; \
             ssl_certificate_key {folder}/key.pem"
            )
        } else {
            String::new()
        };
        text.push_str(&format!("server {{ listen unix:{folder}/gate{ssl};\n"));
        if self.has_http2 {
            text.push_str("http2 on;\n");
        }
        for (number, length) in TEXT_BYTES.iter().enumerate() {
            let body = crate::content::body(number as u64, *length);
            let body = String::from_utf8_lossy(&body);
            text.push_str(&format!(
                "location = /text/{number} {{ return 200 \"{body}\"; }}\n"
            ));
        }
        text.push_str(&format!(
            "location /files/ {{ root {folder}; etag off; }}\n\
             location /slow/ {{ alias {folder}/files/; etag off; limit_rate {}; }}\n",
            self.rate_bytes
        ));
        self.proxy.write_locations(plan, &mut text);
        self.proxy
            .write_subrequests(folder, self.mirrors_bodies, &mut text);
        text.push_str("} }\n");
        text
    }
}

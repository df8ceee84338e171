//! Memory beside nginx: what the processes of a server hold for each connection and each cached
//! object.
//!
//! What counts is the proportional memory of master and serving processes, before and with all of
//! them. Buffers of sockets are the kernel's, and no part of it.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use turnpike_host::Host;
use turnpike_testkit::{Peer, Server};

use super::progress::Progress;
use crate::contender::{Contender, OBJECT};
use crate::options::Options;
use crate::outcome::Outcome;

/// In a quick run there is this part of all connections and objects.
const QUICK_PART: usize = 20;

/// Connections and objects before those that count: what is made once is made with them.
const WARM_UP: usize = 100;

/// Memory counts once it has not changed for this long. A connection is served within milliseconds.
const STILL: Duration = Duration::from_millis(700);
/// Looks at memory that goes on changing, at most.
const LOOKS_MAX: usize = 40;

/// Bytes of the object that clients read slowly: more than all buffers on its way.
const SLOW_OBJECT_BYTES: usize = 512 * 1024;

/// What a server holds.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Connections that were answered once.
    Idle,
    /// Connections with a part of a request head.
    PartsOfHeads,
    /// Connections whose client asked for a large proxied object and reads nothing.
    SlowReaders,
    /// Objects of a cache on disk.
    Objects,
}

/// What is held, in the words of the table, and how many.
const CASES: &[(&str, Held, usize)] = &[
    ("idle connection", Held::Idle, 10_000),
    ("connection with half a head", Held::PartsOfHeads, 10_000),
    (
        "proxied 512 KB, client does not read",
        Held::SlowReaders,
        10_000,
    ),
    ("object of a cache on disk", Held::Objects, 100_000),
];

/// The bodies of slow readers stay in the buffers of the proxy, as many as are configured.
const CONFIGURATION: &str = "worker_processes 1;
    worker_rlimit_nofile 60000;
    error_log %FOLDER%/error.log crit;
    events { worker_connections 50000; }
    http {
        access_log off;
        keepalive_requests 1000000;
        keepalive_timeout 1h;
        client_header_timeout 1h;
        send_timeout 1h;
        proxy_cache_path %FOLDER%/cache levels=1:2 keys_zone=objects:64m inactive=1h;
        upstream origin { server 127.0.0.1:%ORIGIN%; keepalive 8; }
        server {
            listen 127.0.0.1:%PORT% backlog=4096 sndbuf=16k;
            root %FOLDER%/html;
            location /slow/ {
                proxy_pass http://origin;
                proxy_max_temp_file_size 0;
                proxy_read_timeout 1h;
            }
            location /object/ {
                proxy_pass http://origin;
                proxy_http_version 1.1;
                proxy_set_header Connection '';
                proxy_cache objects;
                proxy_cache_valid 1h;
            }
        }
    }";

const ORIGIN: &str = "worker_processes 1;
    worker_rlimit_nofile 60000;
    events { worker_connections 50000; }
    http {
        access_log off;
        keepalive_requests 1000000;
        send_timeout 1h;
        server {
            listen 127.0.0.1:%PORT% backlog=4096 sndbuf=16k;
            root %FOLDER%/html;
            location /object/ { return 200 \"an object\"; }
        }
    }";

/// Measures, and prints a table.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--quick", "--debug"])?;
    let part = if options.has("--quick") {
        QUICK_PART
    } else {
        1
    };
    turnpike_host::raise_file_limit();
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let mut progress = Progress::of(CASES.len() * contenders.len());
    let [ours, theirs] = contenders.each_ref().map(|contender| &contender.name);
    println!("Bytes of memory for each\n\n| held | number | {ours} | {theirs} | ratio |");
    println!("|---|---|---|---|---|");
    for (name, held, count) in CASES {
        let count = count / part;
        let mut bytes = Vec::new();
        for contender in &contenders {
            progress.step(&format!("{name}, {}", contender.name));
            bytes.push(bytes_each(contender, *held, count)?);
        }
        let [own, other] = bytes.as_slice() else {
            unreachable!("there are two servers");
        };
        println!(
            "| {name} | {count} | {own:.0} | {other:.0} | {:.2} |",
            own / other
        );
    }
    progress.end();
    Ok(())
}

/// What each of this many takes.
fn bytes_each(contender: &Contender, held: Held, count: usize) -> Result<f64, String> {
    let origin = Contender::nginx()?
        .builder(ORIGIN)
        .file("html/slow/object", "x".repeat(SLOW_OBJECT_BYTES))
        .try_start()
        .map_err(|error| format!("nginx: {error}"))?;
    let text = CONFIGURATION.replace("%ORIGIN%", &origin.port().to_string());
    let server = contender.start(&text)?;
    let first = hold(&server, held, 0..WARM_UP)?;
    let before = still_bytes(&server);
    let rest = hold(&server, held, WARM_UP..WARM_UP + count)?;
    let with = still_bytes(&server);
    drop((first, rest));
    Ok((with - before) / count as f64)
}

/// Makes the server hold these; returns the connections that must stay open for it.
fn hold(server: &Server, held: Held, numbers: Range<usize>) -> Result<Vec<Peer>, String> {
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let each = |_| {
        let mut peer = server.connect();
        match held {
            Held::Idle => answer(&mut peer, &get(OBJECT))?,
            Held::PartsOfHeads => peer.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: a="),
            _ => peer.send(get("/slow/object")),
        }
        Ok(peer)
    };
    if !matches!(held, Held::Objects) {
        return numbers.map(each).collect();
    }
    let mut peer = server.connect();
    for number in numbers {
        answer(&mut peer, &get(&format!("/object/{number}")))?;
    }
    Ok(vec![peer])
}

/// One request, and its whole answer.
fn answer(peer: &mut Peer, request: &str) -> Outcome {
    let response = peer.round(request);
    match response.status {
        200 => Ok(()),
        _ => Err(response.head),
    }
}

/// The memory of all processes of a server, once it stays the same.
fn still_bytes(server: &Server) -> f64 {
    let bytes = || {
        let processes = std::iter::once(server.pid()).chain(server.serving_pids());
        let of_process = |process| Host::here().process_memory(process).proportional_bytes;
        processes.map(of_process).sum::<u64>()
    };
    let mut last = bytes();
    for _ in 0..LOOKS_MAX {
        thread::sleep(STILL);
        let now = bytes();
        if now == last {
            break;
        }
        last = now;
    }
    last as f64
}

//! Counts the instructions of a request by valgrind: unlike times they hardly change from run to
//! run, so that a change of some percent can be seen on a busy machine. Of these it counts apart
//! those that lock a cache line: what lanes on many CPUs could have to wait for.
//!
//! The server runs twice under callgrind, with few requests and with many. Its start, its end and
//! the growth of its buffers cost the same both times; the difference is that of the requests.

mod callgrind;
mod locked;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use turnpike_testkit::process::find_program;
use turnpike_testkit::{Builder, Server};

use crate::contender::{self, Contender, OBJECT, OBJECT_BYTES};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::setup;
use callgrind::Report;

/// Requests of the first run: the file is open and buffers are grown by then.
const FEW_REQUESTS: u64 = 100;
/// Requests of the second run in addition: enough that the work of timers is below a hundredth of
/// theirs.
const MORE_REQUESTS: u64 = 2_000;

/// The executions for each request below which an instruction is not of requests, but of timers.
const SHOWN_MIN: f64 = 0.01;

/// What is asked for, and how.
struct Row {
    name: &'static str,
    configuration: fn(origin: u16) -> Result<String, String>,
    ask: fn(&Server, u64) -> Outcome,
}

const ROWS: &[Row] = &[
    Row {
        name: "a file, connections kept",
        configuration: |_| contender::pinned(0),
        ask: ask_on_one_connection,
    },
    Row {
        name: "a file, a connection each",
        configuration: |_| contender::pinned(0),
        ask: ask_on_connections,
    },
    Row {
        name: "proxied, connections kept",
        configuration: |origin| Ok(proxied(origin, "")),
        ask: ask_on_one_connection,
    },
    Row {
        name: "a hit in memory, connections kept",
        configuration: |origin| Ok(proxied(origin, "proxy_cache hot; proxy_cache_valid 1h;")),
        ask: ask_on_one_connection,
    },
];

/// A server before an origin.
fn proxied(origin: u16, location: &str) -> String {
    format!(
        "worker_processes 1; worker_cpu_affinity 1; events {{}} http {{ access_log off;\n\
         proxy_cache_path hot keys_zone=hot:10m memory; keepalive_requests 1000000;\n\
         upstream origin {{ server 127.0.0.1:{origin}; keepalive 4; }}\n\
         server {{ listen 127.0.0.1:%PORT% reuseport; location / {{ {location}\n\
         proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         proxy_pass http://origin; }} }} }}"
    )
}

/// Counts and prints the tables.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let is_there = |program: &&str| find_program(program).is_some();
    if !["valgrind", "objdump"].iter().all(is_there) {
        setup::run(&["instructions".to_owned()])?;
    }
    let valgrind = find_program("valgrind").ok_or("valgrind was not installed")?;
    let contender = Contender::ours(&options)?;
    let origin = contender.start(&contender::pinned(0)?)?;
    let mut known = BTreeMap::new();
    let mut places = Vec::new();
    println!("| {OBJECT_BYTES} bytes | instructions per request | of them with a lock |");
    println!("|---|---|---|");
    for row in ROWS {
        let of = |requests| count(&valgrind, &contender, row, origin.port(), requests);
        let (few, many) = (of(FEW_REQUESTS)?, of(FEW_REQUESTS + MORE_REQUESTS)?);
        let each = many.total.saturating_sub(few.total) / MORE_REQUESTS;
        let by_place = locks(&few, &many, &mut known)?;
        let locks: f64 = by_place.values().sum();
        println!("| {} | {each} | {locks:.2} |", row.name);
        places.push((row.name, by_place));
    }
    println!("\n| locked at | row | per request |\n|---|---|---|");
    for (row, by_place) in places {
        for (place, each) in by_place {
            println!("| `{place}` | {row} | {each:.2} |");
        }
    }
    Ok(())
}

/// The report of a server from its start to its end, which answers so many requests.
fn count(
    valgrind: &Path,
    contender: &Contender,
    row: &Row,
    origin: u16,
    requests: u64,
) -> Result<Report, String> {
    let configuration = format!("master_process off;\n{}", (row.configuration)(origin)?);
    let builder: Builder = contender.builder(&configuration);
    callgrind::count(valgrind, &contender.program, builder, |server| {
        (row.ask)(server, requests)
    })
}

/// The locking instructions for each request, by line of the source; by function where the code is
/// not of this tree.
///
/// # Errors
/// A file of the report cannot be disassembled.
fn locks(
    few: &Report,
    many: &Report,
    known: &mut BTreeMap<PathBuf, BTreeSet<u64>>,
) -> Result<BTreeMap<String, f64>, String> {
    let mut by_place = BTreeMap::<String, f64>::new();
    for (place, (function, count)) in &many.executions {
        let before = few.executions.get(place).map_or(0, |(_, count)| *count);
        let each = count.saturating_sub(before) as f64 / MORE_REQUESTS as f64;
        if each < SHOWN_MIN {
            continue;
        }
        let (object, address) = place;
        if !known.contains_key(object) {
            // Code without a file is the kernel's page of clocks.
            let is_file = object.is_file();
            let locked = is_file.then(|| locked::addresses(object));
            known.insert(object.clone(), locked.transpose()?.unwrap_or_default());
        }
        if known.get(object).is_some_and(|set| set.contains(address)) {
            let source = locked::source(object, *address)?;
            let name = source.unwrap_or_else(|| plain(function));
            *by_place.entry(name).or_default() += each;
        }
    }
    Ok(by_place)
}

/// A function's name without the hash at its end.
fn plain(name: &str) -> String {
    let parts = name.rsplit_once("::h");
    let parts = parts.filter(|(_, hash)| hash.len() == 16);
    parts.map_or(name, |(name, _)| name).to_owned()
}

fn request(connection: &str) -> String {
    format!("GET {OBJECT} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n")
}

fn ask_on_one_connection(server: &Server, requests: u64) -> Outcome {
    let request = request("keep-alive");
    let mut peer = server.connect();
    (0..requests).try_for_each(|_| whole(peer.round(&request).body.len()))
}

fn ask_on_connections(server: &Server, requests: u64) -> Outcome {
    let request = request("close");
    (0..requests).try_for_each(|_| whole(server.connect().round(&request).body.len()))
}

/// The error where an answer is not the file.
fn whole(body_bytes: usize) -> Outcome {
    match body_bytes {
        OBJECT_BYTES => Ok(()),
        bytes => Err(format!("an answer has {bytes} bytes")),
    }
}

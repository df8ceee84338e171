//! Kills the serving process under a load of connections with one request each: the master holds
//! the listening sockets, so no client may be refused, and service must be back soon.
//!
//! The client is our own: wrk counts errors but does not distinguish refusals, nor give their
//! times.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use turnpike_testkit::{Server, Signal, process};

use crate::contender::{self, Contender, OBJECT};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::set_on_drop::SetOnDrop;

/// Kills of one run.
const KILLS: usize = 10;
/// Between two of them.
const EVERY: Duration = Duration::from_millis(700);
/// Clients at work at once.
const CLIENTS: usize = 16;
/// The time limit for the return of service.
const BACK_MAX: Duration = Duration::from_millis(100);
/// When a client gives its connection up.
const PATIENCE: Duration = Duration::from_secs(5);

/// After a refusal, which costs nothing: without a pause they would be counted by the million.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// How one transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The whole response came.
    Served,
    /// The connection was refused.
    Refused,
    /// The connection was made and broke: it was in flight.
    Broken,
    /// Nothing happened for too long.
    Hung,
}

/// One transaction of a client.
#[derive(Debug, Clone, Copy)]
struct Transaction {
    begun: Instant,
    ended: Instant,
    ending: Ending,
}

/// Kills, counts and compares.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--kills", "--server"],
        &["--debug", "--without-nginx"],
    )?;
    let kills = options.number("--kills", KILLS)?;
    let mut contenders = vec![Contender::ours(&options)?];
    if !options.has("--without-nginx") {
        contenders.push(Contender::nginx()?);
    }
    println!("{kills} kills of the serving process, {CLIENTS} clients, one request a connection");
    println!("\n| server | served | refused | broken in flight | hung | back after, ms |");
    println!("|---|---|---|---|---|---|");
    let mut verdict = Ok(());
    for (index, contender) in contenders.iter().enumerate() {
        let (transactions, back) = crash(contender, kills)?;
        let count = |ending| {
            transactions
                .iter()
                .filter(|one| one.ending == ending)
                .count()
        };
        let (refused, hung) = (count(Ending::Refused), count(Ending::Hung));
        println!(
            "| {} | {} | {refused} | {} | {hung} | {} |",
            contender.name,
            count(Ending::Served),
            count(Ending::Broken),
            spread(&back)
        );
        let is_late = back.len() < kills || back.iter().any(|time| *time > BACK_MAX);
        if index == 0 && (refused + hung > 0 || is_late) {
            let limit = BACK_MAX.as_millis();
            verdict = Err(format!(
                "{refused} refused, {hung} hung, or not back in {limit} ms"
            ));
        }
    }
    verdict
}

/// Every transaction, and for each kill the time until a connection made after it was served.
fn crash(contender: &Contender, kills: usize) -> Result<(Vec<Transaction>, Vec<Duration>), String> {
    let configuration = contender::pinned(machine::cpus() - 1)?;
    let server = contender.start(&configuration)?;
    let is_over = AtomicBool::new(false);
    let mut killed = Vec::new();
    let mut transactions = std::thread::scope(|scope| {
        let (port, is_over) = (server.port(), &is_over);
        let end = SetOnDrop(is_over);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(move || client(port, is_over)))
            .collect();
        for _ in 0..kills {
            std::thread::sleep(EVERY);
            killed.extend(kill(&server));
        }
        std::thread::sleep(EVERY);
        drop(end);
        clients
            .into_iter()
            .filter_map(|client| client.join().ok())
            .flatten()
            .collect::<Vec<_>>()
    });
    if killed.len() < kills {
        return Err(format!(
            "there was no serving process to kill\n{}",
            server.output()
        ));
    }
    transactions.sort_by_key(|transaction| transaction.ended);
    let back = |at: &Instant| {
        let is_after = |one: &&Transaction| one.ending == Ending::Served && one.begun > *at;
        transactions
            .iter()
            .find(is_after)
            .map(|one| one.ended - *at)
    };
    Ok((
        transactions.clone(),
        killed.iter().filter_map(back).collect(),
    ))
}

/// Kills the serving process; the moment at which it was dead.
fn kill(server: &Server) -> Option<Instant> {
    let pid = *server.serving_pids().first()?;
    let at = Instant::now();
    process::signal(pid, Signal::SIGKILL).then_some(at)
}

fn client(port: u16, is_over: &AtomicBool) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        let ending = transaction(port);
        transactions.push(Transaction {
            begun,
            ended: Instant::now(),
            ending,
        });
        if ending == Ending::Refused {
            std::thread::sleep(REFUSAL_PAUSE);
        }
    }
    transactions
}

fn transaction(port: u16) -> Ending {
    let mut stream = match TcpStream::connect(("127.0.0.1", port)) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ending::Refused,
        Err(_) => return Ending::Broken,
    };
    let request = format!("GET {OBJECT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut response = Vec::new();
    let result = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.read_to_end(&mut response));
    match result {
        Ok(_) if response.starts_with(b"HTTP/1.1 200") && is_whole(&response) => Ending::Served,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ending::Hung
        }
        _ => Ending::Broken,
    }
}

/// Whether the body is there to its end.
fn is_whole(response: &[u8]) -> bool {
    let head = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    head.is_some_and(|at| response.len() - at - 4 == contender::OBJECT_BYTES)
}

/// Median and extremes of times, in milliseconds.
fn spread(times: &[Duration]) -> String {
    let mut times_ms: Vec<f64> = times
        .iter()
        .map(|time| time.as_secs_f64() * 1000.0)
        .collect();
    times_ms.sort_by(f64::total_cmp);
    match (times_ms.first(), times_ms.last()) {
        (Some(least), Some(most)) => {
            format!(
                "median {:.1}, {least:.1}..{most:.1}",
                times_ms[times_ms.len() / 2]
            )
        }
        _ => "never".to_owned(),
    }
}

//! Reloads under load: every request of every client must be answered, during every change of the
//! configuration. The same run with nginx gives figures for comparison.

use std::time::{Duration, Instant};

use turnpike_testkit::clients::{self, Load};
use turnpike_testkit::{Server, Signal, wait_for};

use crate::contender::{Contender, localise, study};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace;

/// Reloads of one run.
const RELOADS: u32 = 100;
/// Between two of them.
const EVERY: Duration = Duration::from_millis(100);
/// Load before the first and after the last one, in seconds.
const MARGIN_SECONDS: u64 = 1;
/// Connections of the client.
const CONNECTIONS: &str = "64";
/// When wrk counts an answer as late: a busy machine is not a lost request.
const PATIENCE_SECONDS: &str = "10";
/// The header of a response with the configuration that it was answered under.
const GENERATION: &str = "X-Generation";

/// Runs both kinds of load against both servers.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--reloads", "--server"],
        &["--debug", "--without-nginx"],
    )?;
    let reloads = options.number("--reloads", RELOADS)?;
    turnpike_host::raise_file_limit();
    let mut contenders = vec![Contender::ours(&options)?];
    if !options.has("--without-nginx") {
        contenders.push(Contender::nginx()?);
    }
    let mut failed = 0;
    println!(
        "{reloads} reloads, one each {} ms, wrk -c {CONNECTIONS}",
        EVERY.as_millis()
    );
    println!("\n| server | load | requests | failed | of which | last configuration seen |");
    println!("|---|---|---|---|---|---|");
    for (index, contender) in contenders.iter().enumerate() {
        for mode in ["keep-alive", "one request per connection"] {
            let (load, generation) = torture(contender, mode, reloads)?;
            println!(
                "| {} | {mode} | {} | {generation} |",
                contender.name,
                cells(&load)
            );
            if index == 0 {
                failed += load.failed() + u64::from(generation != reloads);
            }
        }
    }
    match failed {
        0 => Ok(()),
        count => Err(format!("{count} requests failed")),
    }
}

fn cells(load: &Load) -> String {
    format!(
        "{} | {} | connect {}, read {}, write {}, timeout {}, status {}",
        load.requests,
        load.failed(),
        load.connect_errors,
        load.read_errors,
        load.write_errors,
        load.timeouts,
        load.not_2xx
    )
}

/// The client's report, and the generation that answers at the end.
fn torture(contender: &Contender, mode: &str, reloads: u32) -> Result<(Load, u32), String> {
    let path = workspace::root().join("studies/conf/s2-nginx.conf");
    let configuration = localise(&study(&path)?);
    let generation = |number: u32| {
        let header = format!("server {{\n add_header {GENERATION} {number};");
        configuration.replacen("server {", &header, 1)
    };
    let mut server = contender.start(&generation(0))?;
    let url = format!("http://127.0.0.1:{}/600.html", server.port());
    let time = EVERY * reloads;
    let seconds = (time.as_secs() + 1 + 2 * MARGIN_SECONDS).to_string();
    let load = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut arguments = vec!["-t", "1", "-c", CONNECTIONS, "-d", &seconds];
            arguments.extend(["--timeout", PATIENCE_SECONDS]);
            if mode != "keep-alive" {
                arguments.extend(["-H", "Connection: close"]);
            }
            arguments.push(&url);
            clients::wrk(&arguments)
        });
        std::thread::sleep(Duration::from_secs(MARGIN_SECONDS));
        let started = Instant::now();
        for number in 1..=reloads {
            server.write_configuration(&generation(number));
            server.signal(Signal::SIGHUP);
            let next = started + EVERY * number;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        client.join().map_err(|_| "wrk gave no report".to_owned())
    })?;
    // The last reload may still be at work.
    let last = wait_for(|| (seen(&server) == Some(reloads)).then_some(reloads));
    Ok((load, last.or_else(|| seen(&server)).unwrap_or(0)))
}

/// The generation under which a request is answered now.
fn seen(server: &Server) -> Option<u32> {
    server.get("/600.html").header(GENERATION)?.parse().ok()
}

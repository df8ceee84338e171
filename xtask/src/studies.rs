//! Checks the published configurations: each passes `-t`, starts, and answers wrk and ab with a
//! thousand connections without a failed request.

use std::path::PathBuf;

use turnpike_testkit::{Server, clients};

use crate::contender::{Contender, localise, study};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace;

/// Connections of each client, as study S4's largest.
const CONNECTIONS: &str = "1000";

/// Seconds of each client: long enough for every timer of the configurations that can matter.
const SECONDS: u64 = 30;

/// More requests than ab can make in the time, so that the time ends it.
const REQUESTS_MAX: &str = "10000000";

/// Runs every study, or those whose name contains `--only`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--seconds", "--only", "--server"],
        &["--debug", "--nginx"],
    )?;
    let seconds = options.number("--seconds", SECONDS)?;
    let only = options.text("--only").unwrap_or_default();
    turnpike_host::raise_file_limit();
    let server = if options.has("--nginx") {
        Contender::nginx()?
    } else {
        Contender::ours(&options)?
    };
    let mut failures = 0;
    println!(
        "| configuration | {} -t | wrk -c 1000 | ab -r -c 1000 |",
        server.name
    );
    println!("|---|---|---|---|");
    for path in configurations()? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.contains(only) {
            let result = hold(&server, &localise(&study(&path)?), seconds);
            let (cells, is_held) = result.unwrap_or_else(|error| (error, false));
            println!("| {name} | {cells} |");
            failures += usize::from(!is_held);
        }
    }
    match failures {
        0 => Ok(()),
        count => Err(format!("{count} configurations were not held")),
    }
}

fn configurations() -> Result<Vec<PathBuf>, String> {
    let folder = workspace::root().join("studies/conf");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("studies/conf: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The row's cells, and whether everything was as it should be.
fn hold(server: &Contender, configuration: &str, seconds: u64) -> Result<(String, bool), String> {
    let (passes, messages) = server.test(configuration)?;
    if !passes {
        return Ok((
            format!("{} | | ", messages.trim().replace('\n', "; ")),
            false,
        ));
    }
    let target = configuration
        .lines()
        .find_map(|line| line.strip_prefix("# Drive: "));
    let target = target.ok_or("no line names the target")?;
    let running = server.start(configuration)?;
    let url = format!("http://127.0.0.1:{}{target}", running.port());
    let wrk = drive(&running, "wrk", seconds, &url);
    let ab = drive(&running, "ab", seconds, &url);
    let is_held = [&wrk, &ab]
        .iter()
        .all(|load| load.requests > 0 && load.failed() == 0);
    Ok((format!("ok | {wrk} | {ab}"), is_held))
}

/// One client's load. Its own limits are not the server's: it gets all file descriptors there are.
fn drive(server: &Server, client: &str, seconds: u64, url: &str) -> clients::Load {
    let seconds = seconds.to_string();
    let load = match client {
        "wrk" => clients::wrk(&[
            "-t",
            "2",
            "-c",
            CONNECTIONS,
            "-d",
            &seconds,
            "--timeout",
            "10",
            url,
        ]),
        // -n after -t: -t alone would stop at 50,000 requests.
        _ => {
            let arguments = [
                "-q",
                "-r",
                "-c",
                CONNECTIONS,
                "-t",
                &seconds,
                "-n",
                REQUESTS_MAX,
            ];
            clients::ab(&[arguments.as_slice(), &[url]].concat())
        }
    };
    if load.failed() > 0 {
        eprintln!("{client}: {load}\n{}", server.output());
    }
    load
}

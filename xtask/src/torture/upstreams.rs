//! Kills and restarts upstream servers under load: two servers behind a proxy are killed (SIGKILL)
//! and started again in turn, while clients send requests that may be repeated. No client may
//! notice.
//!
//! The next server is killed only once the one before takes requests again: with both dead there
//! could be no answer. Counts decide, never the clock.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_testkit::{Folder, Server, ports, wait_for};

use super::clients::{Load, LoadRow};
use super::ledger::Account;
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;

/// The default duration of a run, in seconds.
const SECONDS: u64 = 60;
/// Load after the last kill, in seconds.
const AFTERMATH_SECONDS: u64 = 3;
/// A restarted server counts as back after this many more requests to it.
const REQUESTS_BACK: u64 = 20;
/// How long a server stays dead, and how long all is well before the next kill.
const PAUSE: Duration = Duration::from_millis(300);
/// The load.
const LOADS: &[LoadRow] = &[
    LoadRow {
        clients: "one-request",
        is_http3: false,
        path: "/",
        options: &["--connrate", "500"],
    },
    LoadRow {
        clients: "keep-alive",
        is_http3: false,
        path: "/",
        options: &["--connections", "32", "--rate", "500"],
    },
];
/// Failures that are printed one by one.
const LISTED_MAX: usize = 20;

/// A server behind the proxy.
struct Origin {
    program: PathBuf,
    folder: Folder,
    port: u16,
    child: Child,
}

/// Kills, restarts and accounts.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--seconds", "--server"], &["--debug"])?;
    let seconds = options.number("--seconds", SECONDS)?;
    turnpike_host::raise_file_limit();
    let contender = Contender::ours(&options)?;
    let program = contender.program.clone();
    let mut origins = [Origin::start(&program)?, Origin::start(&program)?];
    let proxy = contender.start(&configuration(&origins))?;
    let whole = seconds + AFTERMATH_SECONDS;
    let loads = LOADS
        .iter()
        .map(|row| Load::start(&program, row, proxy.port(), proxy.folder(), whole));
    let loads = loads.collect::<Result<Vec<_>, _>>()?;
    let kills = kill_in_turn(&mut origins, &proxy, &program, seconds)?;
    let accounts: Result<Vec<Account>, String> = loads.into_iter().map(Load::account).collect();
    let log = proxy.log("error.log");
    report(&accounts?, kills, &log)
}

/// Kills one server after the other, and starts it again; returns how often.
fn kill_in_turn(
    origins: &mut [Origin; 2],
    proxy: &Server,
    program: &Path,
    seconds: u64,
) -> Result<u64, String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut kills = 0;
    while Instant::now() < end {
        let origin = &mut origins[(kills % 2) as usize];
        std::thread::sleep(PAUSE);
        origin.kill()?;
        kills += 1;
        std::thread::sleep(PAUSE);
        origin.restart()?;
        let before = requests(proxy, program, origin.port)?;
        let back = wait_for(|| {
            let now = requests(proxy, program, origin.port).ok()?;
            (now >= before + REQUESTS_BACK || Instant::now() > end).then_some(())
        });
        back.ok_or("a server that was started again gets no requests")?;
    }
    Ok(kills)
}

/// Requests that were passed to the server so far, as the proxy counts them.
fn requests(proxy: &Server, program: &Path, port: u16) -> Result<u64, String> {
    let output = Command::new(program)
        .args(["upstream", "list", "u", "--json", "--socket"])
        .arg(proxy.folder().join("control.sock"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let answer: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let address = format!("127.0.0.1:{port}");
    let groups = answer["upstreams"].as_array().into_iter().flatten();
    let mut peers = groups.flat_map(|group| group["peers"].as_array().into_iter().flatten());
    let peer = peers.find(|peer| peer["address"] == address.as_str());
    let count = peer.and_then(|peer| peer["requests"].as_u64());
    count.ok_or_else(|| format!("the proxy does not know {address}: {answer}"))
}

impl Origin {
    fn start(program: &Path) -> Result<Origin, String> {
        let port = ports::reserve().ok_or("no free port")?;
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let path = folder.path().display();
        let text = format!(
            "daemon off; master_process off; control off; pid {path}/pid;
error_log {path}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 200 \"here\\n\"; }}
    }}
}}
"
        );
        let written = folder.write("origin.conf", text.as_bytes());
        written.map_err(|error| error.to_string())?;
        let child = spawn(program, &folder)?;
        let origin = Origin {
            program: program.to_owned(),
            folder,
            port,
            child,
        };
        origin.wait_until_it_listens()?;
        Ok(origin)
    }

    fn kill(&mut self) -> Outcome {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(|_| ()).map_err(|error| error.to_string())
    }

    fn restart(&mut self) -> Outcome {
        self.child = spawn(&self.program, &self.folder)?;
        self.wait_until_it_listens()
    }

    fn wait_until_it_listens(&self) -> Outcome {
        let listens = wait_for(|| ports::is_listening(self.port).then_some(()));
        listens.ok_or_else(|| {
            let log = std::fs::read_to_string(self.folder.path().join("error.log"));
            format!("a server does not start:\n{}", log.unwrap_or_default())
        })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.kill(); // it may be dead already
    }
}

fn spawn(program: &Path, folder: &Folder) -> Result<Child, String> {
    Command::new(program)
        .arg("-p")
        .arg(folder.path().join(""))
        .arg("-c")
        .arg(folder.path().join("origin.conf"))
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())
}

/// A usual configuration, except for the time after which a server is tried again.
fn configuration(origins: &[Origin; 2]) -> String {
    let [one, other] = origins.each_ref().map(|origin| origin.port);
    format!(
        "worker_processes 2;
control %FOLDER%/control.sock;
error_log %FOLDER%/error.log info;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    upstream u {{
        zone u 64k;
        server 127.0.0.1:{one} fail_timeout=1s;
        server 127.0.0.1:{other} fail_timeout=1s;
        keepalive 16;
    }}
    server {{
        listen 127.0.0.1:%PORT% reuseport=steer;
        location / {{ proxy_pass http://u; }}
    }}
}}
"
    )
}

fn report(accounts: &[Account], kills: u64, log: &str) -> Outcome {
    println!("{kills} kills and restarts of two upstream servers in turn\n");
    println!("| clients | offered | answered | failed |\n|---|---|---|---|");
    let mut faults = Vec::new();
    for account in accounts {
        let (clients, failed) = (account.clients, account.failures.len());
        let (offered, answered) = (account.offered, account.answered);
        println!("| {clients} | {offered} | {answered} | {failed} |");
        if answered == 0 {
            faults.push(format!("{clients}: none was answered"));
        }
        if !account.is_balanced() {
            faults.push(format!("{clients}: some are unaccounted for"));
        }
        let listed = account.failures.iter().take(LISTED_MAX);
        faults.extend(listed.map(|failure| format!("{clients}: {}", failure.kind)));
    }
    let noticed = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    println!(
        "\ntries that failed and went on: {} refused, {} closed, {} reset",
        noticed("Connection refused"),
        noticed("upstream prematurely closed"),
        noticed("Connection reset by peer")
    );
    if faults.is_empty() {
        Ok(())
    } else {
        let last = log.lines().rev().take(LISTED_MAX);
        last.for_each(|line| eprintln!("{line}"));
        Err(faults.join("\n"))
    }
}

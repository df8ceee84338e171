//! Counts the instructions of a request by valgrind: unlike times they hardly change from run to
//! run, so that a change of some percent can be seen on a busy machine.
//!
//! The server runs twice under callgrind, with few requests and with many. Its start, its end and
//! the growth of its buffers cost the same both times; the difference is that of the requests.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turnpike_testkit::process::find_program;
use turnpike_testkit::{Folder, Server, Signal};

use crate::contender::{self, Contender, OBJECT, OBJECT_BYTES};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::setup;

/// Requests of the first run: the file is open and buffers are grown by then.
const FEW_REQUESTS: u64 = 100;
/// Requests of the second run in addition: enough that the work of timers is below a hundredth of
/// theirs.
const MORE_REQUESTS: u64 = 2_000;

/// The name under which a master does not start itself anew to get it: valgrind would lose sight of
/// it.
const TITLE: &str = "turnpike: master process turnpike";

/// How clients ask.
struct Way {
    name: &'static str,
    ask: fn(&Server, u64) -> Outcome,
}

const WAYS: &[Way] = &[
    Way {
        name: "keep-alive",
        ask: ask_on_one_connection,
    },
    Way {
        name: "a connection each",
        ask: ask_on_connections,
    },
];

/// Counts and prints the table.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    if find_program("valgrind").is_none() {
        setup::run(&["instructions".to_owned()])?;
    }
    let valgrind = find_program("valgrind").ok_or("valgrind was not installed")?;
    let contender = Contender::ours(&options)?;
    println!("| {OBJECT_BYTES} bytes from a file | instructions per request |");
    println!("|---|---|");
    for way in WAYS {
        let few = count(&valgrind, &contender, way, FEW_REQUESTS)?;
        let many = count(&valgrind, &contender, way, FEW_REQUESTS + MORE_REQUESTS)?;
        let each = many.saturating_sub(few) / MORE_REQUESTS;
        println!("| {} | {each} |", way.name);
    }
    Ok(())
}

/// The instructions of a server from its start to its end, which answers so many requests.
fn count(valgrind: &Path, contender: &Contender, way: &Way, requests: u64) -> Result<u64, String> {
    let folder = titled(&contender.program).map_err(|error| format!("no folder: {error}"))?;
    let report = folder.path().join("callgrind.out");
    let run = Run {
        valgrind: valgrind.to_path_buf(),
        out: format!("--callgrind-out-file={}", report.display()),
        path: format!("{}:/usr/bin:/bin", folder.path().display()),
    };
    let configuration = format!("master_process off;\n{}", contender::pinned(0)?);
    let mut server = contender
        .builder(&configuration)
        .command(move |command| run.wrap(command))
        .try_start()
        .map_err(|error| error.to_string())?;
    (way.ask)(&server, requests)?;
    server.end(Signal::SIGQUIT);
    total(&report)
}

/// A folder with the program under its title.
fn titled(program: &Path) -> io::Result<Folder> {
    let folder = Folder::create()?;
    symlink(std::path::absolute(program)?, folder.path().join(TITLE))?;
    Ok(folder)
}

/// How valgrind runs the program.
struct Run {
    valgrind: PathBuf,
    out: String,
    /// Where the program is found.
    path: String,
}

impl Run {
    /// Has valgrind run the command.
    fn wrap(&self, command: &mut Command) {
        let mut valgrind = Command::new(&self.valgrind);
        valgrind
            .args(["--quiet", "--tool=callgrind", &self.out, TITLE])
            .args(command.get_args())
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        *command = valgrind;
    }
}

/// The sum in callgrind's report.
fn total(report: &Path) -> Result<u64, String> {
    let path = report.display();
    let text = std::fs::read_to_string(report).map_err(|error| format!("{path}: {error}"))?;
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
        .ok_or_else(|| format!("{path} has no totals"))
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

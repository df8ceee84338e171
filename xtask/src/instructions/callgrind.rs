//! Runs a server under callgrind and reads the report: the executions of each instruction.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turnpike_testkit::{Builder, Folder, Server, Signal};

use crate::outcome::Outcome;

/// The name under which a master does not start itself anew to get it: valgrind would lose sight of
/// it.
const TITLE: &str = "turnpike: master process turnpike";

/// An instruction: the file of the program or library, and its address there.
pub(super) type Place = (PathBuf, u64);

/// What a server did from its start to its end.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// All instructions.
    pub(super) total: u64,
    /// The executions of each instruction, with the function that it was compiled into.
    pub(super) executions: BTreeMap<Place, (String, u64)>,
}

/// Runs the server under valgrind, asks it, and ends it.
///
/// # Errors
/// The server's output, what the questions found, or a report that cannot be read.
pub(super) fn count(
    valgrind: &Path,
    program: &Path,
    builder: Builder,
    ask: impl FnOnce(&Server) -> Outcome,
) -> Result<Report, String> {
    let folder = titled(program).map_err(|error| format!("no folder: {error}"))?;
    let report = folder.path().join("callgrind.out");
    let run = Run {
        valgrind: valgrind.to_path_buf(),
        out: format!("--callgrind-out-file={}", report.display()),
        path: format!("{}:/usr/bin:/bin", folder.path().display()),
    };
    let mut server = builder
        .command(move |command| run.wrap(command))
        .try_start()
        .map_err(|error| error.to_string())?;
    ask(&server)?;
    server.end(Signal::SIGQUIT);
    let told = |error: io::Error| format!("{}: {error}", report.display());
    let file = std::fs::File::open(&report).map_err(told)?;
    let read = parse(BufReader::new(file)).map_err(told)?;
    read.ok_or_else(|| format!("{} has no totals", report.display()))
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
            .args(["--quiet", "--tool=callgrind", "--dump-instr=yes"])
            .args(["--dump-line=no", "--compress-strings=no"])
            .args(["--compress-pos=no", &self.out, TITLE])
            .args(command.get_args())
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        *command = valgrind;
    }
}

/// Reads callgrind's profile format (version 1) with addresses; `None` without totals.
fn parse(report: impl BufRead) -> io::Result<Option<Report>> {
    let mut read = Report::default();
    let (mut object, mut function) = (PathBuf::new(), String::new());
    let (mut is_call, mut has_total) = (false, false);
    for line in report.lines() {
        let line = line?;
        if let Some(path) = line.strip_prefix("ob=") {
            object = PathBuf::from(path);
        } else if let Some(name) = line.strip_prefix("fn=") {
            name.clone_into(&mut function);
        } else if line.starts_with("calls=") {
            // The next line has the callee's instructions, which are counted there.
            is_call = true;
        } else if let Some(total) = line.strip_prefix("totals:") {
            read.total = total.trim().parse().unwrap_or(0);
            has_total = read.total > 0;
        } else if let Some((address, count)) = cost(&line)
            && !std::mem::take(&mut is_call)
        {
            let place = (object.clone(), address);
            let entry = read.executions.entry(place);
            entry.or_insert_with(|| (function.clone(), 0)).1 += count;
        }
    }
    Ok(has_total.then_some(read))
}

/// The address and the count of a line of costs.
fn cost(line: &str) -> Option<(u64, u64)> {
    let (address, count) = line.strip_prefix("0x")?.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    Some((address, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn costs_of_calls_are_counted_once() {
        let text = "positions: instr\nevents: Ir\n\nob=/bin/a\nfn=one\n0x10 5\n0x14 5\n\
                    cob=/lib/b\ncfn=two\ncalls=5 0x20\n0x14 50\n0x18 2\n\n\
                    ob=/lib/b\nfn=two\n0x20 50\n0x10 1\n\ntotals: 63\n";
        let report = parse(text.as_bytes()).unwrap().unwrap();
        let of =
            |object: &str, address| report.executions[&(PathBuf::from(object), address)].clone();
        assert_eq!(of("/bin/a", 0x10), ("one".to_owned(), 5));
        assert_eq!(of("/bin/a", 0x14), ("one".to_owned(), 5));
        assert_eq!(of("/bin/a", 0x18), ("one".to_owned(), 2));
        assert_eq!(of("/lib/b", 0x20), ("two".to_owned(), 50));
        assert_eq!(report.executions.len(), 5);
        assert_eq!(report.total, 63);
        assert_eq!(parse(&b"events: Ir\n"[..]).unwrap(), None);
    }
}

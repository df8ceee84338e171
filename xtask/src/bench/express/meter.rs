//! What the client of a measurement costs, and what the server is seen to cost.
//!
//! The kernel counts a softirq as run time of the process that it interrupts, so that most of the
//! server's work with segments looks like the client's, whose system calls bring them about. The
//! program `meter` (crates/express/examples) measures the softirqs in each process's time, and
//! the parts of them in which the driver took in frames from the server's and from the client's
//! interface: all that is done with a received frame, up to a socket, or up to the answer's
//! transmission. Then
//!
//! - the **client** is charged for its run time without softirqs, and for the frames that its own
//!   interface took in, in whosever time;
//! - the **server** is charged for its serving process's run time without softirqs, and for the
//!   frames that its own interface took in. That is what is *seen*. What counts is more: the time
//!   of the whole machine less the client's part, and so the kernel's work around the drivers of
//!   both sides, switches between processes, timers and the machine's background too.
//!
//! No work of the server is ever charged to the client.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use turnpike_testkit::Folder;

use crate::workspace::{self, must};

/// A running program `meter`.
pub(super) struct Meter {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The program `meter`, built.
pub(super) struct MeterProgram {
    path: PathBuf,
    object: PathBuf,
    _folder: Folder,
}

impl MeterProgram {
    /// Builds it.
    ///
    /// # Errors
    /// Those of cargo and clang.
    pub(super) fn build() -> Result<MeterProgram, String> {
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let object = folder.path().join("meter.o");
        compile(&object)?;
        Ok(MeterProgram {
            path: build()?,
            object,
            _folder: folder,
        })
    }

    /// Starts it for the server's interface and the client's.
    ///
    /// # Errors
    /// The kernel refuses its program.
    pub(super) fn start(&self, interfaces: &[String; 2]) -> Result<Meter, String> {
        let mut process = Command::new(&self.path)
            .arg(&self.object)
            .args(interfaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("meter: {error}"))?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("meter has no pipes".to_owned());
        };
        let mut meter = Meter {
            process,
            questions,
            answers: BufReader::new(answers),
        };
        meter.read()?;
        Ok(meter)
    }
}

/// Times in nanoseconds, all since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// A process, the softirqs in its time, and of these the receiving at both interfaces.
    rows: Vec<(u32, u64, [u64; 2])>,
}

/// The place of the server's interface, and of the client's.
const OF_SERVER: usize = 0;
const OF_CLIENT: usize = 1;

impl Meter {
    /// Reads its table.
    ///
    /// # Errors
    /// It has ended; its message stands on standard error.
    pub(super) fn read(&mut self) -> Result<Reading, String> {
        let failed = |error: std::io::Error| format!("meter: {error}");
        self.questions.write_all(b"\n").map_err(failed)?;
        let mut reading = Reading::default();
        loop {
            let mut line = String::new();
            match self.answers.read_line(&mut line).map_err(failed)? {
                0 => return Err("meter has ended".to_owned()),
                _ if line == "\n" => return Ok(reading),
                _ => reading.rows.push(row(&line).ok_or("meter: an odd line")?),
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Reading {
    /// What a process costs by itself that has run for so long, in nanoseconds: its time without
    /// softirqs.
    fn own_ns(&self, process: u32, run_ns: u64) -> u64 {
        let rows = self.rows.iter().filter(|row| row.0 == process);
        run_ns.saturating_sub(rows.map(|row| row.1).sum())
    }

    fn received_ns(&self, interface: usize) -> u64 {
        self.rows.iter().map(|row| row.2[interface]).sum()
    }

    /// What the client costs: a process that has run for so long.
    pub(super) fn client_ns(&self, process: u32, run_ns: u64) -> u64 {
        self.own_ns(process, run_ns) + self.received_ns(OF_CLIENT)
    }

    /// What the server is seen to cost.
    pub(super) fn server_ns(&self, process: u32, run_ns: u64) -> u64 {
        self.own_ns(process, run_ns) + self.received_ns(OF_SERVER)
    }

    /// What has come since an earlier reading.
    pub(super) fn since(&self, earlier: &Reading) -> Reading {
        let before = |process: u32| {
            let mut rows = earlier.rows.iter();
            rows.find(|row| row.0 == process)
                .map_or((0, [0; 2]), |row| (row.1, row.2))
        };
        let rows = self.rows.iter().map(|(process, softirq_ns, received_ns)| {
            let (softirqs, received) = before(*process);
            (
                *process,
                softirq_ns - softirqs,
                [0, 1].map(|interface| received_ns[interface] - received[interface]),
            )
        });
        Reading {
            rows: rows.collect(),
        }
    }
}

/// A line of the table.
fn row(line: &str) -> Option<(u32, u64, [u64; 2])> {
    let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    match numbers.ok()?[..] {
        [process, softirq_ns, server_ns, client_ns, ..] => {
            Some((process.try_into().ok()?, softirq_ns, [server_ns, client_ns]))
        }
        _ => None,
    }
}

/// Run time of the processes that this one has waited for, in nanoseconds.
pub(super) fn children_ns() -> Result<u64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let ns = |time: nix::sys::time::TimeVal| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000
    };
    Ok(ns(usage.user_time()) + ns(usage.system_time()))
}

fn build() -> Result<PathBuf, String> {
    must(workspace::cargo().args([
        "build",
        "--quiet",
        "--locked",
        "--workspace",
        "--example",
        "meter",
    ]))?;
    Ok(workspace::target().join("debug/examples/meter"))
}

fn compile(object: &std::path::Path) -> Result<(), String> {
    let machine = std::env::consts::ARCH;
    let target = match machine {
        "x86_64" => "-D__TARGET_ARCH_x86",
        "aarch64" => "-D__TARGET_ARCH_arm64",
        other => return Err(format!("meter does not know {other}")),
    };
    must(
        Command::new(crate::bpf::CLANG)
            .args(["-g", "-O2", "-mcpu=v3", "-target", "bpf", target])
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .arg("-c")
            .arg(workspace::root().join("crates/express/examples/meter.bpf.c"))
            .arg("-o")
            .arg(object),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_are_charged_to_whose_frames_they_take_in() {
        let reading = |lines: &[&str]| Reading {
            rows: lines.iter().filter_map(|line| row(line)).collect(),
        };
        let before = reading(&["7 100 10 20 1 1"]);
        let after = reading(&["7 1100 510 220 6 3", "9 300 50 200 1 2", "0 40 0 30 0 1"]);
        let since = after.since(&before);
        // Process 7 ran 5000 ns, of which 1000 were softirqs; the client's frames took 430 ns.
        assert_eq!(since.client_ns(7, 5000), 4000 + 430);
        assert_eq!(since.server_ns(9, 800), 500 + 550);
        assert_eq!(row("7 1 x"), None);
    }
}

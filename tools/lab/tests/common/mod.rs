//! A scripted study: the contender writes the cost of a request into a file, the driver reads it
//! and prints figures. Costs are counted without a clock, so results are the same everywhere.

#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A folder that is gone at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lab-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The only folder of results in here.
    pub(crate) fn results(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.0.join("results")).unwrap();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    /// What is in a file of the results.
    pub(crate) fn result(&self, name: &str) -> String {
        std::fs::read_to_string(self.results().join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The goals of the study below, and its plot.
const GOALS: &str = r#"[[goal]]
metric = "server_cpu_us"
of = { contender = "first" }
against = { contender = "second" }
ratio_at_most = 0.5

[[goal]]
metric = "server_cpu_us"
of = { contender = "first" }
against = { contender = "second" }
at = { size = ["1"] }
ratio_at_most = 0.98

[[goal]]
metric = "latency_p50_us"
of = { contender = "first" }
against = { contender = "second" }
at_most = 9000

[[plot]]
kind = "bars"
title = "Requests per second"
metric = "requests_per_s"
"#;

/// Two contenders, `first` and `second`; a request costs `first` 10000 units and `second` so many.
/// Each round adds noise of up to 0.5 %, drawn from the round's number, another for each of them.
pub(crate) fn study(second: u32, rounds: u32, more: &str) -> String {
    format!(
        r#"name = "scripted"
title = "Scripted"
source = "nobody"
about = "Costs that are counted."

[run]
repetitions = {rounds}
seconds = 0.1
warmup_s = 0.0
seed = 3

[placement]
server = "all"
driver = "all"

[drive]
program = "command"
command = ["sh", "-c", '''
while [ ! -s "$1/cost" ]; do sleep 0.01; done
read cost < "$1/cost"
{more}
noise=$(( ($2 * 7919 + cost * 31) % 101 - 50 ))
cost=$(( cost * (10000 + noise) / 10000 ))
echo requests_per_s $(( 1000000000 / cost ))
echo server_cpu_us "$cost"
echo latency_p50_us "$cost"
echo errors 0
echo foreign_share 0
echo steal_share 0
''', "driver", "{{folder}}", "{{round}}", "{{contender}}"]
arguments = []

[program.script]
command = ["sh", "-c", 'echo "$1" > cost; exec sleep 1000', "server", "{{cost}}"]
ready = "start"
version = ["echo", "script 1.0"]

[[contender]]
name = "first"
program = "script"
set = {{ cost = "10000" }}

[[contender]]
name = "second"
program = "script"
set = {{ cost = "{second}" }}

[[factor]]
name = "size"
title = "size"
names = ["1"]

[[claim]]
text = "the first is faster"
metric = "requests_per_s"
of = {{ contender = "first" }}
against = {{ contender = "second" }}
expect = "above"

{GOALS}"#
    )
}

/// Runs the lab to its end.
pub(crate) fn lab(folder: &Folder, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs a study of this text.
pub(crate) fn run(folder: &Folder, text: &str, arguments: &[&str]) -> Output {
    let path = folder.write("study.toml", text);
    let path = path.display().to_string();
    lab(folder, &[&["run", &path, "-q"], arguments].concat())
}

pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Child {
    command(folder, arguments).spawn().unwrap()
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnpike-lab"));
    command
        .args(arguments)
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for a condition, however slow the machine.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lines of runs that are whole.
pub(crate) fn runs(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.matches('\n').count().saturating_sub(1)
}

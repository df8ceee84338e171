//! What a worker runs at once: a suite, or one test of it in a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Pass, SANDBOX, Suite, pool};
use crate::workspace;

/// The longest that one test may take: ten times what the slowest takes on a busy machine.
const TEST_TIME_MAX: Duration = Duration::from_secs(300);

/// The longest that a suite may take as a whole.
const SUITE_TIME_MAX: Duration = Duration::from_secs(900);

/// Between two looks at whether a process has ended.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// The same language and time for every test, whatever those of the caller are.
const SURROUNDINGS: &[(&str, &str)] = &[("TZ", "UTC"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")];

/// A suite, or a test of it.
pub(super) struct Job<'a> {
    suite: &'a Suite,
    /// The test's whole name, or `None` for all of the suite.
    test: Option<String>,
}

/// A job that has ended.
pub(super) struct Ended {
    pub(super) group: String,
    /// The suite, and the whole name of the test.
    pub(super) name: String,
    /// How the process ended, or why it was ended.
    pub(super) status: Result<ExitStatus, String>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) time: Duration,
}

impl<'a> Job<'a> {
    /// All of a suite.
    pub(super) fn of(suite: &'a Suite) -> Job<'a> {
        Job { suite, test: None }
    }

    /// Runs it to its end. `place` is a path for its output, which no other job has.
    ///
    /// # Errors
    /// It does not start, or its output cannot be kept.
    pub(super) fn run(self, pass: &Pass, place: &str) -> Result<Ended, String> {
        let place = |kind: &str| workspace::target().join(format!("{place}.{kind}"));
        let (stdout, stderr) = (place("stdout"), place("stderr"));
        let start = Instant::now();
        let mut child = self
            .command(pass)
            .current_dir(&self.suite.folder)
            .env("CARGO_MANIFEST_DIR", &self.suite.folder)
            .stdin(Stdio::null())
            // Files, since a process that a test leaves behind would keep a pipe open.
            .stdout(created(&stdout)?)
            .stderr(created(&stderr)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.suite.executable.display()))?;
        let status = self.awaited(&mut child, start)?;
        Ok(Ended {
            group: self.group(),
            name: format!(
                "{} {}",
                self.suite.name,
                self.test.as_deref().unwrap_or_default()
            ),
            status,
            stdout: taken(&stdout)?,
            stderr: taken(&stderr)?,
            time: start.elapsed(),
        })
    }

    fn command(&self, pass: &Pass) -> Command {
        // Whoever started this process may ignore signals, as nohup does.
        let program = ["env", "--default-signal"].map(Path::new);
        let mut command = match pass.user {
            None => pass.home.command(program[0]),
            Some(user) => user.command(program[0]),
        };
        command.arg(program[1]).arg(&self.suite.executable);
        command.envs(SURROUNDINGS.iter().copied());
        if pass.is_sandboxed {
            command.env(SANDBOX, "on");
        }
        command.env(pool::MARK, std::process::id().to_string());
        if let Some(test) = &self.test {
            command.args(["--exact", test]);
        }
        command
    }

    /// Waits for the end of a process, which may take its time, but not more.
    fn awaited(
        &self,
        child: &mut Child,
        start: Instant,
    ) -> Result<Result<ExitStatus, String>, String> {
        let time_max = match self.test {
            Some(_) => TEST_TIME_MAX,
            None => SUITE_TIME_MAX,
        };
        let failed = |error: std::io::Error| format!("{}: {error}", self.group());
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(Ok(status));
            }
            if start.elapsed() > time_max {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                let seconds = time_max.as_secs();
                return Ok(Err(format!("it was ended after {seconds} s")));
            }
            thread::sleep(LOOK_AFTER);
        }
    }

    /// The suite; for a test also the first part of its name, which is its file or folder.
    pub(super) fn group(&self) -> String {
        let name = &self.suite.name;
        match &self.test {
            Some(test) => format!("{name} {}", test.split("::").next().unwrap_or(test)),
            None => name.clone(),
        }
    }
}

/// A job for each test of a suite, without those that only run when asked for.
///
/// # Errors
/// The suite does not list its tests.
pub(super) fn for_each_test(suite: &Suite) -> Result<Vec<Job<'_>>, String> {
    let ignored = listed(suite, &["--ignored"])?;
    let mut tests = listed(suite, &[])?;
    tests.retain(|test| !ignored.contains(test));
    let job = |test| Job {
        suite,
        test: Some(test),
    };
    Ok(tests.into_iter().map(job).collect())
}

fn listed(suite: &Suite, more: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(&suite.executable)
        .args(["--list", "--format", "terse"])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", suite.executable.display()))?;
    if !output.status.success() {
        return Err(format!("{} does not list its tests", suite.name));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

fn created(path: &PathBuf) -> Result<File, String> {
    File::create(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file and removes it.
fn taken(path: &PathBuf) -> Result<String, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let _ = fs::remove_file(path); // it is below target/, and written anew by the next run
    Ok(String::from_utf8_lossy(&text).into_owned())
}

//! Runs the server's program for as long as a server may take, and no longer: a climb that waits
//! without end cannot undo a step.

use std::io::{self, PipeReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long the program may take until a configuration is tested or in force, unless the caller
/// says otherwise.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// What a program says is kept no further: many lines about a configuration.
const SAID_BYTES_MAX: u64 = 1 << 20;
/// How often is looked whether the program has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the server's program; gives what it says.
///
/// # Errors
/// Why it failed, in words; a program that takes longer than `patience` is ended.
pub(super) fn output(
    program: &Path,
    words: &[String],
    patience: Duration,
) -> Result<String, String> {
    let name = program.display();
    let of_system = |error: io::Error| format!("{name}: {error}");
    let end = Instant::now() + patience;
    let (mut child, said) = start(program, words).map_err(of_system)?;
    let Some(status) = wait(&mut child, end).map_err(of_system)? else {
        let (word, seconds) = (words.first().map_or("", String::as_str), patience.as_secs());
        return Err(format!("{name} {word} was ended after {seconds} s"));
    };
    // A child of the program may hold the pipe for longer: what was said until then is not known.
    let said = said.recv_timeout(end.saturating_duration_since(Instant::now()));
    let said = said.unwrap_or_default();
    if status.success() {
        Ok(said)
    } else {
        Err(refusal(&said).to_owned())
    }
}

/// Starts the program; what it says comes once all of it is read.
fn start(program: &Path, words: &[String]) -> io::Result<(Child, Receiver<String>)> {
    let (pipe, output) = io::pipe()?;
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let (sender, said) = channel();
    // The thread is not waited for: it ends with the last process that holds the pipe.
    std::thread::spawn(move || sender.send(read(pipe)));
    Ok((child, said))
}

/// Reads all, so that the program never waits for room in the pipe.
fn read(mut pipe: PipeReader) -> String {
    let mut bytes = Vec::new();
    let kept = pipe.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut bytes);
    let _ = kept.and_then(|_| io::copy(&mut pipe, &mut io::sink()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until the program ends; `None`: it did not, and was killed.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// What is wrong; a warning may come before it.
fn refusal(said: &str) -> &str {
    let error = said.lines().find(|line| line.contains("[emerg]"));
    error.or(said.lines().next()).unwrap_or("it failed")
}

#[cfg(test)]
mod tests;

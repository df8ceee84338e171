//! The watchdog: a process that waits until the climb has ended, and removes what it has left if it
//! died. It holds the other end of a pipe, which the kernel closes with the climb, however it ends.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// What the climb says when it has cleaned up by itself.
const DONE: &[u8] = b"done";

/// The climb's end.
pub(crate) struct Guard {
    child: Child,
    pipe: ChildStdin,
}

/// Starts the watchdog.
///
/// # Errors
/// In words.
pub(crate) fn start(folder: &Path) -> Result<Guard, String> {
    let wrong = |error: std::io::Error| format!("the watchdog does not start: {error}");
    let program = std::env::current_exe().map_err(wrong)?;
    let process = std::process::id().to_string();
    let mut command = Command::new(program);
    // A group of its own, so that Ctrl-C reaches the climb alone.
    command
        .args(["tune", "guard", &process])
        .arg(folder)
        .process_group(0);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(wrong)?;
    let pipe = child.stdin.take().ok_or("the watchdog has no pipe")?;
    Ok(Guard { child, pipe })
}

impl Guard {
    /// Tells the watchdog that nothing is left to do.
    pub(crate) fn release(mut self) {
        let _ = self.pipe.write_all(DONE);
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// The watchdog itself: `tune guard PROCESS FOLDER`.
pub(crate) fn run(process: u32, folder: &PathBuf) -> ExitCode {
    let mut said = Vec::new();
    let _ = std::io::stdin()
        .take(DONE.len() as u64)
        .read_to_end(&mut said);
    if said != DONE {
        clean(process, folder);
    }
    ExitCode::SUCCESS
}

/// Removes the namespaces and the folder of a climb that is gone. Its servers died with it.
fn clean(process: u32, folder: &PathBuf) {
    let begin = format!("turnpike-lab-{process}-");
    for entry in std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&begin) {
            let _ = Command::new("ip").args(["netns", "delete", &name]).status();
        }
    }
    let is_ours = folder.ends_with(format!("turnpike-climb-{process}"));
    if is_ours {
        let _ = std::fs::remove_dir_all(folder);
    }
}

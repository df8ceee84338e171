//! The checks beyond single responses: whether the serving process is alive, its log, and its
//! memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use turnpike_testkit::Server;

/// Texts that must not be in a log.
const ALARMS: &[&str] = &["[alert]", "[emerg]", "panicked"];

/// The limit on the growth of the serving process's memory, in KiB. Buffers, caches of ten
/// megabytes and the allocator's reserves stay far below it.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// A server that is watched.
pub(super) struct Witness {
    master: u32,
    serving: Vec<u32>,
    memory_kib: u64,
    logs: Vec<Mutex<Tail>>,
}

/// A log and how far it was read.
struct Tail {
    path: PathBuf,
    read_bytes: u64,
}

impl Witness {
    /// Begins to watch.
    ///
    /// # Errors
    /// There is no serving process.
    pub(super) fn of(server: &Server) -> Result<Witness, String> {
        let serving = server.serving_pids();
        if serving.is_empty() {
            return Err(format!("no serving process\n{}", server.output()));
        }
        let tail = |name: &str| {
            Mutex::new(Tail {
                path: server.folder().join(name),
                read_bytes: 0,
            })
        };
        Ok(Witness {
            master: server.pid(),
            memory_kib: memory_kib(&serving),
            serving,
            logs: vec![tail("error.log"), tail("output.log")],
        })
    }

    /// Looks after a case. With several cases at once it may be another one's doing.
    ///
    /// # Errors
    /// The serving process is another one, or a log has a line that may not be there.
    pub(super) fn look(&self) -> Result<(), String> {
        for log in &self.logs {
            let mut tail = log.lock().unwrap_or_else(PoisonError::into_inner);
            let text = tail
                .more()
                .map_err(|error| format!("{}: {error}", tail.path.display()))?;
            let alarm = |line: &&str| ALARMS.iter().any(|word| line.contains(word));
            if let Some(line) = text.lines().find(alarm) {
                return Err(format!("the log has (perhaps for an earlier case): {line}"));
            }
        }
        if turnpike_testkit::process::children(self.master) == self.serving {
            Ok(())
        } else {
            Err("the serving process has ended (perhaps by a case before)".to_owned())
        }
    }

    /// Looks at the end of a run.
    ///
    /// # Errors
    /// As [`Witness::look`], or too much memory is held.
    pub(super) fn end(&self) -> Result<(), String> {
        self.look()?;
        let now_kib = memory_kib(&self.serving);
        let grown_kib = now_kib.saturating_sub(self.memory_kib);
        println!(
            "fuzz-live: memory {} KiB, {now_kib} KiB at the end",
            self.memory_kib
        );
        if grown_kib <= GROWTH_KIB_MAX {
            Ok(())
        } else {
            Err(format!("the serving process grew by {grown_kib} KiB"))
        }
    }
}

impl Tail {
    /// The lines that were added.
    fn more(&mut self) -> std::io::Result<String> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // Half a line is read again when it is whole.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        bytes.truncate(whole);
        self.read_bytes += whole as u64;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The resident memory of processes together.
fn memory_kib(pids: &[u32]) -> u64 {
    let one = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    pids.iter().map(one).sum()
}

//! What a server's error logs complain of, as far as it limits connections.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde::{Deserialize, Serialize};

/// Complaints that were counted in the ends of the error logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LogSymptoms {
    /// `accept4() failed (24: Too many open files)` and its like.
    pub(crate) too_many_open_files: u64,
    /// `1024 worker_connections are not enough`.
    pub(crate) worker_connections: u64,
    /// `No space left on device`.
    pub(crate) no_space: u64,
    /// Connections to upstream servers that failed since no local port was free.
    pub(crate) no_ports: u64,
}

/// How much of the end of each log is read.
const TAIL_BYTES: u64 = 1 << 20;

/// Counts the complaints of these logs; a log that cannot be read has none.
pub(super) fn read(paths: &[String]) -> LogSymptoms {
    let mut symptoms = LogSymptoms::default();
    for path in paths {
        let text = tail(path).unwrap_or_default();
        let count = |words: &str| text.lines().filter(|line| line.contains(words)).count() as u64;
        symptoms.too_many_open_files += count("Too many open files");
        symptoms.worker_connections += count("worker_connections are not enough");
        symptoms.no_space += count("No space left on device");
        symptoms.no_ports += count("Cannot assign requested address");
    }
    symptoms
}

fn tail(path: &str) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(String::new());
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Memory.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The machine's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub total_bytes: u64,
    /// What programs could still have without swapping.
    pub available_bytes: u64,
}

impl Host {
    /// The machine's memory; 0 where the kernel does not tell.
    pub fn memory(&self) -> Memory {
        let text = self.text("proc/meminfo");
        Memory {
            total_bytes: kibibytes(&text, "MemTotal:") * 1024,
            available_bytes: kibibytes(&text, "MemAvailable:") * 1024,
        }
    }
}

/// The number behind a name that begins a line, as in `MemTotal:  16 kB`; 0 where there is none.
pub(crate) fn kibibytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

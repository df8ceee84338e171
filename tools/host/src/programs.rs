//! Programs that run, what they may use, and the disks that they write to.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::host::{Host, list};

/// A running process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    pub process: u32,
    pub name: String,
    pub threads: usize,
    /// The limit of open files in force.
    pub open_files_max: Option<u64>,
    /// Open files; `None` where we may not look.
    pub open_files: Option<u64>,
    /// The CPUs that its first thread may run on.
    pub cpus: Vec<usize>,
}

/// The room on the disk of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    pub path: String,
    /// Bytes that an ordinary user may still write.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Host {
    /// The running processes whose name is one of these.
    pub fn programs(&self, names: &[&str]) -> Vec<Program> {
        let processes = self.names("proc").into_iter();
        let processes = processes.filter_map(|name| name.parse::<u32>().ok());
        let mut programs: Vec<Program> = processes
            .filter_map(|process| self.program(process, names))
            .collect();
        programs.sort_by_key(|program| program.process);
        programs
    }

    fn program(&self, process: u32, names: &[&str]) -> Option<Program> {
        let name = self.line(format!("proc/{process}/comm"));
        if !names.contains(&name.as_str()) {
            return None;
        }
        let limits = self.text(format!("proc/{process}/limits"));
        let limit = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let limit = limit.and_then(|line| line.split_whitespace().next());
        let status = self.text(format!("proc/{process}/status"));
        let cpus = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let files = std::fs::read_dir(self.path(format!("proc/{process}/fd")));
        Some(Program {
            process,
            name,
            threads: self.threads(process).len(),
            open_files_max: limit.and_then(|word| word.parse().ok()),
            open_files: files.ok().map(|entries| entries.count() as u64),
            cpus: cpus.map(list).unwrap_or_default(),
        })
    }

    /// The room on the disk of a file, or of the nearest folder above it that exists.
    pub fn disk(&self, file: &Path) -> Option<Disk> {
        let below = file.strip_prefix("/").unwrap_or(file);
        let path = self.path(below);
        let found = path.ancestors().find(|path| path.exists())?;
        let room = nix::sys::statvfs::statvfs(found).ok()?;
        let unit = room.fragment_size();
        Some(Disk {
            path: file.display().to_string(),
            free_bytes: room.blocks_available() * unit,
            total_bytes: room.blocks() * unit,
        })
    }
}

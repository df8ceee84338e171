//! What a configuration needs of the process that serves it: sockets, log files, folders, rights.
//! The master finds it out and opens it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use turnpike_lane::gate::{AcceptMode, ListenAddress, ListenOptions};
use turnpike_plan::environment::{Capability, Folder};

/// A socket to open, or one for each lane.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where.
    pub address: ListenAddress,
    /// The socket options; whether there is a socket for each lane is said by `mode`.
    pub options: ListenOptions,
    /// How lanes share it.
    pub mode: AcceptMode,
}

/// What is to be opened for a configuration before it can be served.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// The sockets, each address once, in an order that depends on the configuration alone:
    /// a bundle's sockets name their listen by its place here.
    pub listens: Vec<Listen>,
    /// The log files beside the main context's error logs, with their full paths.
    pub log_files: Vec<PathBuf>,
    /// The log files that have secrets in them.
    pub secret_log_files: Vec<PathBuf>,
    /// Folders that the serving process writes to, those outside others first.
    pub folders: BTreeSet<Folder>,
    /// Files that the serving process replaces while it runs.
    pub replaced_files: BTreeSet<PathBuf>,
    /// Rights of root's that the serving process keeps.
    pub capabilities: BTreeSet<Capability>,
    /// The express lane, where it is wanted.
    pub express: Option<turnpike_express::ProgramSettings>,
    /// The bytes that zones can grow to, by their names and the directives that make them.
    pub zone_bytes: BTreeMap<(String, &'static str), u64>,
    /// What is worth a warning, with its place.
    pub warnings: Vec<String>,
}

/// What a serving process is given at its start and keeps until its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Folders that it writes to.
    pub folders: BTreeSet<PathBuf>,
    /// Rights of root's that it keeps.
    pub capabilities: BTreeSet<Capability>,
}

impl Needs {
    /// What a serving process must be given at its start.
    pub fn rights(&self) -> Rights {
        let folders = self.folders.iter();
        Rights {
            folders: folders.map(|folder| folder.path.clone()).collect(),
            capabilities: self.capabilities.clone(),
        }
    }
}

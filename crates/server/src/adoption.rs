//! How a serving process whose master is gone comes to have another one.
//!
//! The master opens a unix socket beside the pid file that only its own user and root may connect
//! to, and gives it to the serving process. Nobody accepts there while the master lives. When it is
//! gone, the serving process goes on and accepts: whoever starts the server again connects, asks
//! for what there is, and is the master from then on. What is said here is understood between
//! different versions of this program, unlike what goes over the channel.
//!
//! ```text
//!  new master                              serving process without a master
//!    ── "adopt express" ────────────────────►
//!    ◄─ Facts, and the descriptors: channel, this socket, board, listening sockets, the express
//!       lane's program ──
//! ```
//!
//! A serving process of an older version does not know this word and closes; it is asked again with
//! `adopt`, and without that word the last of the descriptors are left out.
//!
//! `quit` and `stop` are obeyed and answered with `ok`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::channel::MasterCounts;
use crate::needs::Rights;
use crate::sandbox::Sandbox;
use crate::settings::ProcessSettings;

/// What the serving process is asked for. Longest first: it bounds what is read.
pub(crate) const ADOPT_EXPRESS: &str = "adopt express";
pub(crate) const ADOPT: &str = "adopt";
pub(crate) const QUIT: &str = "quit";
pub(crate) const STOP: &str = "stop";
/// That it was done.
pub(crate) const OK: &str = "ok\n";

/// Connections that wait there: one start, and whoever tries at the same time.
pub(crate) const BACKLOG: i32 = 8;
/// Most bytes of [`Facts`]: as many listening sockets as a parcel can carry.
pub(crate) const FACTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What the file is called while another master has its name, as with the pid file.
pub(crate) const OLD_EXTENSION: &str = ".oldbin";
/// The form of [`Facts`].
const FORM: u64 = 1;

/// What a master must know of a serving process to go on with it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    /// The prefix of its configuration.
    pub(crate) prefix: PathBuf,
    /// The number of the configuration that it serves.
    pub(crate) generation: u64,
    /// Which file it was started from: see [`program`].
    pub(crate) program: String,
    /// What it cannot change any more: see [`unchangeable`].
    pub(crate) unchangeable: String,
    /// What its masters have counted.
    pub(crate) counts: MasterCounts,
    /// The number of each listening socket, in their order.
    pub(crate) gates: Vec<u64>,
    /// Whether the steering program's board comes before them.
    pub(crate) has_board: bool,
    /// What the descriptors behind them are, of the express lane's program; empty: there is none.
    pub(crate) express: String,
    /// What commands have changed.
    pub(crate) changes: String,
}

impl Facts {
    /// As they are sent.
    pub(crate) fn text(&self) -> String {
        let MasterCounts {
            reloads,
            reloads_failed,
            restarts,
            cores,
        } = self.counts;
        json!({
            "form": FORM,
            "prefix": self.prefix.to_string_lossy(),
            "generation": self.generation,
            "program": self.program,
            "unchangeable": self.unchangeable,
            "counts": [reloads, reloads_failed, restarts, cores],
            "gates": self.gates,
            "has_board": self.has_board,
            "express": self.express,
            "changes": self.changes,
        })
        .to_string()
    }

    /// As they were received; `None` when they are of another form.
    pub(crate) fn parse(text: &[u8]) -> Option<Facts> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let word = |name: &str| value[name].as_str().map(str::to_owned);
        let count = |index: usize| value["counts"][index].as_u64();
        let gates = value["gates"].as_array()?.iter().map(Value::as_u64);
        (value["form"] == FORM).then_some(())?;
        Some(Facts {
            prefix: PathBuf::from(word("prefix")?),
            generation: value["generation"].as_u64()?,
            program: word("program")?,
            unchangeable: word("unchangeable")?,
            counts: MasterCounts {
                reloads: count(0)?,
                reloads_failed: count(1)?,
                restarts: count(2)?,
                cores: count(3)?,
            },
            gates: gates.collect::<Option<Vec<u64>>>()?,
            has_board: value["has_board"].as_bool()?,
            // An older version does not say these.
            express: word("express").unwrap_or_default(),
            changes: word("changes").unwrap_or_default(),
        })
    }

    /// Whether they are of a server with this prefix.
    pub(crate) fn is_of(&self, prefix: &Path) -> bool {
        self.prefix.to_string_lossy() == prefix.to_string_lossy()
    }
}

/// The file that this process runs, told from every other one: what goes over the channel is
/// understood by the same program only.
pub(crate) fn program() -> String {
    match fs::metadata("/proc/self/exe") {
        Ok(file) => format!(
            "{}:{}:{}:{}.{}",
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime(),
            file.mtime_nsec()
        ),
        Err(_) => String::new(),
    }
}

/// What a serving process is started with and keeps until its end. Two that differ need two
/// processes.
pub(crate) fn unchangeable(
    settings: &ProcessSettings,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    rights: &Rights,
) -> String {
    let mut settings = settings.clone();
    (settings.lanes, settings.affinity) = (0, None);
    let mut environment: Vec<_> = environment.into_iter().collect();
    environment.sort();
    // A sandbox does not get another folder.
    let folders: Vec<&PathBuf> = match settings.sandbox {
        Sandbox::Off => Vec::new(),
        Sandbox::On | Sandbox::Required => rights.folders.iter().collect(),
    };
    let capabilities = &rights.capabilities;
    format!("{settings:?} {environment:?} {folders:?} {capabilities:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_as_sent_and_cut_ones_are_refused() {
        let facts = Facts {
            prefix: PathBuf::from("/srv/"),
            generation: 7,
            program: "1:2".to_owned(),
            unchangeable: "x".to_owned(),
            counts: MasterCounts {
                reloads: 1,
                reloads_failed: 2,
                restarts: 3,
                cores: 4,
            },
            gates: vec![3, 1],
            has_board: true,
            express: "1 a b".to_owned(),
            changes: r#"{"upstream:u":{}}"#.to_owned(),
        };
        let text = facts.text();
        assert_eq!(Facts::parse(text.as_bytes()), Some(facts));
        for length in 0..text.len() {
            assert_eq!(Facts::parse(&text.as_bytes()[..length]), None);
        }
        let other = text.replace("\"form\":1", "\"form\":2");
        assert_eq!(Facts::parse(other.as_bytes()), None);
    }
}

//! Log files whose paths are made from the request: opened by the lane, for a while kept open.
//!
//! A client can choose such a path in part, so a log is only opened where the location's root
//! exists, as in nginx: the operator decides which sites have logs by making their folders.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use turnpike_conf::{Complaint, Word, value};
use turnpike_http::Quoted;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::file::{self, Links};

use super::logged::Logged;

/// Mode of a log file that is made anew, as nginx's.
const FILE_MODE: u32 = 0o644;

/// Most files that `max=` may ask for: each is a descriptor on each lane.
const FILES_MAX: usize = 65_536;

/// `open_log_file_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheRules {
    files_max: usize,
    inactive_ms: u64,
    valid_ms: u64,
    uses_min: u32,
}

/// The files that a lane keeps open.
#[derive(Default)]
pub(super) struct FileCache {
    entries: HashMap<Box<[u8]>, Entry>,
    /// Uses of all files so far. Many fall into one millisecond, so the clock gives no order.
    uses: u64,
}

/// Why a line was not written.
#[derive(Debug)]
pub(super) enum Lost {
    /// The log has it.
    Told,
    /// The error log does not have it yet: a full disk, or a FIFO whose reader is slow.
    Write(io::Error),
}

struct Entry {
    file: Option<OwnedFd>,
    /// Device and inode of the open file.
    identity: (u64, u64),
    uses: u32,
    /// Which of all uses was its last.
    last_use: u64,
    used_ms: u64,
    checked_ms: u64,
    inactive_ms: u64,
}

impl CacheRules {
    /// Reads the directive's arguments; `None` is `off`.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn read(words: &[Word]) -> Result<Option<CacheRules>, Complaint> {
        let mut rules = CacheRules {
            files_max: 0,
            inactive_ms: 10_000,
            valid_ms: 60_000,
            uses_min: 1,
        };
        let mut is_off = false;
        for word in words {
            let text = word.text.as_str();
            let known = match text.split_once('=') {
                None => {
                    is_off |= text == "off";
                    (text == "off").then_some(())
                }
                Some(("max", count)) => number(count)
                    .map(|count| rules.files_max = usize::try_from(count).unwrap_or(FILES_MAX)),
                Some(("inactive", time)) => {
                    value::seconds(time).map(|seconds| rules.inactive_ms = seconds * 1000)
                }
                Some(("valid", time)) => {
                    value::seconds(time).map(|seconds| rules.valid_ms = seconds * 1000)
                }
                Some(("min_uses", count)) => number(count).map(|count| rules.uses_min = count),
                Some(_) => None,
            };
            known.ok_or_else(|| format!("invalid \"open_log_file_cache\" parameter \"{text}\""))?;
        }
        if is_off {
            return Ok(None);
        }
        if rules.files_max == 0 {
            return Err("\"open_log_file_cache\" must have \"max\" parameter".into());
        }
        rules.files_max = rules.files_max.min(FILES_MAX);
        Ok(Some(rules))
    }
}

fn number(text: &str) -> Option<u32> {
    u32::try_from(value::number(text)?).ok()
}

/// Writes a line to the file at `path`, unless the location's root does not exist.
///
/// # Errors
/// What kept the line from being written.
pub(super) fn append<S: Logged>(
    subject: &S,
    cache: &mut FileCache,
    rules: Option<&CacheRules>,
    path: &[u8],
    line: &[u8],
) -> Result<(), Lost> {
    subject.test_root().map_err(|_| Lost::Told)?;
    let now_ms = subject.now_ms();
    match rules {
        None => write(&open(subject, path)?, line),
        Some(rules) => cache.append(subject, rules, path, line, now_ms),
    }
}

fn open<S: Logged>(subject: &S, path: &[u8]) -> Result<OwnedFd, Lost> {
    file::open_append(path, FILE_MODE).map_err(|error| {
        let (path, errno) = (Quoted(path), Errno(&error));
        subject.log(
            Level::Crit,
            format_args!("open() \"{path}\" failed {errno}"),
        );
        Lost::Told
    })
}

fn write(file: &OwnedFd, line: &[u8]) -> Result<(), Lost> {
    match file::write(file.as_fd(), line) {
        Ok(count) if count == line.len() => Ok(()),
        Ok(_) => Err(Lost::Write(io::ErrorKind::WriteZero.into())),
        Err(error) => Err(Lost::Write(error)),
    }
}

impl FileCache {
    /// Closes what nobody has used for a while.
    pub(super) fn expire(&mut self, now_ms: u64) {
        if self.entries.is_empty() {
            return;
        }
        self.entries
            .retain(|_, entry| now_ms.saturating_sub(entry.used_ms) < entry.inactive_ms);
    }

    fn append<S: Logged>(
        &mut self,
        subject: &S,
        rules: &CacheRules,
        path: &[u8],
        line: &[u8],
        now_ms: u64,
    ) -> Result<(), Lost> {
        if let Some(file) = self.used(path, rules, now_ms) {
            return write(file, line);
        }
        // What cannot be opened takes no other's place.
        let file = open(subject, path)?;
        let written = write(&file, line);
        self.keep(path, file, rules, now_ms);
        written
    }

    /// Counts a use of the file at `path`, and gives it if it is open.
    pub(super) fn used(
        &mut self,
        path: &[u8],
        rules: &CacheRules,
        now_ms: u64,
    ) -> Option<&OwnedFd> {
        self.uses += 1;
        let entry = self.entries.get_mut(path)?;
        entry.last_use = self.uses;
        entry.used(path, rules, now_ms)
    }

    /// Keeps a file that was opened for its use now, if it was used often enough.
    pub(super) fn keep(&mut self, path: &[u8], file: OwnedFd, rules: &CacheRules, now_ms: u64) {
        if !self.entries.contains_key(path) {
            self.make_room(rules.files_max);
        }
        let entry = self.entries.entry(path.into());
        let entry = entry.or_insert_with(|| Entry::new(rules.inactive_ms, self.uses, now_ms));
        if entry.uses >= rules.uses_min {
            let identity = file::metadata(file.as_fd());
            entry.identity = identity.map_or((0, 0), |found| (found.device, found.inode));
            entry.checked_ms = now_ms;
            entry.file = Some(file);
        }
    }

    /// Drops the least recently used where there is no room for one more.
    fn make_room(&mut self, files_max: usize) {
        if self.entries.len() < files_max {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.entries.remove(&path);
        }
    }
}

impl Entry {
    fn new(inactive_ms: u64, last_use: u64, now_ms: u64) -> Entry {
        Entry {
            file: None,
            identity: (0, 0),
            uses: 1,
            last_use,
            used_ms: now_ms,
            checked_ms: now_ms,
            inactive_ms,
        }
    }

    /// Counts a use. Gives the open file, unless its time is over and another one stands
    /// in its place.
    fn used(&mut self, path: &[u8], rules: &CacheRules, now_ms: u64) -> Option<&OwnedFd> {
        self.uses = self.uses.saturating_add(1);
        self.used_ms = now_ms;
        if now_ms.saturating_sub(self.checked_ms) >= rules.valid_ms && self.file.is_some() {
            self.checked_ms = now_ms;
            let same = file::metadata_of(path, Links::Follow)
                .is_ok_and(|found| (found.device, found.inode) == self.identity);
            if !same {
                self.file = None;
            }
        }
        self.file.as_ref()
    }
}

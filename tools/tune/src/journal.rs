//! What was changed, on the disk before it is changed, so that nothing is forgotten by a crash.
//!
//! A journal is a file of lines of JSON that only grows. Each line is synced before the change that
//! it tells of. A line that is cut short is the last one, and its change was not made. What the
//! lines mean for undoing is `steps`'.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use turnpike_conf::{bytes_of, text_of};

/// The writer of a part of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// `apply` or `climb`.
    pub(crate) command: String,
    pub(crate) process: u32,
    /// When the process was started; see `System::started`.
    pub(crate) started: String,
    pub(crate) boot: String,
    /// The network namespace whose settings are meant.
    pub(crate) network: String,
    /// The server that has to read its configuration again once it is put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reload: Option<Reload>,
}

/// A server that takes its configuration up when it is told to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reload {
    pub(crate) pid_file: String,
    /// The server's program: a number in an old pid file may be that of another one.
    pub(crate) program: String,
}

/// What kind of file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Of `/proc` or `/sys`: a start of the machine forgets it.
    Kernel,
    /// On the disk.
    Disk,
    /// A folder on the disk that was made.
    Folder,
}

/// A change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) path: String,
    /// The bytes before, as `turnpike_conf::text_of` writes them; `None`: there was no such file.
    pub(crate) before: Option<String>,
    /// The bytes that are written.
    pub(crate) after: String,
}

impl Entry {
    pub(crate) fn new(kind: Kind, path: &str, before: Option<&[u8]>, after: &str) -> Entry {
        Entry {
            kind,
            path: path.to_owned(),
            before: before.map(text_of),
            after: after.to_owned(),
        }
    }

    pub(crate) fn before_bytes(&self) -> Option<Vec<u8>> {
        self.before.as_deref().map(bytes_of)
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    Begin(Begin),
    Change(Entry),
    /// How the change that was told last reads since.
    Made {
        now: String,
    },
    /// All changes of the part are made.
    End,
    /// The part, counted from 0, is undone.
    Undone {
        part: usize,
    },
}

/// A change with what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) entry: Entry,
    /// How the file read after the change; `None`: the writer died before it knew.
    pub(crate) now: Option<String>,
}

/// A part of the journal: what one command has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) begin: Begin,
    pub(crate) changes: Vec<Made>,
    pub(crate) is_ended: bool,
    pub(crate) is_undone: bool,
}

/// An open journal; only one process has it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Flock<File>,
    pub(crate) parts: Vec<Part>,
}

const NAME: &str = "journal";

impl Journal {
    /// Opens the journal in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// In words; also when another process has it.
    pub(crate) fn open(folder: &Path) -> Result<Journal, String> {
        let wrong = |error: io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let path = folder.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(&path).map_err(wrong)?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(wrong)?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            format!(
                "{}: another turnpike tune is changing this machine",
                path.display()
            )
        })?;
        let parts = read(&path).map_err(wrong)?;
        Ok(Journal { path, file, parts })
    }

    /// What a folder's journal says, without opening it for changes.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn look(folder: &Path) -> io::Result<Vec<Part>> {
        read(&folder.join(NAME))
    }

    /// Begins a part.
    pub(crate) fn begin(&mut self, begin: Begin) -> io::Result<()> {
        self.append(&Line::Begin(begin))
    }

    /// Tells of a change that is about to be made.
    pub(crate) fn change(&mut self, entry: Entry) -> io::Result<()> {
        self.append(&Line::Change(entry))
    }

    /// Tells how the file reads after the change.
    pub(crate) fn made(&mut self, now: &[u8]) -> io::Result<()> {
        self.append(&Line::Made { now: text_of(now) })
    }

    /// Ends the part.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.append(&Line::End)
    }

    /// Tells that a part is undone. Once all are, nothing is left to remember.
    pub(crate) fn undone(&mut self, part: usize) -> io::Result<()> {
        self.append(&Line::Undone { part })?;
        if self.parts.iter().all(|part| part.is_undone) {
            self.file.set_len(0)?;
            self.file.sync_all()?;
            self.parts.clear();
        }
        Ok(())
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        take(&mut self.parts, line.clone());
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn read(path: &Path) -> io::Result<Vec<Part>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let mut parts = Vec::new();
    for line in text.lines() {
        // Only the last line can be cut short, by a crash while it was written.
        if let Ok(line) = serde_json::from_str(line) {
            take(&mut parts, line);
        }
    }
    Ok(parts)
}

/// Takes a line into what is known.
fn take(parts: &mut Vec<Part>, line: Line) {
    match line {
        Line::Begin(begin) => parts.push(Part {
            begin,
            ..Part::default()
        }),
        Line::Change(entry) => {
            if let Some(part) = parts.last_mut() {
                part.changes.push(Made { entry, now: None });
            }
        }
        Line::Made { now } => {
            if let Some(change) = parts.last_mut().and_then(|part| part.changes.last_mut()) {
                change.now = Some(now);
            }
        }
        Line::End => {
            if let Some(part) = parts.last_mut() {
                part.is_ended = true;
            }
        }
        Line::Undone { part } => {
            if let Some(part) = parts.get_mut(part) {
                part.is_undone = true;
            }
        }
    }
}

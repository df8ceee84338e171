//! Keeping a running server at a desired configuration: what is wanted comes in, is applied
//! through the control socket, and is reported with a generation.
//!
//! Servers of groups change by commands, without a reload; anything else is a reload in place. A
//! configuration that the server refuses leaves the one before it in force. The agent knows neither
//! Kubernetes nor any other source of wishes.

mod control;
mod files;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub use control::{Control, ControlError};
pub use files::{Ownership, make_folder, write_file};

/// What a server should do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// The text of the main file.
    pub configuration: String,
    /// The servers of each group that has a file of `state`, by the group's name; groups of
    /// `stream` are written `stream:NAME`. Each is the text of a `server` line.
    pub groups: BTreeMap<String, Vec<String>>,
}

/// How a wish was fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server is as it should be already.
    Unchanged,
    /// The servers of these groups were changed, without a reload.
    Servers(Vec<String>),
    /// The configuration was read again; the server's own generation is now this one.
    Reloaded { generation: u64 },
}

/// Why a wish was not fulfilled. What was in force before is in force still.
#[derive(Debug)]
pub enum ApplyError {
    /// The file, and the system's error.
    File(PathBuf, io::Error),
    /// The server refuses the configuration, in its words.
    Refused(String),
    /// The server does not answer as it should.
    Control(ControlError),
    /// The servers of a group cannot be set, in the server's words. The rest is in force.
    Group(String, String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::File(path, error) => write!(formatter, "{}: {error}", path.display()),
            ApplyError::Refused(text) => {
                write!(formatter, "the server refuses the configuration: {text}")
            }
            ApplyError::Control(error) => write!(formatter, "{error}"),
            ApplyError::Group(name, text) => write!(formatter, "group {name}: {text}"),
        }
    }
}

impl std::error::Error for ApplyError {}

/// The files of a server under an agent.
#[derive(Clone, Debug)]
pub struct Places {
    /// The main file.
    pub configuration: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// The folder of the files of `state`, one a group.
    pub state: PathBuf,
}

/// An agent of one server.
#[derive(Debug)]
pub struct Agent {
    places: Places,
    applied: Option<Desired>,
    /// The number of wishes that were fulfilled by a change.
    generation: u64,
}

impl Agent {
    /// An agent that knows nothing of its server yet: the first wish sets every group.
    pub fn new(places: Places) -> Agent {
        Agent {
            places,
            applied: None,
            generation: 0,
        }
    }

    /// The number of wishes that were fulfilled by a change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The wish that is in force.
    pub fn applied(&self) -> Option<&Desired> {
        self.applied.as_ref()
    }

    /// Writes the main file and the files of state for a server that is not running yet.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn prepare(&mut self, desired: &Desired) -> Result<(), ApplyError> {
        for (group, servers) in &desired.groups {
            self.write_state(group, servers)?;
        }
        self.write_configuration(&desired.configuration)?;
        self.applied = Some(desired.clone());
        self.generation += 1;
        Ok(())
    }

    /// Brings a running server to a wish.
    ///
    /// # Errors
    /// Why it is not there; what was in force is kept.
    pub fn apply(&mut self, desired: &Desired) -> Result<Outcome, ApplyError> {
        let before = self.applied.clone();
        if before.as_ref() == Some(desired) {
            return Ok(Outcome::Unchanged);
        }
        let mut control = Control::connect(&self.places.socket).map_err(ApplyError::Control)?;
        let is_same = before
            .as_ref()
            .is_some_and(|before| before.configuration == desired.configuration);
        let generation = if is_same {
            None
        } else {
            Some(self.reload(&mut control, desired)?)
        };
        let changed = self.set_groups(&mut control, before.as_ref(), desired)?;
        self.applied = Some(desired.clone());
        self.generation += 1;
        Ok(match generation {
            Some(generation) => Outcome::Reloaded { generation },
            None => Outcome::Servers(changed),
        })
    }

    /// Has the server read the configuration again. A group that is new finds its servers in its
    /// file, so no request meets an empty group.
    fn reload(&mut self, control: &mut Control, desired: &Desired) -> Result<u64, ApplyError> {
        for (group, servers) in &desired.groups {
            if !self.state_file(group).exists() {
                self.write_state(group, servers)?;
            }
        }
        let file = self.places.configuration.clone();
        let old = std::fs::read(&file).ok();
        self.write_configuration(&desired.configuration)?;
        match control.ask("reload", json!({})) {
            Ok(result) => Ok(result["generation"].as_u64().unwrap_or(0)),
            Err(error) => {
                if let Some(old) = old {
                    // A restart of the server must find what is in force.
                    write_file(&file, &old, Ownership::Own)
                        .map_err(|error| ApplyError::File(file, error))?;
                }
                Err(match error {
                    ControlError::Answer { message, .. } => ApplyError::Refused(message),
                    error => ApplyError::Control(error),
                })
            }
        }
    }

    /// Sets the servers of each group that differs; returns the names.
    fn set_groups(
        &mut self,
        control: &mut Control,
        before: Option<&Desired>,
        desired: &Desired,
    ) -> Result<Vec<String>, ApplyError> {
        let mut changed = Vec::new();
        for (group, servers) in &desired.groups {
            let old = before.and_then(|before| before.groups.get(group));
            if old == Some(servers) {
                continue;
            }
            let arguments = json!({"upstream": group, "servers": servers});
            control
                .ask("upstream.set", arguments)
                .map_err(|error| match error {
                    ControlError::Answer { message, .. } => {
                        ApplyError::Group(group.clone(), message)
                    }
                    error => ApplyError::Control(error),
                })?;
            // What is set is in force, whatever becomes of the others.
            if let Some(applied) = &mut self.applied {
                applied.groups.insert(group.clone(), servers.clone());
            }
            changed.push(group.clone());
        }
        Ok(changed)
    }

    fn write_configuration(&self, text: &str) -> Result<(), ApplyError> {
        let file = &self.places.configuration;
        write_file(file, text.as_bytes(), Ownership::Own)
            .map_err(|error| ApplyError::File(file.clone(), error))
    }

    fn write_state(&self, group: &str, servers: &[String]) -> Result<(), ApplyError> {
        let file = self.state_file(group);
        let lines: String = servers
            .iter()
            .map(|server| format!("server {server};\n"))
            .collect();
        write_file(&file, lines.as_bytes(), Ownership::Server)
            .map_err(|error| ApplyError::File(file, error))
    }

    fn state_file(&self, group: &str) -> PathBuf {
        state_file(&self.places.state, group)
    }
}

/// The file of `state` of a group.
pub fn state_file(folder: &Path, group: &str) -> PathBuf {
    folder.join(format!("{}.conf", group.replace(':', "+")))
}

/// The words of a server's status, for probes and reports.
///
/// # Errors
/// The server does not answer.
pub fn status(socket: &Path) -> Result<Value, ControlError> {
    Control::connect(socket)?.ask("status", json!({}))
}

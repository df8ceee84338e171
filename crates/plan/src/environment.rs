//! The environment of a plan: its inputs from the process, and its requirements.
//!
//! The master builds a plan only to learn its requirements, and opens the files; the serving
//! process receives the open files; tests need neither. So a family states its requirements where
//! it reads its directives, and the process knows no directive of a family.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry};
use turnpike_lane::log::{ErrorLog, LogFile, SpecError};
use turnpike_lane::sys::mapping::SharedWords;

use crate::held::HeldValues;
use crate::product::Product;
use crate::regex::Purpose;

/// Words of the memory that outlives a serving process: the keys of tickets, and behind them room
/// for 8184 sessions. Pages that no session has touched take no memory.
pub const KEPT_WORDS: usize = 1 << 20;

/// Words at the start of that memory for keys of tickets: those of 31 lifetimes.
pub const KEPT_KEY_WORDS: usize = 1024;

/// The place of QUIC's secret in it, among the words that the keys leave unused.
pub const KEPT_QUIC_AT: usize = 2;
/// Words of that secret.
pub const KEPT_QUIC_WORDS: usize = 4;

/// The process in which a plan is built.
pub trait Environment {
    /// The base folder of relative paths of files (`-p`).
    fn prefix(&self) -> &Path;
    /// The place of a file or folder that the configuration does not name, by its path below the
    /// prefix; an installation may have another place for it.
    fn default_place(&self, path: &str) -> PathBuf {
        self.prefix().join(path)
    }
    /// The folder of the main configuration file, the base of relative paths of keys and includes.
    fn conf_folder(&self) -> &Path;
    /// What the patterns of the plan are for. What only makes look-ups faster is left out of a plan
    /// that answers nothing.
    fn purpose(&self) -> Purpose {
        Purpose::Matches
    }
    /// Opens a log file by its absolute path, or finds it if it is open.
    fn log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>>;
    /// The same for a file with secrets, which others cannot read if it is created.
    fn secret_log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>>;
    /// The error log of a level, from the `error_log` directives that apply there.
    fn error_log(&mut self, entries: &[&Entry]) -> Result<ErrorLog, SpecError>;
    /// Reports a warning.
    fn warn(&mut self, warning: ConfError);
    /// The content of a file that the configuration names, by its full path: a key or a
    /// certificate.
    fn file(&mut self, path: &Path) -> io::Result<Arc<[u8]>>;
    /// As [`Environment::file`], but also reads a FIFO that is written while the configuration is
    /// loaded: passwords.
    fn file_or_fifo(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.file(path)
    }
    /// As [`Environment::file`], for a file that the server itself changes: a change of it is no
    /// reason to read the configuration again.
    fn changing_file(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.file(path)
    }
    /// State that all lanes share, and that survives a reload while `key` stays the same.
    fn zone(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync>;

    /// State that the plans of one configuration share, those of `http` and of `stream`. It is made
    /// anew for each configuration.
    fn shared(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Memory of [`KEPT_WORDS`] words that outlives this process: the server's next serving
    /// processes have it too, also those of another binary. `None` where nothing is kept.
    fn kept_words(&mut self) -> Option<Arc<SharedWords>> {
        None
    }

    /// What commands have changed, which outlives this process. `None` while a configuration is
    /// checked: nobody commands it.
    fn held_values(&mut self) -> Option<Arc<HeldValues>> {
        None
    }

    /// Declares that something of the process is wanted that no other family knows, such as the
    /// express lane: the type of `_settings` says what. `None` where it is not there: while a
    /// configuration is checked, and where the process or the kernel has none.
    fn provide(&mut self, _settings: &dyn Any) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Declares a folder that lanes write to. A relative path is below the prefix, but that of a
    /// default folder, which [`Environment::default_place`] has given.
    fn folder(&mut self, _path: &Path, _kind: FolderKind) {}

    /// Declares a file that the serving process replaces while it runs, by its full path. Its
    /// folder must be there, and files can be made in it.
    fn replaced_file(&mut self, _path: &Path) {}

    /// Declares a capability that lanes need.
    fn capability(&mut self, _capability: Capability) {}

    /// Declares a zone whose memory can grow to `bytes`, by the directive that makes it and its
    /// name.
    fn zone_memory(&mut self, _directive: &'static str, _name: &str, _bytes: u64) {}

    /// The server's product name.
    fn product(&self) -> Product {
        Product::default()
    }

    /// Whether lanes can only write to folders that were declared before they started.
    fn is_sandboxed(&self) -> bool {
        false
    }

    /// Declares the folder of files that lanes write, by a name with variables: it is the folder
    /// before the first variable. `directive` is the directive with the name.
    ///
    /// # Errors
    /// In a sandbox, if there is no folder before the first variable.
    fn files(&mut self, directive: &str, name: &str) -> Result<(), Complaint> {
        match folder_before_variables(name) {
            Some(folder) => self.folder(&folder, FolderKind::Foreign),
            None if self.is_sandboxed() => {
                return Err(format!(
                    "\"{directive} {name}\" cannot be written in a sandbox: give the files a \
                     folder whose name has no variables, or say \"sandbox off\""
                )
                .into());
            }
            None => {}
        }
        Ok(())
    }
}

/// A folder that lanes write to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Folder {
    /// The full path.
    pub path: PathBuf,
    pub kind: FolderKind,
}

/// The owner of a folder that lanes write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderKind {
    /// Ours, at its default path: created if possible.
    Default,
    /// Ours, at a configured path: it must exist once the server is up.
    Named,
    /// The operator's, with logs or stored responses whose names the request determines: never
    /// created.
    Foreign,
}

/// A privilege of root that the serving process keeps when it becomes another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// `CAP_NET_RAW`: connections are bound to addresses of other machines (`IP_TRANSPARENT`).
    NetRaw,
}

/// The text before the first variable, up to its last slash; neither everything nor nothing.
fn folder_before_variables(path: &str) -> Option<PathBuf> {
    let fixed = path.split('$').next().unwrap_or_default();
    let (folder, _) = fixed.rsplit_once('/')?;
    let folder = folder.trim_end_matches('/');
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_name_is_its_constant_part() {
        for (path, folder) in [
            ("logs/$host.log", Some("logs")),
            ("logs/a-$host/b.log", Some("logs")),
            ("/var/log/sites/$host/access.log", Some("/var/log/sites")),
            ("/data//", Some("/data")),
            ("/data/html/", Some("/data/html")),
            ("/$host/access.log", None),
            ("$host.log", None),
            ("${host}/access.log", None),
            ("/", None),
        ] {
            let found = folder_before_variables(path);
            assert_eq!(found.as_deref(), folder.map(Path::new), "{path}");
        }
    }
}

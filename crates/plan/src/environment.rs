//! What a plan takes from the process it is built in, and what it asks of it.
//!
//! The master builds a plan only to learn what it needs, and opens that; the serving process is
//! handed what was opened; tests have none of it. So a family names what it needs where it reads
//! its directives, and the process knows no directive of a family.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry};
use turnpike_lane::log::{ErrorLog, LogFile};

use crate::product::Product;

/// What a plan takes from the process it is built in.
pub trait Environment {
    /// The folder that relative paths of files start from (`-p`).
    fn prefix(&self) -> &Path;
    /// The folder of the main configuration file, where relative paths of keys and includes start.
    fn conf_folder(&self) -> &Path;
    /// Opens (or finds again) a log file by its absolute path.
    fn log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>>;
    /// The error log of a level, from the `error_log` directives in force there.
    fn error_log(&mut self, entries: &[&Entry]) -> Result<ErrorLog, String>;
    /// Takes what is worth a warning, and no error.
    fn warn(&mut self, warning: ConfError);
    /// The bytes of a file that the configuration names, by its full path: a key or a certificate.
    fn file(&mut self, path: &Path) -> io::Result<Arc<[u8]>>;
    /// As [`Environment::file`], also from a FIFO that somebody writes while the configuration is
    /// loaded: passwords.
    fn file_or_fifo(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.file(path)
    }
    /// State that all lanes share and that lives on over a reload while `key` stays the same.
    fn zone(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Takes a folder that lanes write to; a relative path starts at the prefix.
    fn folder(&mut self, _path: &Path, _kind: FolderKind) {}

    /// Takes a right that lanes need for what they serve.
    fn capability(&mut self, _capability: Capability) {}

    /// The name that the server goes by.
    fn product(&self) -> Product {
        Product::default()
    }

    /// Whether lanes can write only to folders that were named before they started.
    fn is_sandboxed(&self) -> bool {
        false
    }

    /// Takes the name of files that lanes write, with variables in it: the folder before the first
    /// variable is one that lanes write to. `directive` is the one that names them.
    ///
    /// # Errors
    /// In a sandbox, where no folder stands before the first variable.
    fn files(&mut self, directive: &str, name: &str) -> Result<(), String> {
        match folder_before_variables(name) {
            Some(folder) => self.folder(&folder, FolderKind::Foreign),
            None if self.is_sandboxed() => {
                return Err(format!(
                    "\"{directive} {name}\" cannot be written in a sandbox: give the files a \
                     folder whose name has no variables, or say \"sandbox off\""
                ));
            }
            None => {}
        }
        Ok(())
    }
}

/// A folder that lanes write to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Folder {
    /// The whole path.
    pub path: PathBuf,
    pub kind: FolderKind,
}

/// The owner of a folder that lanes write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderKind {
    /// Ours, at its default place: made where that can be done.
    Default,
    /// Ours, where the configuration says: it must be there once the server is up.
    Named,
    /// The operator's, with logs or stored responses whose names the request decides: never made.
    Foreign,
}

/// A right of root's that the serving process keeps when it becomes another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// `CAP_NET_RAW`: connections are bound to addresses that are not ours (`IP_TRANSPARENT`).
    NetRaw,
}

/// What stands before the first variable, up to its last slash; neither everything nor nothing.
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
    fn the_folder_of_a_name_is_what_no_request_can_change() {
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

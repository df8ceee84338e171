//! What a start does, tried without a trace, for `-t` and `turnpike check`.
//!
//! A server may run with the same configuration, and another may start meanwhile. So nothing is
//! made at a path of the configuration and nothing is removed there: whether a file, a folder or a
//! socket can be made is tried under a name of this process's own beside it. Sockets of the network
//! are bound as `nginx -t` binds them: an address in use is no failure, none is shared
//! (`SO_REUSEPORT`), and none listens, so that no client and no datagram comes to them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use turnpike_lane::gate::{Gate, GateError, GateStep, ListenAddress};
use turnpike_lane::log::{Errno, LogFile};

use super::failure::StartFailure;
use super::{folders, pid_file};
use crate::checked::Checked;
use crate::paths::Paths;

/// Everything that a start with this configuration would fail at, in nginx's words.
pub(crate) fn failures(checked: &Checked) -> Vec<StartFailure> {
    let mut failures = Vec::new();
    failures.extend(pid_file_failure(checked));
    failures.extend(log_failures(checked));
    failures.extend(folders::failures(checked));
    failures.extend(replaced_file_failures(checked));
    failures.extend(working_directory_failure(checked).map(StartFailure::from));
    failures.extend(listen_failures(checked).into_iter().map(StartFailure::from));
    for StartFailure { sentence, advice } in &mut failures {
        for text in [sentence].into_iter().chain(advice) {
            checked.configuration.tree.hide_values(text);
        }
    }
    failures
}

/// Whether a file can be made in the folder of `path`.
///
/// # Errors
/// Those of `open(2)`.
pub(super) fn create_beside(path: &Path) -> io::Result<()> {
    let name = own_name(path)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&name)?;
    fs::remove_file(&name)
}

/// A name beside `path` that is nobody else's.
fn own_name(path: &Path) -> io::Result<PathBuf> {
    // What has no folder is the root: a folder that is there.
    let folder = path
        .parent()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EISDIR))?;
    Ok(folder.join(format!(".turnpike-{}.check", std::process::id())))
}

fn pid_file_failure(checked: &Checked) -> Option<StartFailure> {
    let settings = &checked.configuration.settings;
    // A start goes on without one that is not named.
    let path = settings.pid_file_named.then_some(&settings.pid_file)?;
    let tried = with_log_folder(&checked.configuration.paths, path, pid_file::check);
    tried
        .err()
        .map(|error| StartFailure::of("open()", path, &error))
}

fn log_failures(checked: &Checked) -> Vec<StartFailure> {
    let specs = checked.configuration.settings.error_logs.iter();
    let own = specs.filter_map(|spec| spec.file().map(Path::to_path_buf));
    let others = checked.needs.log_files.iter().cloned();
    let paths: BTreeSet<PathBuf> = own.chain(others).collect();
    let tried = paths.iter().filter_map(|path| {
        let tried = with_log_folder(&checked.configuration.paths, path, log_file);
        tried
            .err()
            .map(|error| StartFailure::of("open()", path, &error))
    });
    tried.collect()
}

/// The files that the serving process could not replace: commands would change nothing then.
pub(super) fn replaced_file_failures(checked: &Checked) -> Vec<StartFailure> {
    let tried = checked.needs.replaced_files.iter().filter_map(|path| {
        let error = create_beside(path).err()?;
        Some(StartFailure::of("open()", path, &error))
    });
    tried.collect()
}

/// Whether the log before the configuration is read can be made.
///
/// # Errors
/// Those of `open(2)`.
pub(super) fn first_log(paths: &Paths, path: &Path) -> io::Result<()> {
    with_log_folder(paths, path, log_file)
}

/// Whether a log can be opened, or made.
fn log_file(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(_) => LogFile::open(path).map(drop),
        Err(_) => create_beside(path),
    }
}

/// Tries a file whose folder the start makes where it is the one for logs under the prefix.
fn with_log_folder(
    paths: &Paths,
    path: &Path,
    try_file: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let folder = paths.log_folder();
    match try_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent() == Some(&folder) => {
            create_beside(&folder)
        }
        tried => tried,
    }
}

/// Makes a folder beside a path, and removes it again.
///
/// # Errors
/// Those of `mkdir(2)`.
pub(super) fn make_folder_beside(path: &Path) -> io::Result<()> {
    let name = own_name(path)?;
    DirBuilder::new().create(&name)?;
    fs::remove_dir(&name)
}

/// The serving process begins there.
fn working_directory_failure(checked: &Checked) -> Option<String> {
    let folder = checked
        .configuration
        .settings
        .process
        .working_directory
        .as_ref()?;
    let found = fs::metadata(folder).and_then(|metadata| {
        if metadata.is_dir() {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ENOTDIR))
        }
    });
    let error = found.err()?;
    let folder = folder.display();
    Some(format!("chdir(\"{folder}\") failed {}", Errno(&error)))
}

fn listen_failures(checked: &Checked) -> Vec<String> {
    let tried = checked.needs.listens.iter().filter_map(|listen| {
        let tried = match &listen.address {
            ListenAddress::Unix(path) => unix_socket(path),
            address => Gate::probe(address, &listen.options),
        };
        let failure = tried.err()?;
        let sentence = failure.sentence(&listen.address);
        Some(format!("{sentence} {}", Errno(&failure.error)))
    });
    tried.collect()
}

/// Whether a unix socket can be made. One that is there is in use.
fn unix_socket(path: &[u8]) -> Result<(), GateError> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(()),
        Err(_) => create_beside(path).map_err(|error| GateError {
            step: GateStep::Bind,
            error,
        }),
    }
}

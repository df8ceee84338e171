//! The edge: reads and writes the files of a machine below a root folder, so that a tree of files
//! stands for a machine in tests. Nothing here decides anything.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use turnpike_host::Host;

use crate::journal::Reload;

/// A file of the distribution is read no further than this.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The mode of files that the distribution's services read.
const MODE: u32 = 0o644;
/// The bits of a mode that chmod(2) sets.
const MODE_BITS: u32 = 0o7777;

/// A machine whose files can be changed.
#[derive(Clone, Debug)]
pub(crate) struct System {
    root: PathBuf,
}

impl System {
    pub(crate) fn under(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// Where a path of the machine is really.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's bytes; `None` where there is no such file.
    pub(crate) fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(path);
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
                return Err(io::Error::other("larger than a file of settings can be"));
            }
            Ok(_) => {}
        }
        std::fs::read(&path).map(Some)
    }

    /// Writes a file of the kernel's, which has to be there.
    pub(crate) fn write_kernel(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        // One write: the kernel takes each as a whole value.
        options
            .write(true)
            .truncate(true)
            .open(self.path(path))?
            .write_all(bytes)
    }

    /// Puts a file on the disk, whole or not at all. One that is there keeps its mode and owner.
    pub(crate) fn write_disk(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let target = self.path(path);
        let folder = target.parent().unwrap_or(Path::new("/"));
        let partial = self.path(&partial(path));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(MODE);
        let mut file = options.open(&partial)?;
        if let Ok(old) = std::fs::metadata(&target) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
            let mode = old.mode() & MODE_BITS;
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, &target)?;
        File::open(folder)?.sync_all()
    }

    /// Removes a file of the disk; one that is not there is no error.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Removes a folder that is empty; one that is not stays.
    pub(crate) fn remove_folder(&self, path: &str) {
        let _ = std::fs::remove_dir(self.path(path));
    }

    /// The kernel's number of this run of the machine.
    pub(crate) fn boot(&self) -> String {
        self.word("/proc/sys/kernel/random/boot_id")
    }

    /// The network namespace of this process, as the kernel names it.
    pub(crate) fn network(&self) -> String {
        let link = std::fs::read_link(self.path("/proc/self/ns/net"));
        link.map(|link| link.display().to_string())
            .unwrap_or_default()
    }

    /// When a process was started, in ticks since the machine was: with the number it names one
    /// process only. Empty where it does not run.
    pub(crate) fn started(&self, process: u32) -> String {
        // Processes are this machine's, whatever tree is changed.
        let process = Host::here().process(process);
        let alive = process.filter(|process| process.is_alive());
        alive
            .map(|process| process.started_ticks.to_string())
            .unwrap_or_default()
    }

    /// Tells a server to read its configuration again; whether it runs.
    pub(crate) fn reload(&self, server: &Reload) -> bool {
        let process: Option<u32> = self.word(&server.pid_file).parse().ok();
        let process = process.filter(|process| {
            program_of(*process).is_some_and(|program| program == Path::new(&server.program))
        });
        let process = process.and_then(|process| i32::try_from(process).ok());
        process.is_some_and(|process| kill(Pid::from_raw(process), Signal::SIGHUP).is_ok())
    }

    fn word(&self, path: &str) -> String {
        let text = std::fs::read_to_string(self.path(path)).unwrap_or_default();
        text.trim().to_owned()
    }
}

/// The program that a process runs; `None` where it may not be seen.
pub(crate) fn program_of(process: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/exe")).ok()
}

/// Where a file of the disk is while it is written.
pub(crate) fn partial(path: &str) -> String {
    format!("{path}.turnpike-tune-new")
}

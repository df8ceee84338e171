//! Kernel lock contentions a second: the tracepoint lock:contention_begin, Linux 5.19, counted on
//! every CPU. The "contention" rows of study S1.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::metric::Figure;
use crate::placement;
use crate::sys::{Counted, Counter};

/// Counts from when it is made.
#[derive(Debug)]
pub(crate) struct Contention(Result<Vec<Counter>, String>);

impl Contention {
    /// Starts to count.
    pub(crate) fn start() -> Contention {
        let id = match tracepoint("lock", "contention_begin") {
            Ok(id) => id,
            Err(error) => return Contention(Err(error)),
        };
        let counters: Result<Vec<Counter>, _> = placement::allowed()
            .into_iter()
            .map(|cpu| Counter::open(id, Counted::Cpu(cpu), None))
            .collect();
        Contention(counters.map_err(|error| format!("perf_event_open: {error}")))
    }

    /// Contentions a second over this time.
    pub(crate) fn figure(&self, seconds: f64) -> Figure {
        match &self.0 {
            Err(error) => Figure::Missing(error.clone()),
            Ok(counters) => {
                let counts: std::io::Result<Vec<u64>> =
                    counters.iter().map(Counter::read).collect();
                match counts {
                    Ok(counts) => Figure::Value(counts.iter().sum::<u64>() as f64 / seconds),
                    Err(error) => Figure::Missing(format!("reading the counter: {error}")),
                }
            }
        }
    }
}

/// The number of a tracepoint in this kernel.
///
/// # Errors
/// In words.
pub(super) fn tracepoint(group: &str, name: &str) -> Result<u64, String> {
    static KNOWN: Mutex<BTreeMap<String, Result<u64, String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .entry(format!("{group}:{name}"))
        .or_insert_with(|| look_up(group, name))
        .clone()
}

fn look_up(group: &str, name: &str) -> Result<u64, String> {
    let file = format!("events/{group}/{name}/id");
    for folder in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if let Ok(text) = std::fs::read_to_string(PathBuf::from(folder).join(&file)) {
            return parse(&text);
        }
    }
    mounted(&file).map_err(|error| format!("no tracepoint {group}:{name}: {error}"))
}

fn parse(text: &str) -> Result<u64, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("\"{}\" is not a number", text.trim()))
}

/// Makes a folder that nobody else may enter. What is there already under its name is somebody
/// else's, be it a link, and is refused: root mounts there.
fn private_folder(within: &Path) -> std::io::Result<PathBuf> {
    let folder = within.join(format!("turnpike-lab-{}-tracefs", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Mounts tracefs for one read, if it is not mounted.
fn mounted(file: &str) -> Result<u64, String> {
    let folder = private_folder(&std::env::temp_dir()).map_err(|error| error.to_string())?;
    let none: Option<&str> = None;
    let result = mount(
        Some("none"),
        &folder,
        Some("tracefs"),
        MsFlags::empty(),
        none,
    )
    .map_err(|error| format!("tracefs is not mounted and may not be: {error}"))
    .and_then(|()| {
        let text = std::fs::read_to_string(folder.join(file));
        let _ = umount2(&folder, MntFlags::MNT_DETACH);
        text.map_err(|error| error.to_string())
    });
    let _ = std::fs::remove_dir(&folder);
    parse(&result?)
}

#[cfg(test)]
mod tests {
    //! Where tracefs is mounted.

    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::private_folder;

    #[test]
    fn the_folder_is_private_and_nobody_elses() {
        let name = format!("turnpike-lab-private-{}", std::process::id());
        let within = std::env::temp_dir().join(name);
        std::fs::create_dir(&within).unwrap();
        let folder = private_folder(&within).unwrap();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(private_folder(&within).is_err(), "it is there");
        std::fs::remove_dir(&folder).unwrap();
        symlink(&within, &folder).unwrap();
        assert!(private_folder(&within).is_err(), "a link is there");
        std::fs::remove_dir_all(&within).unwrap();
    }
}

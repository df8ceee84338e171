//! The loader: it finds the files in the folder, once, after the start.

use std::fs::{self, ReadDir};
use std::path::{Path, PathBuf};

use super::pacer::{Pacer, Progress};
use crate::disk::{DiskSettings, LEVELS_MAX, is_abandoned, is_stored_name};
use crate::zone::Zone;

/// Walks the folder of a zone, with pauses.
pub(super) struct Loader {
    folder: PathBuf,
    temporary_folder: Option<PathBuf>,
    levels: usize,
    /// The folders of the walk, the outermost first; `None` before it begins.
    open: Option<Vec<ReadDir>>,
}

impl Loader {
    pub(super) fn new(settings: &DiskSettings) -> Self {
        Self {
            folder: settings.folder.clone(),
            temporary_folder: settings.temporary_folder.clone(),
            levels: settings.levels.len().min(LEVELS_MAX),
            open: None,
        }
    }

    /// Adopts files of the folder, until a pause is due.
    pub(super) fn load(&mut self, zone: &Zone, pacer: &mut Pacer) -> Progress {
        let open = self.open.get_or_insert_with(|| {
            if let Some(folder) = &self.temporary_folder {
                remove_abandoned(folder);
            }
            // A folder that cannot be read counts as empty.
            fs::read_dir(&self.folder).into_iter().collect()
        });
        while let Some(folder) = open.last_mut() {
            let Some(entry) = folder.next() else {
                open.pop();
                continue;
            };
            let Ok(entry) = entry else {
                continue;
            };
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if open.len() <= self.levels {
                    open.extend(fs::read_dir(&path));
                }
                continue;
            }
            if is_stored_name(&path) {
                zone.adopt(&path);
            } else if is_abandoned(&path) {
                let _ = fs::remove_file(&path);
            }
            if pacer.count_file() {
                return Progress::Paused;
            }
        }
        Progress::Done
    }
}

/// Removes files of ended processes from the folder of unfinished files.
fn remove_abandoned(folder: &Path) {
    // A folder that cannot be read counts as empty.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

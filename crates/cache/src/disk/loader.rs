//! Finding out what is in the folder, once, after the start.

use std::fs;
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use super::manager::Pacer;
use super::writer::is_abandoned;
use super::{LEVELS_MAX, is_stored_name};
use crate::zone::Zone;

/// Takes up every file of the zone's folder, with pauses. Ends early where the zone is gone.
pub(super) fn load(zone: &Weak<Zone>) {
    let settings = zone.upgrade().and_then(|zone| {
        let settings = &zone.folder()?.settings;
        Some(settings.clone())
    });
    let Some(settings) = settings else {
        return;
    };
    if let Some(folder) = &settings.temporary_folder {
        remove_abandoned(folder);
    }
    let levels = settings.levels.len().min(LEVELS_MAX);
    let mut pacer = Pacer::new(settings.loader);
    if walk(zone, &settings.folder, levels, &mut pacer)
        && let Some(zone) = zone.upgrade()
        && let Some(disk) = zone.folder()
    {
        disk.loaded.store(true, Ordering::Release);
    }
}

/// Removes what processes that are no more have left in the folder of files in the making.
fn remove_abandoned(folder: &Path) {
    // One that cannot be read holds nothing for us.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Walks a folder whose files lie so many levels below. `false`: the zone is gone.
fn walk(zone: &Weak<Zone>, folder: &Path, levels: usize, pacer: &mut Pacer) -> bool {
    // A folder that cannot be read holds nothing for us.
    let Ok(entries) = fs::read_dir(folder) else {
        return true;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            if levels > 0 && !walk(zone, &path, levels - 1, pacer) {
                return false;
            }
            continue;
        }
        let Some(zone) = zone.upgrade() else {
            return false;
        };
        if is_stored_name(&path) {
            zone.adopt(&path);
        } else if is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
        drop(zone);
        pacer.count_file();
    }
    true
}

//! Finding out what is in the folder, once, after the start.

use std::fs;
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::keeper::Breath;
use super::{LEVELS_MAX, is_stored_name};
use crate::zone::Zone;

/// A file in the making that is older than this was left behind by a process that is no more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Takes up every file of the zone's folder, with pauses. Ends early where the zone is gone.
pub(super) fn load(zone: &Weak<Zone>) {
    let Some((folder, levels, pace)) = zone.upgrade().and_then(|zone| {
        let settings = &zone.folder()?.settings;
        let levels = settings.levels.len().min(LEVELS_MAX);
        Some((settings.folder.clone(), levels, settings.loader))
    }) else {
        return;
    };
    let mut breath = Breath::new(pace);
    if walk(zone, &folder, levels, &mut breath)
        && let Some(zone) = zone.upgrade()
        && let Some(disk) = zone.folder()
    {
        disk.loaded.store(true, Ordering::Release);
    }
}

/// Walks a folder whose files lie so many levels below. `false`: the zone is gone.
fn walk(zone: &Weak<Zone>, folder: &Path, levels: usize, breath: &mut Breath) -> bool {
    // A folder that cannot be read holds nothing for us.
    let Ok(entries) = fs::read_dir(folder) else {
        return true;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            if levels > 0 && !walk(zone, &path, levels - 1, breath) {
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
        breath.one_more();
    }
    true
}

fn is_abandoned(path: &Path) -> bool {
    let is_part = path
        .extension()
        .is_some_and(|extension| extension == "part");
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    is_part && age.is_some_and(|age| age > ABANDONED)
}

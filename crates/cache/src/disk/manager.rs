//! The thread that keeps a zone's folder: it loads, then takes away what nobody has asked for and,
//! where the file system runs short, what was not asked for the longest.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::statvfs::statvfs;

use super::{Pace, loader};
use crate::zone::Zone;

/// How often the file system's room is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How often, in seconds, it is looked for what nobody has asked for: four times in the time after
/// which it goes, but neither always nor never.
const SWEEP_S_MIN: u64 = 1;
const SWEEP_S_MAX: u64 = 60;

/// Pauses after some work.
pub(super) struct Pacer {
    pace: Pace,
    files: u64,
    since: Instant,
}

impl Pacer {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            files: 0,
            since: Instant::now(),
        }
    }

    /// Counts a file, and pauses when it is time.
    pub(super) fn count_file(&mut self) {
        self.files += 1;
        let long = self.since.elapsed() >= Duration::from_millis(self.pace.threshold_ms);
        if self.files >= self.pace.files.max(1) || long {
            thread::sleep(Duration::from_millis(self.pace.sleep_ms));
            self.files = 0;
            self.since = Instant::now();
        }
    }
}

/// Starts the zone's thread, once. It ends when the zone is gone.
///
/// # Errors
/// The system gives no thread.
pub fn start(zone: &Arc<Zone>) -> std::io::Result<()> {
    let Some(disk) = zone.folder() else {
        return Ok(());
    };
    if disk.started.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let zone = Arc::downgrade(zone);
    thread::Builder::new()
        .name("cache manager".to_owned())
        .spawn(move || manage(&zone))
        .map(drop)
}

fn manage(zone: &Weak<Zone>) {
    loader::load(zone);
    let mut swept_s = unix_seconds();
    loop {
        thread::sleep(LOOK);
        let Some(zone) = zone.upgrade() else {
            return;
        };
        let Some(disk) = zone.folder() else {
            return;
        };
        let inactive_s = disk.settings.inactive_s;
        let sweep_s = (inactive_s / 4).clamp(SWEEP_S_MIN, SWEEP_S_MAX);
        let now_s = unix_seconds();
        if now_s.saturating_sub(swept_s) >= sweep_s {
            swept_s = now_s;
            sweep(
                &zone,
                now_s.saturating_sub(inactive_s),
                disk.settings.manager,
            );
        }
        let lacking = lacking_bytes(&zone);
        if lacking > 0 {
            make_room(&zone, lacking, disk.settings.manager);
        }
    }
}

/// Takes away what was last asked for before `before_s`.
fn sweep(zone: &Zone, before_s: u64, pace: Pace) {
    let mut pacer = Pacer::new(pace);
    for (key, used_s, _) in zone.ages() {
        if used_s < before_s && zone.forget(&key, used_s) {
            pacer.count_file();
        }
    }
}

/// Bytes that the file system has too few of.
fn lacking_bytes(zone: &Zone) -> u64 {
    let Some(disk) = zone.folder() else {
        return 0;
    };
    let wanted = disk.settings.free_bytes_min;
    if wanted == 0 {
        return 0;
    }
    match statvfs(&disk.settings.folder) {
        Ok(room) => {
            wanted.saturating_sub(room.blocks_available().saturating_mul(room.fragment_size()))
        }
        Err(_) => 0,
    }
}

/// Takes away what was not asked for the longest.
fn make_room(zone: &Zone, lacking_bytes: u64, pace: Pace) {
    let mut pacer = Pacer::new(pace);
    let mut ages = zone.ages();
    ages.sort_unstable_by_key(|(_, used_s, _)| *used_s);
    let mut freed = 0;
    for (key, used_s, bytes) in ages {
        if freed >= lacking_bytes {
            return;
        }
        if zone.forget(&key, used_s) {
            freed += bytes;
            pacer.count_file();
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

//! The manager of a zone's folder: it loads the folder once, then removes unused responses, and the
//! least recently used ones if the file system runs out of space.
//!
//! The manager blocks on the disk, but never sleeps: it does a part of the work and returns the
//! length of the next pause. Its caller waits, so that an idle zone holds no thread.

mod loader;
mod pacer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::vec;

use nix::sys::statvfs::statvfs;

use crate::disk::{Disk, DiskSettings};
use crate::zone::Zone;
use loader::Loader;
use pacer::{Pacer, Progress};

/// The interval between checks of the file system's free space.
const LOOK: Duration = Duration::from_secs(1);

/// The bounds, in seconds, of the interval between searches for unused responses; it is a quarter
/// of the time after which they are removed.
const SWEEP_S_MIN: u64 = 1;
const SWEEP_S_MAX: u64 = 60;
const _: () = assert!(SWEEP_S_MIN < SWEEP_S_MAX);

/// The manager of one zone's folder.
pub struct Manager {
    state: State,
    /// The time of the last search for unused responses.
    swept_s: u64,
}

enum State {
    Loading(Box<Loader>),
    Resting,
    /// Unused responses are being removed.
    Sweeping(Removal),
    /// The least recently used responses are being removed.
    MakingRoom(Removal),
}

impl Manager {
    /// The manager of a zone; `None` if the zone is in memory.
    pub fn of(zone: &Zone) -> Option<Self> {
        let settings = &zone.as_disk()?.settings;
        Some(Self {
            state: State::Loading(Box::new(Loader::new(settings))),
            swept_s: unix_seconds(),
        })
    }

    /// Announces that the zone's folder will be loaded. From now on requests also look for files
    /// that the zone does not know yet. A zone that was left is taken up again.
    pub fn announce(zone: &Zone) {
        zone.take_up();
        if let Some(disk) = zone.as_disk() {
            disk.managed.store(true, Ordering::Release);
        }
    }

    /// Does a part of the work, and returns the pause before the next step. Blocks on the disk.
    pub fn step(&mut self, zone: &Arc<Zone>) -> Duration {
        let Some(disk) = zone.as_disk() else {
            return LOOK;
        };
        if zone.is_left() {
            return LOOK;
        }
        let settings = &disk.settings;
        let mut next = std::mem::replace(&mut self.state, State::Resting);
        if matches!(next, State::Resting) {
            next = self.sweep(zone, settings);
        }
        loop {
            let pace = match &next {
                State::Loading(_) => settings.loader,
                State::Resting | State::Sweeping(_) | State::MakingRoom(_) => settings.manager,
            };
            let mut pacer = Pacer::new(pace);
            let progress = match &mut next {
                State::Loading(loader) => loader.load(zone, &mut pacer),
                State::Sweeping(removal) | State::MakingRoom(removal) => {
                    removal.remove(zone, &mut pacer)
                }
                State::Resting => Progress::Done,
            };
            if progress == Progress::Paused {
                self.state = next;
                return Duration::from_millis(pace.sleep_ms);
            }
            next = match next {
                State::Loading(_) => {
                    zone.end_loading();
                    State::Resting
                }
                State::Sweeping(_) => room(zone, disk),
                State::MakingRoom(_) | State::Resting => return LOOK,
            };
        }
    }

    /// The unused responses, if it is time to search for them.
    fn sweep(&mut self, zone: &Zone, settings: &DiskSettings) -> State {
        let inactive_s = settings.inactive_s;
        let sweep_s = (inactive_s / 4).clamp(SWEEP_S_MIN, SWEEP_S_MAX);
        let now_s = unix_seconds();
        let mut removal = Removal::default();
        if now_s.saturating_sub(self.swept_s) >= sweep_s {
            self.swept_s = now_s;
            let before_s = now_s.saturating_sub(inactive_s);
            let mut ages = zone.ages();
            ages.retain(|(_, used_s, _)| *used_s < before_s);
            removal.candidates = ages.into_iter();
        }
        State::Sweeping(removal)
    }
}

/// Keys to remove, with the time of their last use and their bytes.
#[derive(Default)]
struct Removal {
    candidates: vec::IntoIter<(Arc<[u8]>, u64, u64)>,
    /// The bytes to free; `None`: all candidates are removed.
    wanted_bytes: Option<u64>,
}

impl Removal {
    fn remove(&mut self, zone: &Zone, pacer: &mut Pacer) -> Progress {
        while self.wanted_bytes != Some(0)
            && let Some((key, used_s, bytes)) = self.candidates.next()
        {
            if !zone.forget(&key, used_s) {
                continue;
            }
            self.wanted_bytes = self.wanted_bytes.map(|wanted| wanted.saturating_sub(bytes));
            if pacer.count_file() {
                return Progress::Paused;
            }
        }
        Progress::Done
    }
}

/// The removal that frees the missing space of the file system.
fn room(zone: &Zone, disk: &Disk) -> State {
    let lacking_bytes = lacking_bytes(&disk.settings);
    if lacking_bytes == 0 {
        return State::Resting;
    }
    let mut ages = zone.ages();
    ages.sort_unstable_by_key(|(_, used_s, _)| *used_s);
    State::MakingRoom(Removal {
        candidates: ages.into_iter(),
        wanted_bytes: Some(lacking_bytes),
    })
}

/// The bytes that are missing on the file system.
fn lacking_bytes(settings: &DiskSettings) -> u64 {
    let wanted = settings.free_bytes_min;
    if wanted == 0 {
        return 0;
    }
    match statvfs(&settings.folder) {
        Ok(room) => {
            wanted.saturating_sub(room.blocks_available().saturating_mul(room.fragment_size()))
        }
        Err(_) => 0,
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

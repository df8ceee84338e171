//! The care of a zone's folder: it is loaded once, then what nobody has asked for is taken away,
//! and where the file system runs short, what was not asked for the longest.
//!
//! The manager blocks, but never sleeps: it does a piece of work and says how long to pause then.
//! Whoever drives it waits, so that no thread is held for a zone that rests.

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

/// How often the file system's room is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How often, in seconds, it is looked for what nobody has asked for: four times in the time after
/// which it goes, but neither always nor never.
const SWEEP_S_MIN: u64 = 1;
const SWEEP_S_MAX: u64 = 60;

/// What takes care of one zone's folder.
pub struct Manager {
    state: State,
    /// When it was last looked for what nobody has asked for.
    swept_s: u64,
}

enum State {
    Loading(Box<Loader>),
    Resting,
    /// What was not asked for goes.
    Sweeping(Removal),
    /// What was not asked for the longest goes.
    MakingRoom(Removal),
}

impl Manager {
    /// The manager of a zone; `None` for one in memory.
    pub fn of(zone: &Zone) -> Option<Self> {
        let settings = &zone.folder()?.settings;
        Some(Self {
            state: State::Loading(Box::new(Loader::new(settings))),
            swept_s: unix_seconds(),
        })
    }

    /// Says that the zone's folder is about to be loaded. From now on requests look for files that
    /// the zone does not know of yet.
    pub fn announce(zone: &Zone) {
        if let Some(disk) = zone.folder() {
            disk.managed.store(true, Ordering::Release);
        }
    }

    /// Does some work, and returns how long to pause before the next step. Blocks on the disk.
    pub fn step(&mut self, zone: &Arc<Zone>) -> Duration {
        let Some(disk) = zone.folder() else {
            return LOOK;
        };
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
                    disk.loaded.store(true, Ordering::Release);
                    State::Resting
                }
                State::Sweeping(_) => room(zone, disk),
                State::MakingRoom(_) | State::Resting => return LOOK,
            };
        }
    }

    /// What was last asked for too long ago, when it is time to look for that.
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

/// Keys to be taken away, with the time of their last use and their bytes.
#[derive(Default)]
struct Removal {
    candidates: vec::IntoIter<(Arc<[u8]>, u64, u64)>,
    /// Bytes that are to be freed; `None`: all candidates go.
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

/// What goes where the file system has too few bytes.
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

/// Bytes that the file system has too few of.
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

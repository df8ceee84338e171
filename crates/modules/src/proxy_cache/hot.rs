//! Hot files of disk zones, kept by a lane: the bodies of small ones, the descriptors of others.
//!
//! A hit of a hot file makes no call to the file system. Once in [`TRUSTED_MS`] a use asks it
//! whether the file at the path is still the one whose checksum was found right, so that a file
//! that somebody else has changed or taken away is found out. What the zone itself drops is never
//! asked for again. Nothing here reads a file.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use quick_cache::unsync::Cache;
use quick_cache::{UnitWeighter, Weighter};
use turnpike_cache::stored::StoredFile;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::plan::Builder;
use turnpike_lane::files::OpenFile;
use turnpike_plan::keys::KeyHash;

/// Largest body that is kept where sendfile(2) may send it: of larger ones, that costs less than
/// the copy.
const BODY_BYTES_MAX_BESIDE_SENDFILE: u64 = 32 * 1024;

/// Largest body that is kept where it would be read for every hit.
const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// How long a file is taken for the one that it was when it was last looked at, in milliseconds;
/// nginx's `open_file_cache` does so for a minute.
pub(super) const TRUSTED_MS: u64 = 1_000;

/// How long a descriptor is kept that nobody asks for, in milliseconds: the file may be removed
/// meanwhile, and its blocks are free only when it is closed.
const UNUSED_MS_MAX: u64 = 10_000;

/// Most bytes that a lane keeps.
const TOTAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most descriptors that a lane keeps: a quarter of what a process may usually have open.
const DESCRIPTORS_MAX: u64 = 256;

/// What an entry costs beside its bytes.
const ENTRY_BYTES: u64 = 128;

/// Entries that room is made for at first.
const ENTRIES_EXPECTED: usize = 64;

/// What is kept of a file.
#[derive(Clone)]
pub(super) enum Content {
    Body(Arc<[u8]>),
    File(Rc<OpenFile>),
}

/// What is kept of a file once it is hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Body,
    Descriptor,
}

impl Kept {
    /// What is kept of a file of which `sendfile` says whether the kernel may send it.
    pub(super) fn of(file: &StoredFile, sendfile: bool) -> Self {
        let bytes_max = if sendfile {
            BODY_BYTES_MAX_BESIDE_SENDFILE
        } else {
            BODY_BYTES_MAX
        };
        if file.length() <= bytes_max {
            Self::Body
        } else {
            Self::Descriptor
        }
    }
}

/// What is known of a file.
#[derive(Clone)]
struct Hot {
    /// As long as this stands, no other file has its address.
    file: Weak<StoredFile>,
    /// None: it was asked for once.
    content: Option<Content>,
    /// When the file system was last asked about it, in the lane's monotonic milliseconds.
    looked_at_ms: Cell<u64>,
    /// When it was last asked for.
    used_ms: Cell<u64>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<usize, Hot> for Weigh {
    fn weight(&self, _: &usize, hot: &Hot) -> u64 {
        match &hot.content {
            Some(Content::Body(body)) => ENTRY_BYTES + body.len() as u64,
            _ => ENTRY_BYTES,
        }
    }
}

/// How often a file was asked for on this lane.
pub(super) enum Heat {
    /// Not before.
    Cold,
    /// Before, and nothing of it is here.
    Warm,
    /// Before, and this is here. `is_trusted`: the file system need not be asked.
    Hot { content: Content, is_trusted: bool },
}

/// A lane's hot files, by the address of what describes each.
pub(super) struct HotFiles {
    /// Files whose bodies are kept, or will be.
    bodies: RefCell<Cache<usize, Hot, Weigh, KeyHash>>,
    /// Files whose descriptors are kept, or will be.
    descriptors: RefCell<Cache<usize, Hot, UnitWeighter, KeyHash>>,
    swept_ms: Cell<u64>,
}

/// The slot for all locations, once it was made.
#[derive(Default)]
struct Slot(Option<LaneSlot<HotFiles>>);

impl HotFiles {
    pub(super) fn slot(builder: &mut Builder<'_>) -> LaneSlot<Self> {
        if let Some(slot) = builder.store::<Slot>().0 {
            return slot;
        }
        let slot = builder.lane_state(|| Self {
            bodies: RefCell::new(Cache::with(
                ENTRIES_EXPECTED,
                TOTAL_BYTES_MAX,
                Weigh,
                KeyHash::default(),
                Default::default(),
            )),
            descriptors: RefCell::new(Cache::with(
                DESCRIPTORS_MAX as usize,
                DESCRIPTORS_MAX,
                UnitWeighter,
                KeyHash::default(),
                Default::default(),
            )),
            swept_ms: Cell::new(0),
        });
        builder.store::<Slot>().0 = Some(slot);
        slot
    }

    /// Notes that the file is asked for, and says what is here of it.
    pub(super) fn ask(&self, file: &Arc<StoredFile>, kept: Kept, now_ms: u64) -> Heat {
        let heat = |hot: &Hot| {
            hot.used_ms.set(now_ms);
            hot.content.clone().map_or(Heat::Warm, |content| Heat::Hot {
                content,
                is_trusted: now_ms.saturating_sub(hot.looked_at_ms.get()) < TRUSTED_MS,
            })
        };
        let known = match kept {
            Kept::Body => self.bodies.borrow().get(&address(file)).map(heat),
            Kept::Descriptor => self.descriptors.borrow().get(&address(file)).map(heat),
        };
        known.unwrap_or_else(|| {
            self.put(file, kept, None, now_ms);
            Heat::Cold
        })
    }

    pub(super) fn keep(&self, file: &Arc<StoredFile>, content: Content, now_ms: u64) {
        let kept = match &content {
            Content::Body(_) => Kept::Body,
            Content::File(_) => Kept::Descriptor,
        };
        self.put(file, kept, Some(content), now_ms);
    }

    /// The file system says that it is still the same file.
    pub(super) fn is_unchanged(&self, file: &Arc<StoredFile>, kept: Kept, now_ms: u64) {
        let note = |hot: &Hot| hot.looked_at_ms.set(now_ms);
        match kept {
            Kept::Body => self.bodies.borrow().get(&address(file)).map(note),
            Kept::Descriptor => self.descriptors.borrow().get(&address(file)).map(note),
        };
    }

    pub(super) fn forget(&self, file: &Arc<StoredFile>, kept: Kept) {
        match kept {
            Kept::Body => self.bodies.borrow_mut().remove(&address(file)),
            Kept::Descriptor => self.descriptors.borrow_mut().remove(&address(file)),
        };
    }

    fn put(&self, file: &Arc<StoredFile>, kept: Kept, content: Option<Content>, now_ms: u64) {
        let hot = Hot {
            file: Arc::downgrade(file),
            content,
            looked_at_ms: Cell::new(now_ms),
            used_ms: Cell::new(now_ms),
        };
        match kept {
            Kept::Body => self.bodies.borrow_mut().insert(address(file), hot),
            Kept::Descriptor => self.descriptors.borrow_mut().insert(address(file), hot),
        }
    }
}

/// Bodies of which the zone has dropped the files are never asked for again, so they are evicted
/// for what is. Descriptors would keep the blocks of such files, so they are looked through: they
/// are few.
impl LaneState for HotFiles {
    fn tick(&self, now_ms: u64) {
        if now_ms.saturating_sub(self.swept_ms.get()) < TRUSTED_MS {
            return;
        }
        self.swept_ms.set(now_ms);
        self.descriptors.borrow_mut().retain(|_, hot| {
            let unused_ms = now_ms.saturating_sub(hot.used_ms.get());
            hot.file.strong_count() > 0 && unused_ms < UNUSED_MS_MAX
        });
    }
}

fn address(file: &Arc<StoredFile>) -> usize {
    Arc::as_ptr(file).addr()
}

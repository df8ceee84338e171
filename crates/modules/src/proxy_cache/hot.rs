//! The bodies of hot files of disk zones, in a lane's memory.
//!
//! Every use asks the file system whether the file is still the one whose checksum was found right:
//! one call, in place of those that open, examine, read and close it. So a file that somebody else
//! has changed or taken away is found out as if nothing were kept. Nothing here reads a file.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use turnpike_cache::stored::StoredFile;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::plan::Builder;

/// Largest body that is kept: of larger ones, sendfile costs less than the copy.
pub(super) const BODY_BYTES_MAX: u64 = 32 * 1024;

/// Most bytes that a lane keeps.
const TOTAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What an entry costs beside its bytes.
const ENTRY_BYTES: u64 = 128;

/// Entries that room is made for at first.
const ENTRIES_EXPECTED: usize = 64;

/// What is known of a file.
#[derive(Clone)]
struct Hot {
    /// As long as this stands, no other file has its address.
    #[expect(dead_code, reason = "held for the address alone")]
    file: Weak<StoredFile>,
    /// None: it was asked for once.
    body: Option<Arc<[u8]>>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<usize, Hot> for Weigh {
    fn weight(&self, _: &usize, hot: &Hot) -> u64 {
        ENTRY_BYTES + hot.body.as_ref().map_or(0, |body| body.len() as u64)
    }
}

/// How often a file was asked for on this lane.
pub(super) enum Heat {
    /// Not before.
    Cold,
    /// Before, and the body is not here.
    Warm,
    /// Before, and the body is here.
    Hot(Arc<[u8]>),
}

/// A lane's bodies, by the address of what describes the file.
pub(super) struct HotBodies(RefCell<Cache<usize, Hot, Weigh>>);

/// The slot for all locations, once it was made.
#[derive(Default)]
struct Slot(Option<LaneSlot<HotBodies>>);

impl HotBodies {
    pub(super) fn slot(builder: &mut Builder<'_>) -> LaneSlot<Self> {
        if let Some(slot) = builder.store::<Slot>().0 {
            return slot;
        }
        let slot = builder.lane_state(|| {
            let bodies = Cache::with_weighter(ENTRIES_EXPECTED, TOTAL_BYTES_MAX, Weigh);
            Self(RefCell::new(bodies))
        });
        builder.store::<Slot>().0 = Some(slot);
        slot
    }

    /// Notes that the file is asked for, and says whether it was before.
    pub(super) fn ask(&self, file: &Arc<StoredFile>) -> Heat {
        if let Some(hot) = self.0.borrow().get(&address(file)) {
            return hot.body.clone().map_or(Heat::Warm, Heat::Hot);
        }
        self.put(file, None);
        Heat::Cold
    }

    pub(super) fn keep(&self, file: &Arc<StoredFile>, body: Arc<[u8]>) {
        self.put(file, Some(body));
    }

    pub(super) fn forget(&self, file: &Arc<StoredFile>) {
        self.0.borrow_mut().remove(&address(file));
    }

    fn put(&self, file: &Arc<StoredFile>, body: Option<Arc<[u8]>>) {
        let hot = Hot {
            file: Arc::downgrade(file),
            body,
        };
        self.0.borrow_mut().insert(address(file), hot);
    }
}

/// What the zone has dropped is never asked for again, so it is evicted for what is. A look at all
/// entries from time to time would hold the lane up.
impl LaneState for HotBodies {}

fn address(file: &Arc<StoredFile>) -> usize {
    Arc::as_ptr(file).addr()
}

//! The board on which lanes tell how they are, and which the steering program reads.
//!
//! It is memory: a mapped BPF array where the kernel permits one, private memory where it does not,
//! so that a lane does the same in both cases. Telling costs four stores and no system call. The
//! layout is that of `struct lane` in steer.bpf.c.

use std::{
    cell::Cell,
    io,
    marker::PhantomData,
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::sys::mapping::SharedWords;

/// Most lanes the program looks at for each connection; more cannot be steered.
pub const STEERED_LANES_MAX: usize = 256;

/// Bytes of one lane's part: what it writes and what the kernel writes, on lines of their own.
pub(super) const LANE_BYTES: usize = 128;

const LANE_WORDS: usize = LANE_BYTES / 8;
const HEARTBEAT: usize = 0;
const LOAD: usize = 1;
const SEEN: usize = 2;
/// Of no concern to the program.
const ROUND: usize = 3;
const STEERED: usize = 8;

/// Added to times, so that memory nobody has written says that the lane is not there.
const EPOCH: u64 = 1 << 62;

/// Instead of a time, and later than any: the lane waits for events, and will come when woken.
const ASLEEP: u64 = 2 * EPOCH;

/// Loads are compared by the sign of their difference.
const LOAD_MAX: u64 = 1 << 48;

/// What a lane has said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The lane does not exist.
    Gone,
    /// The lane waits for events.
    Asleep,
    /// The lane began a round at that time, in nanoseconds of CLOCK_MONOTONIC.
    Awake {
        /// When.
        since_ns: u64,
    },
}

/// The parts of all lanes.
#[derive(Debug)]
pub struct LaneBoard {
    shared: SharedWords,
}

impl LaneBoard {
    /// Maps the board that the master has made; needs no privilege.
    pub fn map(board: BorrowedFd<'_>) -> io::Result<Arc<LaneBoard>> {
        let shared = SharedWords::map(board, STEERED_LANES_MAX * LANE_WORDS)?;
        Ok(Arc::new(LaneBoard { shared }))
    }

    /// A board that no program reads.
    pub fn private() -> io::Result<Arc<LaneBoard>> {
        let shared = SharedWords::anonymous(STEERED_LANES_MAX * LANE_WORDS)?;
        Ok(Arc::new(LaneBoard { shared }))
    }

    /// The part of lane number `lane`, to write: for that lane alone. `None` beyond
    /// [`STEERED_LANES_MAX`].
    pub fn pulse(self: &Arc<LaneBoard>, lane: usize) -> Option<LanePulse> {
        if lane >= STEERED_LANES_MAX {
            return None;
        }
        Some(LanePulse {
            board: Arc::clone(self),
            lane,
            one_thread: PhantomData,
        })
    }

    /// Connections that the program has given to a lane since the board was made.
    pub fn steered(&self, lane: usize) -> u64 {
        self.cell(lane, STEERED)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// What a lane has said last.
    pub fn beat(&self, lane: usize) -> Beat {
        let heartbeat = self.cell(lane, HEARTBEAT);
        match heartbeat.map_or(0, |cell| cell.load(Ordering::Acquire)) {
            0 => Beat::Gone,
            ASLEEP => Beat::Asleep,
            beat => Beat::Awake {
                since_ns: beat.saturating_sub(EPOCH),
            },
        }
    }

    /// When a lane has begun a round last, in nanoseconds of CLOCK_MONOTONIC; 0 before the first.
    pub fn last_round_ns(&self, lane: usize) -> u64 {
        self.cell(lane, ROUND)
            .map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Says of a lane that it is not there, until it says otherwise itself: for whoever finds that
    /// it does not wake up.
    pub fn mark_gone(&self, lane: usize) {
        if let Some(cell) = self.cell(lane, HEARTBEAT) {
            cell.store(0, Ordering::Release);
        }
    }

    /// What a lane works on, as it said, and what it was given since.
    pub fn load(&self, lane: usize) -> u64 {
        let value = |word| {
            self.cell(lane, word)
                .map_or(0, |cell| cell.load(Ordering::Relaxed))
        };
        value(LOAD).wrapping_add(value(STEERED).wrapping_sub(value(SEEN)))
    }

    /// Says of all lanes that they are not there: what the master does when the serving process
    /// has ended without a word. Until they tell otherwise, the kernel chooses by hash.
    pub fn clear(&self) {
        for lane in 0..STEERED_LANES_MAX {
            if let Some(cell) = self.cell(lane, HEARTBEAT) {
                cell.store(0, Ordering::Release);
            }
        }
    }

    fn cell(&self, lane: usize, word: usize) -> Option<&AtomicU64> {
        self.shared
            .words()
            .get(lane.checked_mul(LANE_WORDS)? + word)
    }
}

/// One lane's own part. May be sent to the lane's thread, but not shared between threads; when it
/// is dropped, the lane is not there any more.
#[derive(Debug)]
pub struct LanePulse {
    board: Arc<LaneBoard>,
    lane: usize,
    one_thread: PhantomData<Cell<()>>,
}

impl LanePulse {
    /// A round begins: at the latest every [`super::STALE_NS`] while the lane is awake. `now_ns` is
    /// CLOCK_MONOTONIC in nanoseconds, `load` the connections the lane works on.
    pub fn awake(&self, now_ns: u64, load: u64) {
        self.store(ROUND, now_ns);
        self.tell(EPOCH + now_ns.min(EPOCH - 1), load.min(LOAD_MAX));
    }

    /// The lane is about to wait for events.
    pub fn asleep(&self, load: u64) {
        self.tell(ASLEEP, load.min(LOAD_MAX));
    }

    /// The lane takes no more connections.
    pub fn gone(&self) {
        self.store(HEARTBEAT, 0);
    }

    fn tell(&self, heartbeat: u64, load: u64) {
        self.store(SEEN, self.board.steered(self.lane));
        self.store(LOAD, load);
        self.store(HEARTBEAT, heartbeat);
    }

    fn store(&self, word: usize, value: u64) {
        if let Some(cell) = self.board.cell(self.lane, word) {
            cell.store(value, Ordering::Release);
        }
    }
}

impl Drop for LanePulse {
    fn drop(&mut self) {
        self.gone();
    }
}

//! The board: shared memory in which lanes publish their state for the steering program.
//!
//! The board is a mapped BPF array where the kernel permits one, and private memory otherwise, so
//! that a lane does the same in both cases. Publishing costs four stores and no system call. The
//! layout is that of `struct board` in steer.bpf.c.

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

use super::QuicRules;
use crate::sys::mapping::SharedWords;

/// The most lanes that the program checks for each connection; more cannot be steered.
pub const STEERED_LANES_MAX: usize = 256;

/// The size of one lane's entry in bytes: the lane and the kernel write to separate cache lines.
pub(super) const LANE_BYTES: usize = 128;

const LANE_WORDS: usize = LANE_BYTES / 8;
const HEARTBEAT: usize = 0;
const LOAD: usize = 1;
const SEEN: usize = 2;
/// A field that the program does not read.
const ROUND: usize = 3;
const STEERED: usize = 8;

/// How connection IDs are read, behind the lanes: two keys of two words, and the process.
const QUIC_AT: usize = STEERED_LANES_MAX * LANE_WORDS;
const PROCESS_AT: usize = QUIC_AT + 4;

const BOARD_WORDS: usize = PROCESS_AT + 1;

/// The size of the board in bytes.
pub(super) const BOARD_BYTES: usize = BOARD_WORDS * 8;

/// Added to times, so that zeroed memory means that the lane does not exist.
const EPOCH: u64 = 1 << 62;

/// The value instead of a time, and larger than any: the lane waits for events, and can be woken.
const ASLEEP: u64 = 2 * EPOCH;

/// The largest load. Loads are compared by the sign of their difference.
const LOAD_MAX: u64 = 1 << 48;

/// The last published state of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The lane does not exist.
    Gone,
    /// The lane waits for events.
    Asleep,
    /// The lane began a turn at that time, in nanoseconds of CLOCK_MONOTONIC.
    Awake {
        /// The time.
        since_ns: u64,
    },
}

/// The entries of all lanes.
#[derive(Debug)]
pub struct LaneBoard {
    shared: SharedWords,
}

impl LaneBoard {
    /// Maps the master's board; needs no privilege.
    pub fn map(board: BorrowedFd<'_>) -> io::Result<Arc<LaneBoard>> {
        let shared = SharedWords::map(board, BOARD_WORDS)?;
        Ok(Arc::new(LaneBoard { shared }))
    }

    /// A board that no program reads.
    pub fn private() -> io::Result<Arc<LaneBoard>> {
        let shared = SharedWords::anonymous(BOARD_WORDS)?;
        Ok(Arc::new(LaneBoard { shared }))
    }

    /// The entry of lane number `lane`; only that lane writes it. `None` beyond
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

    /// The connections that the program has given to a lane since the board was made.
    pub fn steered(&self, lane: usize) -> u64 {
        self.cell(lane, STEERED)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// The last published state of a lane.
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

    /// The time of a lane's last turn, in nanoseconds of CLOCK_MONOTONIC; 0 before the first.
    pub fn last_round_ns(&self, lane: usize) -> u64 {
        self.cell(lane, ROUND)
            .map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Marks a lane as gone until it publishes again: for a lane that does not wake up.
    pub fn mark_gone(&self, lane: usize) {
        if let Some(cell) = self.cell(lane, HEARTBEAT) {
            cell.store(0, Ordering::Release);
        }
    }

    /// A lane's published load, plus the connections it was given since.
    pub fn load(&self, lane: usize) -> u64 {
        let value = |word| {
            self.cell(lane, word)
                .map_or(0, |cell| cell.load(Ordering::Relaxed))
        };
        value(LOAD).wrapping_add(value(STEERED).wrapping_sub(value(SEEN)))
    }

    /// Marks all lanes as gone: the master does this when the serving process has ended
    /// unexpectedly. Until they publish again, the kernel chooses by hash.
    pub fn clear(&self) {
        for lane in 0..STEERED_LANES_MAX {
            if let Some(cell) = self.cell(lane, HEARTBEAT) {
                cell.store(0, Ordering::Release);
            }
        }
    }

    /// Says how the connection IDs of QUIC are read. A datagram that is steered meanwhile may go by
    /// a hash of its ID, as do those of others' IDs.
    pub fn set_quic(&self, rules: &QuicRules) {
        let keys = [rules.key, rules.old_key.unwrap_or(rules.key)];
        let words = keys.as_flattened().as_chunks::<8>().0.iter();
        let words = words.map(|word| u64::from_ne_bytes(*word));
        let words = words.chain([u64::from(rules.process)]);
        for (cell, word) in self.shared.words()[QUIC_AT..].iter().zip(words) {
            cell.store(word, Ordering::Release);
        }
    }

    fn cell(&self, lane: usize, word: usize) -> Option<&AtomicU64> {
        self.shared
            .words()
            .get(lane.checked_mul(LANE_WORDS)? + word)
    }
}

/// One lane's own entry. It may be sent to the lane's thread, but not shared between threads;
/// dropping it marks the lane as gone.
#[derive(Debug)]
pub struct LanePulse {
    board: Arc<LaneBoard>,
    lane: usize,
    one_thread: PhantomData<Cell<()>>,
}

impl LanePulse {
    /// Publishes the start of a turn: at the latest every [`super::STALE_NS`] while the lane is
    /// awake. `now_ns` is CLOCK_MONOTONIC in nanoseconds, `load` the number of the lane's
    /// connections.
    pub fn awake(&self, now_ns: u64, load: u64) {
        self.store(ROUND, now_ns);
        self.publish(EPOCH + now_ns.min(EPOCH - 1), load.min(LOAD_MAX));
    }

    /// Publishes that the lane is about to wait for events.
    pub fn asleep(&self, load: u64) {
        self.publish(ASLEEP, load.min(LOAD_MAX));
    }

    /// The loads of the other lanes that work at that time of CLOCK_MONOTONIC, in nanoseconds.
    pub fn other_loads(&self, now_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let works = move |lane: &usize| match self.board.beat(*lane) {
            Beat::Gone => false,
            Beat::Asleep => true,
            Beat::Awake { since_ns } => now_ns.saturating_sub(since_ns) < super::STALE_NS,
        };
        (0..STEERED_LANES_MAX)
            .filter(|lane| *lane != self.lane)
            .filter(works)
            .map(|lane| self.board.load(lane))
    }

    /// Publishes that the lane takes no more connections.
    pub fn gone(&self) {
        self.store(HEARTBEAT, 0);
    }

    fn publish(&self, heartbeat: u64, load: u64) {
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

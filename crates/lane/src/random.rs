//! Random numbers without a system call.

use std::cell::Cell;

/// Random numbers for choices, samples and boundaries, not for secrets (xorshift64*, Vigna,
/// arXiv:1402.6246).
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        // The state must not be zero.
        Random(Cell::new(seed | 1))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        let mut state = self.0.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

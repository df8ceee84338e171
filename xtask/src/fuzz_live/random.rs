//! Numbers that a seed and a case decide alone, so that a case can be run again by itself.

/// A sequence of numbers (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The sequence of a case.
    pub(super) fn of_case(seed: u64, case: u64) -> Random {
        let mut random = Random(seed);
        let start = random.next();
        Random(start ^ case.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where that is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of the elements, which there must be.
    pub(super) fn pick<T: Copy>(&mut self, elements: &[T]) -> T {
        elements[self.below(elements.len())]
    }
}

//! Pseudorandom numbers: the same seed gives the same test on every machine.

/// A sequence of numbers (splitmix64). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The sequence of one case of a seed, so that the case can be repeated alone.
    pub fn of_case(seed: u64, case: u64) -> Random {
        let start = Random(seed).number();
        Random(start ^ case.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        match end {
            0 => 0,
            end => self.number() % end,
        }
    }

    /// The same for lengths and indexes.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// True with a probability of 1 in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.index(times) == 0
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these; there must be at least one.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

//! SipHash-2-4 of whole words (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a
//! keyed hash whose values cannot be foretold without the key. Programs in the kernel have it too
//! (`steering/siphash.h`), so both sides find the same value.

/// A hash on its way.
pub struct SipHash([u64; 4]);

impl SipHash {
    /// Begins with the two halves of the key.
    #[must_use]
    pub fn new(key: [u64; 2]) -> Self {
        Self([
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ])
    }

    /// Takes a word in.
    pub fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    /// The hash of so many `bytes`, whose number goes into its last word.
    #[must_use]
    pub fn end(mut self, bytes: u64) -> u64 {
        self.word(bytes << 56);
        self.0[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.0.into_iter().fold(0, |hash, part| hash ^ part)
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::SipHash;

    /// Of the vectors in the reference code, those of whole words: 0, 8, 16 and 24 bytes.
    const VECTORS: [u64; 4] = [
        0x726f_db47_dd0e_0e31,
        0x93f5_f579_9a93_2462,
        0x3f2a_cc7f_57c2_9bdb,
        0xb8ad_50c6_f649_af94,
    ];

    #[test]
    fn the_hash_is_that_of_the_reference_code() {
        let word =
            |first: u64| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| at + first as u8));
        for (count, expected) in VECTORS.into_iter().enumerate() {
            let mut hash = SipHash::new([word(0), word(8)]);
            (0..count).for_each(|number| hash.word(word(number as u64 * 8)));
            assert_eq!(hash.end(count as u64 * 8), expected, "{count} words");
        }
    }
}

//! SipHash-2-4 of whole words, as the program has it (`bpf/siphash.h`): both sides must find the
//! same slot for a key.

/// A hash on its way.
pub(crate) struct SipHash([u64; 4]);

impl SipHash {
    /// Begins with the two halves of the key.
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Self([
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ])
    }

    /// Takes a word in.
    pub(crate) fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    /// The hash; `bytes` goes into its last word.
    pub(crate) fn end(mut self, bytes: u64) -> u64 {
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

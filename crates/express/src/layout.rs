//! Where things stand in the memory that the program and the server share, in words of 8 bytes.
//! `bpf/maps.h` has the same as structures; the tests of this crate would find a difference.

/// Longest host that a key has room for, in bytes.
pub(crate) const HOST_BYTES_MAX: usize = 128;
/// Longest target that a key has room for, in bytes; the program takes no longer one.
pub(crate) const TARGET_BYTES_MAX: usize = 375;
/// Longest answer in bytes, head and body: a segment on an Ethernet of 1500 bytes.
pub const ANSWER_BYTES_MAX: usize = 1460;

/// Words of a slot.
pub(crate) const SLOT_WORDS: usize = 256;
/// Bytes of a slot: what an answer takes in the table, however short it is.
pub const SLOT_BYTES: u64 = SLOT_WORDS as u64 * 8;
/// Slots that one key can be in.
pub(crate) const WAYS: usize = 4;

pub(crate) const VERSION: usize = 0;
pub(crate) const DIGEST: usize = 1;
pub(crate) const EXPIRES: usize = 2;
pub(crate) const GENERATION: usize = 3;
/// The lengths of host, target and answer, and the port.
pub(crate) const KEY_BYTES: usize = 4;
/// The answer's sum and the flags.
pub(crate) const ANSWER: usize = 5;
pub(crate) const ADDRESS: usize = 6;
pub(crate) const NOTE: usize = 8;
pub(crate) const HOST: usize = 9;
pub(crate) const TARGET: usize = 25;
pub(crate) const BYTES: usize = 72;
/// Words that a writer sets: all but the program's count.
pub(crate) const WRITTEN_WORDS: usize = 255;
/// The program's count of what it has sent.
pub(crate) const HITS: usize = 255;

/// The answer is to HEAD.
pub(crate) const TO_HEAD: u32 = 1;
/// The answer is for clients that would keep the connection too.
pub(crate) const CLOSES: u32 = 2;
/// The answer is for clients that accept no coding.
pub(crate) const UNCODED: u32 = 4;

/// Above the flags: the chance of a sample, less 1 of as many as fit there; 0 is none.
pub(crate) const CHANCE_SHIFT: u32 = 8;
/// What the chance is a part of.
pub(crate) const CHANCES: u32 = 1 << (32 - CHANCE_SHIFT);

/// The most gates.
pub(crate) const GATES_MAX: usize = 16;

/// Beside a port: nothing is answered there, but clients are dropped.
pub(crate) const SILENT: u32 = 0x10000;

/// The table of clients whose segments are dropped.
pub(crate) mod drops {
    use super::WAYS;

    /// A power of two.
    pub(crate) const BUCKETS: usize = 4096;

    /// Words of an entry.
    pub(crate) const EXPIRES: usize = 0;
    pub(crate) const SEGMENTS: usize = 1;
    pub(crate) const ADDRESS: usize = 2;
    pub(crate) const ENTRY_WORDS: usize = 4;

    pub(crate) const WORDS: usize = BUCKETS * WAYS * ENTRY_WORDS;
}

/// The ring of samples, and the words of a sample in front of its text.
pub(crate) mod sample {
    /// A power of two, of whole pages.
    pub(crate) const RING_BYTES: usize = 256 * 1024;

    pub(crate) const NOTE: usize = 0;
    pub(crate) const GENERATION: usize = 1;
    pub(crate) const SOURCE: usize = 2;
    pub(crate) const DESTINATION: usize = 4;
    /// The ports of the client and the gate, and the length of the answer.
    pub(crate) const PORTS: usize = 6;
    pub(crate) const WORDS: usize = 7;
}

/// Words of the settings.
pub(crate) mod settings {
    use super::GATES_MAX;

    pub(crate) const GENERATION: usize = 0;
    pub(crate) const ANSWERS_SYN: usize = 1;
    pub(crate) const ANSWERS_REQUESTS: usize = 2;
    pub(crate) const SLOT_MASK: usize = 3;
    pub(crate) const COOKIE_KEY: usize = 4;
    pub(crate) const DIGEST_KEY: usize = 6;
    pub(crate) const PORT_COUNT: usize = 8;
    pub(crate) const PORTS: usize = 9;
    pub(crate) const ADDRESSES: usize = PORTS + GATES_MAX / 2;
    pub(crate) const DROPS: usize = ADDRESSES + GATES_MAX * 2;
    pub(crate) const WORDS: usize = DROPS + 1;
}

/// Counters of one CPU.
pub(crate) const COUNTERS_MAX: usize = 64;
/// CPUs that are counted.
pub(crate) const CPUS_MAX: usize = 256;

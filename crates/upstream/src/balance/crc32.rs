//! CRC-32 as in zlib (ISO 3309), which nginx uses for keys.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (0xedb8_8320 & (value & 1).wrapping_neg());
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// An unfinished checksum.
#[derive(Clone, Copy)]
pub(super) struct Crc32(u32);

impl Crc32 {
    pub(super) fn new() -> Crc32 {
        Crc32(u32::MAX)
    }

    /// The checksum with more bytes.
    pub(super) fn with(self, bytes: &[u8]) -> Crc32 {
        let step =
            |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
        Crc32(bytes.iter().fold(self.0, step))
    }

    pub(super) fn value(self) -> u32 {
        !self.0
    }
}

//! The Huffman code (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical, so the lengths of its symbols define it. The codes, and the table that
//! decodes four bits at a time, are built from them at compile time.

use super::CodingError;

/// The bits of the code of each byte; the last entry is the end of a text.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

const SYMBOLS: usize = 257;

/// The symbol for the end of a text, which must not occur in one.
const END: usize = 256;

const LENGTH_MAX: u8 = 30;

/// The inner nodes of the code's tree; 0 is its root.
const NODES: usize = SYMBOLS - 1;

/// The code of each symbol, in its low bits.
static CODES: [u32; SYMBOLS] = codes();

const fn codes() -> [u32; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut code = 0;
    let mut length = 1;
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] == length {
                codes[symbol] = code;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
}

/// The step that four bits take from a node.
#[derive(Clone, Copy)]
struct Step {
    node: u8,
    /// The byte that was decoded in this step, if `has_byte`.
    byte: u8,
    has_byte: bool,
    /// Whether the step decodes the end of a text, which is an error.
    is_end: bool,
}

/// Steps from each node by the next four bits.
static STEPS: [[Step; 16]; NODES] = steps();

/// Whether a text may end at a node: its padding is up to seven bits of the code for the end of a
/// text (RFC 7541 section 5.2).
static MAY_END: [bool; NODES] = may_end(7);

/// The same if the padding may be a whole byte.
static MAY_END_BEHIND_BYTE: [bool; NODES] = may_end(8);

/// A child of a node: another node below `NODES`, otherwise a symbol plus `NODES`.
type Child = u16;

const fn tree() -> [[Child; 2]; NODES] {
    const NONE: Child = Child::MAX;
    let codes = codes();
    let mut tree = [[NONE; 2]; NODES];
    let mut used = 1;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let mut node = 0;
        let mut bit = LENGTHS[symbol];
        while bit > 1 {
            bit -= 1;
            let side = (codes[symbol] >> bit & 1) as usize;
            if tree[node][side] == NONE {
                tree[node][side] = used;
                used += 1;
            }
            node = tree[node][side] as usize;
        }
        tree[node][(codes[symbol] & 1) as usize] = (NODES + symbol) as Child;
        symbol += 1;
    }
    tree
}

const fn steps() -> [[Step; 16]; NODES] {
    const NOWHERE: Step = Step {
        node: 0,
        byte: 0,
        has_byte: false,
        is_end: false,
    };
    let tree = tree();
    let mut steps = [[NOWHERE; 16]; NODES];
    let mut from = 0;
    while from < NODES {
        let mut nibble = 0;
        while nibble < 16 {
            let mut step = NOWHERE;
            let mut node = from;
            let mut bit = 4;
            while bit > 0 {
                bit -= 1;
                let child = tree[node][nibble >> bit & 1] as usize;
                node = child;
                if child >= NODES {
                    let symbol = child - NODES;
                    step.is_end |= symbol == END;
                    step.has_byte = true;
                    step.byte = symbol as u8;
                    node = 0;
                }
            }
            step.node = node as u8;
            steps[from][nibble] = step;
            nibble += 1;
        }
        from += 1;
    }
    steps
}

/// The nodes at which a text may end with at most this much padding.
const fn may_end(padding_bits_max: u32) -> [bool; NODES] {
    let tree = tree();
    let mut may_end = [false; NODES];
    let mut node = 0;
    let mut bits = 0;
    while bits <= padding_bits_max {
        may_end[node] = true;
        node = tree[node][1] as usize;
        bits += 1;
    }
    may_end
}

/// The allowed padding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Fewer than eight bits (RFC 7541 section 5.2).
    Short,
    /// A whole byte too, which some servers send.
    WholeByte,
}

/// Appends the decoded text.
///
/// # Errors
/// The text holds the code for its end, or has wrong padding.
pub fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
    decode_padded(encoded, Padding::Short, out)
}

/// Appends the decoded text, with this padding allowed.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_padded(
    encoded: &[u8],
    padding: Padding,
    out: &mut Vec<u8>,
) -> Result<(), CodingError> {
    let mut node = 0u8;
    for byte in encoded {
        for nibble in [byte >> 4, byte & 15] {
            let step = STEPS[usize::from(node)][usize::from(nibble)];
            if step.is_end {
                return Err(CodingError::InvalidHuffman);
            }
            if step.has_byte {
                out.push(step.byte);
            }
            node = step.node;
        }
    }
    let may_end = match padding {
        Padding::Short => &MAY_END,
        Padding::WholeByte => &MAY_END_BEHIND_BYTE,
    };
    if may_end[usize::from(node)] {
        Ok(())
    } else {
        Err(CodingError::InvalidHuffman)
    }
}

/// The encoded size of a text, in bytes.
pub(crate) fn encoded_bytes(text: &[u8]) -> usize {
    let bits = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]));
    bits.sum::<usize>().div_ceil(8)
}

/// Appends the encoded text.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut bits = 0u64;
    let mut count = 0u32;
    for byte in text {
        let symbol = usize::from(*byte);
        bits = bits << LENGTHS[symbol] | u64::from(CODES[symbol]);
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let padding = 8 - count;
        out.push((bits << padding) as u8 | ((1u16 << padding) - 1) as u8);
    }
}

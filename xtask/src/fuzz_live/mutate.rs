//! Changes of a message: single bytes, words that decide where messages end, lines, line ends,
//! numbers. One to four of them, so that most messages stay near to something that is understood.

use super::seeds::NUMBERS;
use turnpike_testkit::random::Random;

/// Changes of one message.
const CHANGES_MAX: usize = 4;
/// This many repetitions of a byte just overflow the buffers of the configuration.
const REPEATED_BYTES_MAX: usize = 5000;
/// A message longer than this is cut: duplicates of duplicates would grow without end.
const MESSAGE_BYTES_MAX: usize = 100_000;

/// Line ends that parsers take, or mistake, for one another.
const LINE_ENDS: &[&[u8]] = &[b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b"", b" \r\n"];

/// The texts around a colon.
const COLONS: &[&[u8]] = &[
    b" :", b"\t:", b":", b": \t", b"::", b" : ", b":\x0b", b"\0:",
];

/// The message with some changes. `words` are put in, `others` are spliced with it.
pub(super) fn mutate(
    message: &[u8],
    words: &[&[u8]],
    others: &[&str],
    random: &mut Random,
) -> Vec<u8> {
    let mut changed = message.to_vec();
    for _ in 0..=random.index(CHANGES_MAX) {
        change(&mut changed, words, others, random);
        changed.truncate(MESSAGE_BYTES_MAX);
    }
    changed
}

/// A text of the tables as bytes: a newline there is CR LF.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

fn change(bytes: &mut Vec<u8>, words: &[&[u8]], others: &[&str], random: &mut Random) {
    let at = random.index(bytes.len() + 1);
    match random.index(14) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = (random.number() & 0xff) as u8;
            }
        }
        1 => insert(bytes, at, random.pick(words)),
        // Words that are lines belong at the start of one: twice as likely as the rest.
        2..=4 => {
            let starts = starts(bytes);
            insert(bytes, random.pick(&starts), random.pick(words));
        }
        5 => {
            let end = (at + random.index(20)).min(bytes.len());
            drop(bytes.drain(at..end));
        }
        6 => {
            let line = line(bytes, random);
            let copy = bytes[line.clone()].to_vec();
            insert(bytes, line.start, &copy);
        }
        7 => {
            let line = line(bytes, random);
            let moved: Vec<u8> = bytes.drain(line).collect();
            let starts = starts(bytes);
            insert(bytes, random.pick(&starts), &moved);
        }
        8 | 9 => replace(bytes, b"\r\n", LINE_ENDS, random),
        10 => replace(bytes, b":", COLONS, random),
        11 => renumber(bytes, random),
        12 => {
            if random.once_in(2) {
                bytes.truncate(at);
            } else {
                let byte = bytes.get(at).copied().unwrap_or(b'a');
                let repeated = vec![byte; random.index(REPEATED_BYTES_MAX)];
                insert(bytes, at, &repeated);
            }
        }
        _ => {
            let other = self::bytes(random.pick(others));
            insert(bytes, at, &other);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, word: &[u8]) {
    drop(bytes.splice(at..at, word.iter().copied()));
}

/// Where lines start, the end of the message among them.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at + 1))
        .collect()
}

/// One of the lines, with its end.
fn line(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let starts = starts(bytes);
    let index = random.index(starts.len());
    starts[index]..starts.get(index + 1).copied().unwrap_or(bytes.len())
}

/// Replaces one occurrence of `old`.
fn replace(bytes: &mut Vec<u8>, old: &[u8], new: &[&[u8]], random: &mut Random) {
    let places = bytes
        .windows(old.len())
        .enumerate()
        .filter(|(_, found)| *found == old);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    if !places.is_empty() {
        let at = random.pick(&places);
        drop(bytes.splice(at..at + old.len(), random.pick(new).iter().copied()));
    }
}

/// Replaces one number.
fn renumber(bytes: &mut Vec<u8>, random: &mut Random) {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|at| digit(*at) && (*at == 0 || !digit(*at - 1)));
    let starts: Vec<usize> = starts.collect();
    if !starts.is_empty() {
        let start = random.pick(&starts);
        let length = (start..bytes.len()).take_while(|at| digit(*at)).count();
        drop(bytes.splice(start..start + length, random.pick(NUMBERS).iter().copied()));
    }
}

#[cfg(test)]
mod tests;

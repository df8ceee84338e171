//! The committed fuzz corpora as plain tests: every seed, and every seed with one byte changed.

use std::fs;
use std::path::Path;

/// The number of bytes of a seed that are changed, one at a time. With more, a seed of a kilobyte
/// would take longer than all other tests of its crate.
const CHANGED_BYTES_MAX: usize = 400;

/// The fewest seeds of a target: with fewer, its folder is incomplete.
const SEEDS_MIN: usize = 2;

/// Passes each seed of `fuzz/corpus/TARGET` to the target's body, unchanged and with each byte
/// replaced by each of `bytes`, which should have a meaning in that format.
///
/// # Panics
/// The body panics, or the seeds cannot be read.
pub fn hold(target: &str, bytes: &[u8], body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let folder = folder.join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut seeds = 0;
    for entry in entries {
        let path = entry
            .unwrap_or_else(|error| panic!("{target}: {error}"))
            .path();
        // Local findings of a fuzzer are not committed, and are too many for a test.
        if path.extension().is_none_or(|extension| extension != "seed") {
            continue;
        }
        let seed = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        body(&seed);
        for at in 0..seed.len().min(CHANGED_BYTES_MAX) {
            for byte in bytes {
                let mut changed = seed.clone();
                changed[at] = *byte;
                body(&changed);
            }
        }
        seeds += 1;
    }
    assert!(seeds >= SEEDS_MIN, "{target}: {seeds} seeds");
}

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use super::*;

/// A fuzz target and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[("cache_freshness", freshness), ("cache_file", stored_file)];

#[test]
fn committed_corpora_hold() {
    for (name, body) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(name);
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // What fuzzing has found on this machine is not committed, and too much for a test.
            if path.extension().is_none_or(|extension| extension != "seed") {
                continue;
            }
            let seed = fs::read(path).unwrap();
            body(&seed);
            for at in 0..seed.len() {
                for byte in *b"\n :,=\"*@0\0\xff" {
                    let mut changed = seed.clone();
                    changed[at] = byte;
                    body(&changed);
                }
            }
            count += 1;
        }
        assert!(count > 1, "{name}");
    }
}

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use super::*;

/// A fuzz target and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("h1_request", h1_request),
    ("h1_response", h1_response),
    ("h1_chunked", h1_chunked),
    ("dns_answer", dns_answer),
];

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
            // Every byte in turn replaced by those that mean something somewhere.
            for at in 0..seed.len().min(200) {
                for byte in *b"\r\n :/.%\0\x80" {
                    let mut changed = seed.clone();
                    changed[at] = byte;
                    body(&changed);
                }
            }
            count += 1;
        }
        assert!(count > 2, "{name}");
    }
}

use turnpike_testkit::corpus;

use super::*;

/// A fuzz target and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[("cache_freshness", freshness), ("cache_file", stored_file)];

#[test]
fn committed_corpora_hold() {
    for (name, body) in TARGETS {
        corpus::hold(name, b"\n :,=\"*@0\0\xff", body);
    }
}

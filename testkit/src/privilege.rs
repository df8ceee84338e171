//! The privileges that some tests need. Without them a test is skipped by name and counted.

use std::io::Write;

/// The capabilities that tests need, and their numbers in `linux/capability.h`.
const CAPABILITIES: &[(&str, u32)] = &[
    ("CAP_NET_ADMIN", 12),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_CHOWN", 0),
    ("CAP_SETUID", 7),
    ("CAP_BPF", 39),
];

/// Whether this process lacks the capability, so that the test must be skipped. If so, a line on
/// standard error reports it: `skipped: TEST needs root (CAPABILITY)`. `cargo xtask unit` counts
/// these lines. The line bypasses the capture of the test harness.
///
/// # Panics
/// The capability is not in the table above.
pub fn needs_root(test: &str, capability: &str) -> bool {
    let row = CAPABILITIES.iter().find(|(name, _)| *name == capability);
    let Some((_, number)) = row else {
        panic!("no capability is called \"{capability}\": see testkit/src/privilege.rs");
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if has(&status, *number) {
        return false;
    }
    // It is one write, so that lines of parallel tests do not mix.
    let line = format!("skipped: {test} needs root ({capability})\n");
    let _ = std::io::stderr().write_all(line.as_bytes()); // without a reader the line is lost
    true
}

/// Whether the effective set in a text of `/proc/PID/status` has the capability.
fn has(status: &str, number: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> number & 1 == 1)
}

#[cfg(test)]
mod tests;

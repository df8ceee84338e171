//! The memory that zones may take, beside the limit of the control group: a container whose zones
//! are larger is killed when they fill.

use std::collections::BTreeMap;

use turnpike_host::Host;

/// The limit of the control group that this process is in, in bytes.
pub(crate) fn limit_bytes() -> Option<u64> {
    Host::here().cgroup().memory_bytes_max
}

/// A warning where the zones together are larger than the limit. `zones` are the bytes of each, by
/// its name and its directive.
pub(crate) fn warning(
    zones: &BTreeMap<(String, &'static str), u64>,
    limit_bytes: Option<u64>,
) -> Option<String> {
    let limit_bytes = limit_bytes?;
    let total_bytes: u64 = zones.values().sum();
    if total_bytes <= limit_bytes {
        return None;
    }
    let ((name, directive), bytes) = zones.iter().max_by_key(|(_, bytes)| **bytes)?;
    Some(format!(
        "the zones can grow to {}, more than the {} of memory that the control group allows; the \
         largest is \"{name}\" of \"{directive}\" with {}: make zones smaller, or raise the limit",
        megabytes(total_bytes),
        megabytes(limit_bytes),
        megabytes(*bytes)
    ))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1024.0 * 1024.0))
}

//! The memory that zones may take, beside the limit of the control group: a container whose zones
//! are larger is killed when they fill.

use std::collections::BTreeMap;

use turnpike_conf::View;
use turnpike_conf::value::size;
use turnpike_host::Host;

/// Directives whose zones grow up to their size, and where it stands: behind a name, after a colon.
const ZONES: &[(&str, &str)] = &[
    ("limit_req_zone", "zone="),
    ("limit_conn_zone", "zone="),
    ("proxy_cache_path", "keys_zone="),
    ("fastcgi_cache_path", "keys_zone="),
    ("uwsgi_cache_path", "keys_zone="),
    ("scgi_cache_path", "keys_zone="),
];

/// The limit of the control group that this process is in, in bytes.
pub(crate) fn limit_bytes() -> Option<u64> {
    Host::here().cgroup().memory_bytes_max
}

/// A warning where the zones together are larger than the limit.
pub(crate) fn warning(root: View<'_>, limit_bytes: Option<u64>) -> Option<String> {
    let limit_bytes = limit_bytes?;
    let zones = zones(root);
    let total_bytes: u64 = zones.values().sum();
    if total_bytes <= limit_bytes {
        return None;
    }
    let (name, bytes) = zones.iter().max_by_key(|(_, bytes)| **bytes)?;
    Some(format!(
        "the zones can grow to {}, more than the {} of memory that the control group allows; the \
         largest is {name} with {}: make zones smaller, or raise the limit",
        megabytes(total_bytes),
        megabytes(limit_bytes),
        megabytes(*bytes)
    ))
}

/// Zones by what a person calls them, with their sizes.
fn zones(root: View<'_>) -> BTreeMap<String, u64> {
    let mut zones = BTreeMap::new();
    for view in root.children("http").chain(root.children("stream")) {
        for (directive, parameter) in ZONES {
            for entry in view.own_all(directive) {
                let words = entry.arguments.iter();
                let found = words.filter_map(|word| word.text.strip_prefix(parameter));
                for (name, bytes) in found.filter_map(|zone| zone.split_once(':')) {
                    let name = format!("\"{name}\" of \"{directive}\"");
                    zones.insert(name, size(bytes).unwrap_or(0));
                }
            }
        }
    }
    zones
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1024.0 * 1024.0))
}

//! Paths: what they may be, and how they become locations in the order that ingress-nginx gives
//! them.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::Ingress;

use super::{Location, Server, hosts};
use crate::findings::{Finding, Level};
use crate::settings::Settings;
use crate::values::only;

/// The longest path of a rule: nginx's own limit of a word in a configuration is 4096 bytes.
const PATH_BYTES_MAX: usize = 2048;

/// How a path is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    Exact,
    Prefix,
    /// As nginx matches a prefix: also inside of a segment.
    Specific,
}

impl Match {
    /// The meaning of a `pathType`.
    pub(super) fn of(path_type: &str) -> Match {
        match path_type {
            "Exact" => Match::Exact,
            "Prefix" => Match::Prefix,
            _ => Match::Specific,
        }
    }
}

/// Checks the hosts and paths of an Ingress.
///
/// # Errors
/// Which one is not good, and why.
pub(super) fn check(ingress: &Ingress, settings: &Settings) -> Result<(), String> {
    for (host, paths) in hosts(ingress) {
        if !is_host(&host) {
            return Err(format!("\"{}\" is not a host name", host.escape_debug()));
        }
        for path in paths {
            let text = path.path.as_deref().unwrap_or("/");
            let shown = text.escape_debug();
            if !text.is_empty() && !text.starts_with('/') {
                return Err(format!("the path \"{shown}\" does not start with /"));
            }
            if text.len() > PATH_BYTES_MAX {
                return Err(format!("a path is longer than {PATH_BYTES_MAX} bytes"));
            }
            if text.chars().any(char::is_control) {
                return Err(format!("the path \"{shown}\" has control characters"));
            }
            let is_strict = settings.flag("strict-validate-path-type");
            let is_specific = Match::of(&path.path_type) == Match::Specific;
            if is_strict && !is_specific && !only(text, "/._-") {
                return Err(format!(
                    "the path \"{shown}\" cannot be used with pathType {}: it needs \
                     ImplementationSpecific, or strict-validate-path-type \"false\"",
                    path.path_type
                ));
            }
        }
    }
    Ok(())
}

/// Whether all paths of a server are regular expressions, since one of them asks for it.
pub(crate) fn needs_patterns(server: &Server) -> bool {
    server.locations.iter().any(is_pattern)
}

fn is_pattern(location: &Location) -> bool {
    let Some(tenant) = &location.tenant else {
        return false;
    };
    if location.is_default {
        return false;
    }
    let target = tenant.annotations.text("rewrite-target");
    let rewrites = target.is_some_and(|target| target != location.written_path);
    rewrites || tenant.annotations.flag("use-regex")
}

/// Adds the exact location of a prefix, sorts the locations (the longest first), and leaves out
/// those that would be the same to the engine.
pub(super) fn arrange(server: &mut Server, findings: &mut Vec<Finding>) {
    let written = std::mem::take(&mut server.locations);
    let exact: BTreeSet<String> = written
        .iter()
        .filter(|location| location.matched == Match::Exact)
        .map(|location| location.path.clone())
        .collect();
    for mut location in written {
        let is_simple = location.matched != Match::Prefix || location.path == "/";
        if is_simple || is_pattern(&location) {
            server.locations.push(location);
            continue;
        }
        if !exact.contains(&location.path) {
            let mut own = location.clone();
            own.matched = Match::Exact;
            server.locations.push(own);
        }
        if !location.path.ends_with('/') {
            location.path.push('/');
        }
        server.locations.push(location);
    }
    server.locations.sort_by(|a, b| {
        let by_length = b.path.len().cmp(&a.path.len());
        by_length.then_with(|| b.path.cmp(&a.path))
    });
    let are_patterns = needs_patterns(server);
    let mut seen = BTreeSet::new();
    server.locations.retain(|location| {
        let kind = if are_patterns {
            0
        } else {
            u8::from(location.matched == Match::Exact) + 1
        };
        let is_new = seen.insert((kind, location.path.clone()));
        if let (false, false, Some(tenant)) = (is_new, are_patterns, &location.tenant) {
            findings.push(Finding {
                subject: tenant.subject.clone(),
                level: Level::LeftOut,
                text: format!(
                    "{}{} is the same as another path of this host",
                    server.host, location.written_path
                ),
                awaits_other: false,
            });
        }
        is_new || are_patterns
    });
}

/// Whether a host is a name, or `*.` and a name.
fn is_host(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let length_is_good = !name.is_empty() && host.len() <= 253;
    length_is_good && (host == super::CATCH_ALL || only(name, ".-"))
}

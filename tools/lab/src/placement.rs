//! The CPUs of server and driver.
//!
//! `all`; `first N`; a list as `0-3,6`; `rest`: those without the server; `rest or all`: those, or
//! all if none is left. Fewer CPUs than requested are always an error.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// CPUs of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) server: Vec<usize>,
    pub(crate) driver: Vec<usize>,
}

impl Placed {
    /// Whether both sides have a CPU in common.
    pub(crate) fn is_shared(&self) -> bool {
        self.server.iter().any(|cpu| self.driver.contains(cpu))
    }
}

/// The CPUs that this process may use.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Resolves both placements.
///
/// # Errors
/// The message, if the machine does not have these CPUs.
pub(crate) fn place(server: &str, driver: &str, allowed: &[usize]) -> Result<Placed, String> {
    let server = cpus(server, allowed, &[])?;
    let driver = cpus(driver, allowed, &server)?;
    Ok(Placed { server, driver })
}

fn cpus(wish: &str, allowed: &[usize], serving: &[usize]) -> Result<Vec<usize>, String> {
    let wish = wish.trim();
    let rest: Vec<usize> = allowed
        .iter()
        .copied()
        .filter(|cpu| !serving.contains(cpu))
        .collect();
    match wish {
        "all" => return Ok(allowed.to_vec()),
        "rest" if rest.is_empty() => {
            return Err(format!(
                "not enough CPUs: the server takes all {} and none is left to drive",
                allowed.len()
            ));
        }
        "rest" => return Ok(rest),
        "rest or all" if rest.is_empty() => return Ok(allowed.to_vec()),
        "rest or all" => return Ok(rest),
        _ => (),
    }
    if let Some(count) = wish.strip_prefix("first ") {
        let count: usize = count
            .trim()
            .parse()
            .map_err(|_| format!("cannot read the placement \"{wish}\""))?;
        return if count > 0 && count <= allowed.len() {
            Ok(allowed[..count].to_vec())
        } else {
            Err(format!(
                "not enough CPUs: {count} asked for, {} there",
                allowed.len()
            ))
        };
    }
    list(wish, allowed)
}

fn list(wish: &str, allowed: &[usize]) -> Result<Vec<usize>, String> {
    let unreadable = || format!("cannot read the placement \"{wish}\"");
    let mut cpus = Vec::new();
    for part in wish.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| unreadable())?;
        let last: usize = last.trim().parse().map_err(|_| unreadable())?;
        if first > last || last >= CpuSet::count() {
            return Err(unreadable());
        }
        cpus.extend(first..=last);
    }
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(format!(
            "not enough CPUs: CPU {cpu} asked for, {} there",
            allowed.len()
        )),
        None => Ok(cpus),
    }
}

#[cfg(test)]
mod tests;

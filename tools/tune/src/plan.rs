//! What is to be changed, in order: facts and findings in, a plan out. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::change::{Change, MARK};
use crate::facts::Facts;
use crate::findings::Finding;
use crate::row::Severity;

/// The version of the format.
pub(crate) const SCHEMA: &str = "turnpike-tune-plan/1";

/// Changes with their reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) schema: String,
    /// The machine that it was made for, in a line.
    pub(crate) machine: String,
    pub(crate) steps: Vec<Step>,
    /// The CPUs that a placement leaves to the workers; none in other plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workers: Vec<usize>,
}

/// One change and the findings that ask for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) findings: Vec<String>,
    pub(crate) change: Change,
}

/// Which findings' changes are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// Notes too, whose changes are worth an experiment only.
    pub(crate) notes: bool,
    /// Only these findings, whatever their severity; all if empty.
    pub(crate) only: Vec<String>,
}

impl Wish {
    fn wants(&self, finding: &Finding) -> bool {
        match self.only.is_empty() {
            true => self.notes || finding.seen.severity > Severity::Note,
            false => self.only.iter().any(|id| id == finding.row.id),
        }
    }
}

/// The plan for a machine. Where findings ask for different numbers of one setting, the larger
/// stays: all of them are least values.
pub(crate) fn make(facts: &Facts, findings: &[Finding], wish: &Wish) -> Plan {
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| wish.wants(finding)) {
        for change in &finding.seen.changes {
            let id = finding.row.id.to_owned();
            let step = steps.entry(change.target()).or_insert_with(|| Step {
                findings: Vec::new(),
                change: change.clone(),
            });
            if number(change) > number(&step.change) {
                step.change = change.clone();
            }
            step.findings.push(id);
        }
    }
    Plan {
        schema: SCHEMA.to_owned(),
        machine: facts.machine(),
        steps: steps.into_values().collect(),
        workers: Vec::new(),
    }
}

fn number(change: &Change) -> Option<u64> {
    match change {
        Change::Setting { value, .. } => value.parse().ok(),
        _ => None,
    }
}

/// A file that keeps changes over a restart of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The files of the distribution that keep these changes. Interrupts have none: their numbers
/// differ from start to start.
pub(crate) fn kept<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<Kept> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for change in changes {
        let (path, line) = match change {
            Change::Setting { name, value } => (
                "/etc/sysctl.d/99-turnpike-tune.conf",
                format!("{name} = {value}\n"),
            ),
            Change::ReceiveMask {
                interface,
                queue,
                mask,
            } => (
                "/etc/udev/rules.d/99-turnpike-tune.rules",
                format!(
                    "ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{interface}\", \
                     ATTR{{queues/rx-{queue}/rps_cpus}}=\"{mask}\"\n"
                ),
            ),
            Change::Interrupt { .. } | Change::ServiceFiles { .. } => continue,
        };
        files
            .entry(path)
            .or_insert_with(|| MARK.to_owned())
            .push_str(&line);
    }
    let files = files.into_iter().map(|(path, text)| Kept {
        path: path.to_owned(),
        text,
    });
    files.collect()
}

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
    /// Why it is made only when it is asked for by name; `None` for a step that has no danger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caution: Option<String>,
}

impl Step {
    pub(crate) fn new(findings: Vec<String>, change: Change) -> Step {
        Step {
            findings,
            change,
            caution: None,
        }
    }
}

impl Plan {
    /// Takes the steps out that have a caution, unless they are asked for by their settings' names.
    ///
    /// # Errors
    /// A name that no such step has.
    pub(crate) fn take_cautioned(&mut self, also: &[String]) -> Result<Vec<Step>, String> {
        let name = |step: &Step| match (&step.change, &step.caution) {
            (Change::Setting { name, .. }, Some(_)) => Some(name.clone()),
            _ => None,
        };
        let names: Vec<String> = self.steps.iter().filter_map(name).collect();
        if let Some(other) = also.iter().find(|other| !names.contains(other)) {
            return Err(format!("the plan has no caution about {other}"));
        }
        let is_left = |step: &Step| {
            let is_asked = name(step).is_some_and(|name| also.contains(&name));
            step.caution.is_some() && !is_asked
        };
        let steps = std::mem::take(&mut self.steps).into_iter();
        let (left, steps) = steps.partition(is_left);
        self.steps = steps;
        Ok(left)
    }
}

/// Which findings' changes are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindingFilter {
    /// Notes too, whose changes are worth an experiment only.
    pub(crate) notes: bool,
    /// Only these findings, whatever their severity; all if empty.
    pub(crate) only: Vec<String>,
}

impl FindingFilter {
    fn wants(&self, finding: &Finding) -> bool {
        if self.only.is_empty() {
            self.notes || finding.seen.severity > Severity::Note
        } else {
            self.only.iter().any(|id| id == finding.row.id)
        }
    }
}

/// The plan for a machine. Where findings ask for different numbers of one setting, the larger
/// stays: all of them are least values.
pub(crate) fn make(facts: &Facts, findings: &[Finding], wish: &FindingFilter) -> Plan {
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| wish.wants(finding)) {
        for change in &finding.seen.changes {
            let id = finding.row.id.to_owned();
            let step = steps
                .entry(change.target())
                .or_insert_with(|| Step::new(Vec::new(), change.clone()));
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

//! Kernel settings that a study or a level changes, restored when they are dropped.

use std::collections::BTreeMap;

use crate::error::LabError;
use crate::topology::Topology;

/// Old values by path; written back when dropped.
#[derive(Debug)]
pub(super) struct Changed<'a> {
    topology: &'a Topology,
    old: Vec<(String, String)>,
}

impl<'a> Changed<'a> {
    /// Changes settings.
    ///
    /// # Errors
    /// The setting that this machine does not have or does not let us change; those before it are
    /// put back.
    pub(super) fn make(
        settings: &BTreeMap<String, String>,
        topology: &'a Topology,
    ) -> Result<Changed<'a>, LabError> {
        let mut changed = Changed {
            topology,
            old: Vec::new(),
        };
        for (name, value) in settings {
            let path = name.replace('.', "/");
            let wrong = |error: std::io::Error| LabError::File {
                name: format!("sysctl {name}={value}"),
                text: error.to_string(),
            };
            let old = topology.setting(&path).map_err(wrong)?;
            if old != *value {
                topology.change(&path, value).map_err(wrong)?;
                changed.old.push((path, old));
            }
        }
        Ok(changed)
    }

    /// Changes the settings that can be changed; the others are reported.
    pub(super) fn where_possible(
        settings: &BTreeMap<String, String>,
        topology: &'a Topology,
    ) -> (Changed<'a>, Vec<String>) {
        let mut all = Changed {
            topology,
            old: Vec::new(),
        };
        let mut notes = Vec::new();
        for (name, value) in settings {
            let one = BTreeMap::from([(name.clone(), value.clone())]);
            match Changed::make(&one, topology) {
                Ok(mut changed) => all.old.append(&mut changed.old),
                Err(error) => notes.push(format!("not set: {error}")),
            }
        }
        (all, notes)
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        for (path, old) in self.old.iter().rev() {
            if let Err(error) = self.topology.change(path, old) {
                eprintln!("please write {old} to /proc/sys/{path} again: {error}");
            }
        }
    }
}

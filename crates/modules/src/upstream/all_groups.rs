//! The groups of one configuration, of `http` and of `stream`, by the names that commands have for
//! them.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_plan::builder::Builder;
use turnpike_upstream::Group;

use super::passed::Passed;

/// A group and its name for commands: `stream:` and the name for those of `stream`.
pub(super) type NamedGroup = (String, Arc<Group>);

/// The groups that were added while the plans were built.
#[derive(Default)]
pub(super) struct AllGroups(Mutex<Vec<NamedGroup>>);

impl AllGroups {
    /// The groups of the configuration whose plan is built.
    pub(super) fn of<S>(builder: &mut Builder<'_, S>) -> Arc<AllGroups> {
        let make = || Arc::new(AllGroups::default()) as Arc<dyn Any + Send + Sync>;
        let shared = builder.environment.shared("upstream groups", &make);
        shared.downcast().unwrap_or_default()
    }

    /// Adds a group to which `S` is passed.
    pub(super) fn add<S: Passed>(&self, group: &Arc<Group>) {
        let name = format!("{}{}", S::NAME_PREFIX, group.name());
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push((name, Arc::clone(group)));
    }

    /// All of them, in the order of the configuration, those of `http` first.
    pub(super) fn list(&self) -> Vec<NamedGroup> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

//! Work on the groups of the plan that no request starts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use turnpike_conf::{ConfError, View};
use turnpike_lane::log::ErrorLog;
use turnpike_plan::background::{Running, Service};
use turnpike_plan::builder::Builder;
use turnpike_upstream::{BackgroundTask, Group};

/// What was collected while the plan is built.
#[derive(Clone, Default)]
pub(super) struct BackgroundTasks(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    tasks: Vec<Arc<dyn BackgroundTask>>,
    groups: Vec<Arc<Group>>,
}

impl BackgroundTasks {
    /// Adds work.
    pub(super) fn add(&self, work: Arc<dyn BackgroundTask>) {
        self.collected().tasks.push(work);
    }

    /// The groups of the plan.
    pub(super) fn groups(&self) -> Vec<Arc<Group>> {
        self.collected().groups.clone()
    }

    /// Adds a group of the plan.
    pub(super) fn add_group(&self, group: &Arc<Group>) {
        self.collected().groups.push(Arc::clone(group));
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of the http level.
pub(super) fn log<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<ErrorLog, ConfError> {
    builder.error_log(view)
}

/// Has the work go on while the plan is in force.
pub(super) fn offer<S>(builder: &mut Builder<'_, S>) {
    let tasks = builder.store::<BackgroundTasks>().clone();
    builder.service(Arc::new(tasks));
}

impl Service for BackgroundTasks {
    fn prepare(&self) {
        for group in &self.collected().groups {
            group.keep_checks();
        }
    }

    fn run(self: Arc<Self>) -> Running {
        let tasks = self.collected().tasks.clone();
        Box::pin(async move {
            // Dropped, the set ends its tasks.
            let mut set = JoinSet::new();
            for task in tasks {
                set.spawn_local(task.run());
            }
            while set.join_next().await.is_some() {}
        })
    }
}

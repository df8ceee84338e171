//! BackgroundTask of the plan that no request asks for, and the one thread that does it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnpike_conf::{ConfError, View};
use turnpike_http::lane::LaneState;
use turnpike_http::plan::Builder;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_upstream::{BackgroundTask, BackgroundThread, Group};

/// Numbers the configurations that were read, so that the newest takes the background thread over.
static ORDER: AtomicU64 = AtomicU64::new(1);

/// What was collected while the plan is built.
#[derive(Clone, Default)]
pub(super) struct BackgroundTasks(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    tasks: Vec<Arc<dyn BackgroundTask>>,
    groups: Vec<Arc<Group>>,
}

/// A lane has taken the plan up.
struct PlanInUse;

impl LaneState for PlanInUse {}

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
pub(super) fn log(view: View<'_>, builder: &mut Builder<'_>) -> Result<ErrorLog, ConfError> {
    let entries = view.nearest_all("error_log");
    let log = builder.environment.error_log(&entries);
    log.map_err(|message| view.error(view.span(), message))
}

/// Has the work begun when the first lane takes the plan up: a plan that is only looked at has
/// nothing done.
pub(super) fn begin_with_lanes(builder: &mut Builder<'_>, log: ErrorLog) {
    let tasks = builder.store::<BackgroundTasks>().clone();
    let make = || Arc::new(BackgroundThread::default()) as Arc<dyn Any + Send + Sync>;
    let background = builder
        .environment
        .zone("upstream background thread", &make);
    let background: Arc<BackgroundThread> = background.downcast().unwrap_or_default();
    let order = ORDER.fetch_add(1, Ordering::Relaxed);
    builder.lane_state(move || {
        let collected = tasks.collected();
        collected
            .groups
            .iter()
            .for_each(|group| group.keep_checks());
        if let Err(error) = background.take_up(order, &collected.tasks) {
            let line = format_args!("cannot start the thread that looks after upstreams ({error})");
            log.event(Level::Alert, line);
        }
        PlanInUse
    });
}

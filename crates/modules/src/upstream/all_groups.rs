//! The groups of one configuration, of `http` and of `stream`, by the names that commands have for
//! them, and what commands have changed in them.
//!
//! What was changed is held in memory that outlives the process, and is in force in all plans that
//! have the group with the same lines: while a reload goes on, there are two.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use turnpike_lane::log::{ErrorLog, Level};
use turnpike_plan::background::{Running, Service};
use turnpike_plan::builder::Builder;
use turnpike_plan::control::{CommandError, Value, json};
use turnpike_plan::held::HeldValues;
use turnpike_upstream::{Address, Group};

use super::changes::Changes;
use super::passed::Passed;
use super::state_file::{self, StateFile};

/// What a group's configuration says of it, for commands.
pub(super) struct GroupFacts {
    /// Of the kind of groups, and the name.
    pub(super) key: String,
    /// What is told apart from other lines: changes hold as long as it stays.
    pub(super) lines: String,
    /// The addresses of its `server` lines.
    pub(super) addresses: Vec<Address>,
    pub(super) state: Option<StateFile>,
}

/// A group as commands know it.
pub(super) struct NamedGroup {
    /// The name for commands: `stream:` and the name for groups of `stream`.
    pub(super) name: String,
    /// Port of servers that are written without one; 0: one must be written.
    pub(super) default_port: u16,
    pub(super) group: Arc<Group>,
    facts: GroupFacts,
    live: Arc<LiveGroups>,
    held: Option<Arc<HeldValues>>,
    log: ErrorLog,
}

/// The groups of one key in all plans that are in use.
#[derive(Default)]
struct LiveGroups(Mutex<Live>);

#[derive(Default)]
struct Live {
    /// The lines that are in force.
    lines: String,
    groups: Vec<Weak<NamedGroup>>,
}

impl LiveGroups {
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a server comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Configuration,
    Command,
    State,
}

impl Origin {
    /// The word in lists.
    pub(super) fn text(self) -> &'static str {
        match self {
            Origin::Configuration => "configuration",
            Origin::Command => "command",
            Origin::State => "state",
        }
    }
}

impl NamedGroup {
    /// A group that no configuration has.
    #[cfg(test)]
    pub(super) fn alone(name: &str, group: Arc<Group>, facts: GroupFacts) -> Arc<NamedGroup> {
        let held = HeldValues::private().ok().map(Arc::new);
        let lines = facts.lines.clone();
        let named = Arc::new(NamedGroup {
            name: name.to_owned(),
            default_port: super::servers::DEFAULT_PORT,
            group,
            facts,
            live: Arc::default(),
            held,
            log: ErrorLog::none(),
        });
        *named.live.lock() = Live {
            lines,
            groups: vec![Arc::downgrade(&named)],
        };
        named
    }

    /// Where a server with this address comes from.
    pub(super) fn origin(&self, changes: &Changes, address: &Address) -> Origin {
        let mut added = changes.added.iter().flat_map(|given| &given.addresses);
        match &self.facts.state {
            Some(_) => Origin::State,
            None if added.any(|added| added == address) => Origin::Command,
            None => Origin::Configuration,
        }
    }

    /// The file of `state`.
    pub(super) fn state_file(&self) -> Option<&StateFile> {
        self.facts.state.as_ref()
    }

    /// What commands have changed.
    pub(super) fn changes(&self) -> Changes {
        let held = self.held.as_ref();
        self.read(held.and_then(|held| held.value(&self.facts.key)))
    }

    /// Changes what commands have changed: it is held, and written to the file of `state`, before
    /// any request is chosen a server by it.
    ///
    /// # Errors
    /// Those of `change`, and why it cannot be held or written. Nothing has changed then.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Changes) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let failed = |message: &str| CommandError::Failed(message.to_owned());
        let held = self.held.as_ref();
        let held = held.ok_or_else(|| failed("there is no memory for changes"))?;
        let live = self.live.lock();
        if live.lines != self.facts.lines {
            return Err(failed(
                "a reload has changed the upstream meanwhile; try again",
            ));
        }
        let mut made = Changes::default();
        held.change(&self.facts.key, |before| {
            made = self.read(before);
            change(&mut made)?;
            if let Some(state) = &self.facts.state {
                state.write(&made).map_err(CommandError::Failed)?;
            }
            let is_changed = self.facts.state.is_some() || made != Changes::default();
            Ok(is_changed.then(|| json!({ "lines": self.facts.lines, "changes": made.value() })))
        })?;
        let groups = live.groups.iter().filter_map(Weak::upgrade);
        for group in groups.filter(|group| group.facts.lines == self.facts.lines) {
            group.apply(&made);
        }
        Ok(())
    }

    /// Puts in force what is held for the lines of this configuration; what was changed under other
    /// lines is forgotten.
    fn restore(&self) {
        let mut live = self.live.lock();
        live.lines.clone_from(&self.facts.lines);
        let (held, key) = (self.held.as_ref(), &self.facts.key);
        let value = held.and_then(|held| held.value(key));
        if let (Some(held), Some(value)) = (held, &value)
            && value["lines"] != self.facts.lines.as_str()
            && held.change(key, |_| Ok(None)).is_ok()
        {
            let name = &self.name;
            let message = format_args!(
                "the lines of upstream \"{name}\" have changed: the changes that commands had \
                 made are dropped"
            );
            self.log.event(Level::Notice, message);
        }
        self.apply(&self.read(value));
    }

    /// What is held for the lines of this configuration.
    fn read(&self, held: Option<Value>) -> Changes {
        let held = held.filter(|value| value["lines"] == self.facts.lines.as_str());
        let changes = held.and_then(|value| Changes::from_value(&value["changes"]));
        changes.unwrap_or_else(|| match &self.facts.state {
            Some(state) => state_file::changes(state.servers.clone()),
            None => Changes::default(),
        })
    }

    fn apply(&self, changes: &Changes) {
        let commanded = changes.commanded(self.group.states(), &self.facts.addresses);
        self.group.command(commanded);
    }
}

/// The groups that were added while the plans were built.
#[derive(Default)]
pub(super) struct AllGroups {
    groups: Mutex<Vec<Arc<NamedGroup>>>,
}

impl AllGroups {
    /// The groups of the configuration whose plan is built.
    pub(super) fn of<S>(builder: &mut Builder<'_, S>) -> Arc<AllGroups> {
        let make = || Arc::new(AllGroups::default()) as Arc<dyn Any + Send + Sync>;
        let shared = builder.environment.shared("upstream groups", &make);
        shared.downcast().unwrap_or_default()
    }

    /// Adds a group to which `S` is passed.
    pub(super) fn add<S: Passed>(
        &self,
        builder: &mut Builder<'_, S>,
        group: &Arc<Group>,
        facts: GroupFacts,
        log: ErrorLog,
    ) {
        let make = || Arc::new(LiveGroups::default()) as Arc<dyn Any + Send + Sync>;
        let live = builder
            .environment
            .zone(&format!("live {}", facts.key), &make);
        let named = Arc::new(NamedGroup {
            name: format!("{}{}", S::NAME_PREFIX, group.name()),
            default_port: S::DEFAULT_PORT,
            group: Arc::clone(group),
            facts,
            live: live.downcast().unwrap_or_default(),
            held: builder.environment.held_values(),
            log,
        });
        let mut live = named.live.lock();
        live.groups.retain(|group| group.strong_count() > 0);
        live.groups.push(Arc::downgrade(&named));
        drop(live);
        self.lock().push(named);
    }

    /// All of them, in the order of the configuration, those of `http` first.
    pub(super) fn list(&self) -> Vec<Arc<NamedGroup>> {
        self.lock().clone()
    }

    #[cfg(test)]
    pub(super) fn with(group: Arc<NamedGroup>) -> Arc<AllGroups> {
        let groups = Mutex::new(vec![group]);
        Arc::new(AllGroups { groups })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<NamedGroup>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups of a plan that comes into force have the servers that commands have left them.
impl Service for AllGroups {
    fn prepare(&self) {
        let groups = self.list();
        for group in &groups {
            group.restore();
        }
        let held = groups.first().and_then(|group| group.held.as_ref());
        if let Some(held) = held {
            held.retain(|key| groups.iter().any(|group| group.facts.key == key));
        }
    }

    fn run(self: Arc<Self>) -> Running {
        Box::pin(std::future::ready(()))
    }
}

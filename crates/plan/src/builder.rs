//! The builder of a plan for any protocol: the data that is collected while directives are read.
//!
//! The builder continues after an error, so that `-t` can report all of them. It affects the
//! outside world only through [`Environment`].

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, Span, View, Word};
use turnpike_lane::log::ErrorLog;
use turnpike_lane::sys::process;

use crate::background::Service;
use crate::control::{Command, CommandRow};
use crate::environment::Environment;
use crate::lane::{LaneSlot, LaneState, LaneStateMaker};
use crate::metrics;
use crate::regex::Programs;
use crate::template::Template;
use crate::variables::VariableTable;

/// The errors because of which there is no plan.
#[derive(Debug)]
pub struct PlanError(pub Vec<ConfError>);

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanError {}

/// An unfinished plan, for subjects `S`.
pub struct Builder<'e, S: 'static> {
    /// The variables so far.
    pub variables: VariableTable<S>,
    /// The environment of the process.
    pub environment: &'e mut dyn Environment,
    /// The machine's name.
    pub host_name: String,
    lane_states: Vec<LaneStateMaker>,
    offers: Offers,
    errors: Vec<ConfError>,
    stores: HashMap<TypeId, Box<dyn Any>>,
    /// Error logs by the number of the block that they are inherited from.
    error_logs: HashMap<usize, ErrorLog>,
}

/// The part of a plan that every protocol has.
pub struct Shared<S: 'static> {
    /// The variables in the configuration.
    pub variables: VariableTable<S>,
    /// The machine's name when the plan was built.
    pub host_name: String,
    /// The makers of each lane's state for this plan, by slot.
    pub lane_states: Vec<LaneStateMaker>,
    /// The work of the families beside the lanes.
    pub offers: Offers,
}

/// The work that the families of a plan offer the process beside serving: the same whatever
/// protocol the plan is for.
#[derive(Default)]
pub struct Offers {
    /// The commands, each with its implementation.
    pub commands: Vec<(&'static CommandRow, Arc<dyn Command>)>,
    /// The readers of the families' metrics.
    pub readers: Vec<Arc<dyn metrics::Reader>>,
    /// The background services of the families while the plan is in force.
    pub services: Vec<Arc<dyn Service>>,
}

impl Offers {
    /// The implementation of the command of that name.
    pub fn command(&self, name: &str) -> Option<Arc<dyn Command>> {
        let mut commands = self.commands.iter();
        let (_, command) = commands.find(|(row, _)| row.name == name)?;
        Some(Arc::clone(command))
    }
}

impl<'e, S> Builder<'e, S> {
    /// A builder with these variables.
    pub fn new(mut variables: VariableTable<S>, environment: &'e mut dyn Environment) -> Self {
        variables.programs.purpose = environment.purpose();
        Self {
            variables,
            environment,
            host_name: process::host_name(),
            lane_states: Vec::new(),
            offers: Offers::default(),
            errors: Vec::new(),
            stores: HashMap::new(),
            error_logs: HashMap::new(),
        }
    }

    /// The collected data.
    ///
    /// # Errors
    /// All reported errors.
    pub fn finish(mut self) -> Result<Shared<S>, Vec<ConfError>> {
        self.variables.programs = Programs::default();
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        Ok(Shared {
            variables: self.variables,
            host_name: self.host_name,
            lane_states: self.lane_states,
            offers: self.offers,
        })
    }

    /// The data of a family while the plan is built: formats by name, zones by name.
    pub fn store<T: Default + 'static>(&mut self) -> &mut T {
        let boxed = self
            .stores
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::<T>::default() as Box<dyn Any>);
        match boxed.downcast_mut::<T>() {
            Some(store) => store,
            None => unreachable!("stores are keyed by their own type"),
        }
    }

    /// Reserves a slot for each lane's state for this plan; `make` creates it when a lane takes the
    /// plan.
    pub fn lane_state<T: LaneState>(
        &mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> LaneSlot<T> {
        let slot = LaneSlot::new(self.lane_states.len());
        self.lane_states.push(Box::new(move || Box::new(make())));
        slot
    }

    /// Adds a command of a family to the control socket, while this plan is in force.
    pub fn command(&mut self, row: &'static CommandRow, command: Arc<dyn Command>) {
        self.offers.commands.push((row, command));
    }

    /// Adds metrics of a family, while this plan is in force.
    pub fn metrics(&mut self, reader: Arc<dyn metrics::Reader>) {
        self.offers.readers.push(reader);
    }

    /// Adds a background service, which starts when this plan comes into force.
    pub fn service(&mut self, service: Arc<dyn Service>) {
        self.offers.services.push(service);
    }

    /// Compiles a template of a directive.
    ///
    /// # Errors
    /// The template's error, with the directive's place.
    pub fn template(
        &mut self,
        view: View<'_>,
        entry: &Entry,
        text: &[u8],
    ) -> Result<Template, ConfError> {
        Template::compile(text, &mut self.variables)
            .map_err(|message| view.error(entry.span, message))
    }

    /// The error log in force in a block.
    ///
    /// # Errors
    /// What is wrong with it, at the first directive.
    pub fn error_log(&mut self, view: View<'_>) -> Result<ErrorLog, ConfError> {
        let level = view.level_of_any(&["error_log"]).block_number();
        if let Some(log) = self.error_logs.get(&level) {
            return Ok(log.clone());
        }
        let entries = view.nearest_all("error_log");
        for entry in &entries {
            if let Err(error) = self.environment.error_log(&[*entry]) {
                return Err(view.error(entry.span, String::from(error)));
            }
        }
        let log = self.environment.error_log(&entries);
        let log = log.map_err(|error| view.error(view.span(), String::from(error)))?;
        self.error_logs.insert(level, log.clone());
        Ok(log)
    }

    /// Logs a warning about a directive.
    pub fn warn(&mut self, view: View<'_>, entry: &Entry, message: impl Into<Complaint>) {
        self.environment.warn(view.error(entry.span, message));
    }

    /// Records an error and continues.
    pub fn report(&mut self, error: ConfError) {
        self.errors.push(error);
    }

    /// Compiles all templates, even those that do not take effect: an undefined variable is an
    /// error anywhere.
    pub fn check_templates(&mut self, view: View<'_>) {
        for entry in view.entries() {
            for word in words_with_variables(entry) {
                if let Err(error) = self.template(view, entry, &word.bytes()) {
                    self.report(error);
                }
            }
            if let Some(inner) = view.child(entry) {
                self.check_templates(inner);
            }
        }
    }

    /// Reports undefined variables, at their first use.
    pub fn check_variables(&mut self, block: View<'_>) {
        let undefined: Vec<&str> = self.variables.undefined().collect();
        let errors = undefined.into_iter().map(|name| {
            let message = format!("unknown \"{name}\" variable");
            match first_use(block, name) {
                Some(span) => block.error(span, message),
                None => ConfError::unplaced(message),
            }
        });
        let errors: Vec<ConfError> = errors.collect();
        self.errors.extend(errors);
    }
}

/// The place of a variable's first use.
fn first_use(view: View<'_>, name: &str) -> Option<Span> {
    let names = |word: &Word| {
        let text = word.text.to_ascii_lowercase();
        let mut parts = text.split('$').skip(1);
        parts.any(|part| {
            let part = part.strip_prefix('{').unwrap_or(part);
            let rest = part.strip_prefix(name);
            rest.is_some_and(|rest| {
                !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            })
        })
    };
    for entry in view.entries() {
        if entry.arguments.iter().any(names) {
            return Some(entry.span);
        }
        let Some(inner) = view.child(entry) else {
            continue;
        };
        let mut data = inner.data().iter();
        if let Some(line) = data.find(|line| line.arguments.iter().any(names)) {
            return Some(line.span);
        }
        if let Some(span) = first_use(inner, name) {
            return Some(span);
        }
    }
    None
}

/// The words of a directive in which dollar signs begin variables' names.
fn words_with_variables(entry: &Entry) -> impl Iterator<Item = &Word> {
    let from = entry.row.variables.unwrap_or(usize::MAX);
    let words = entry.arguments.get(from..).unwrap_or_default();
    words.iter().filter(|word| word.text.contains('$'))
}

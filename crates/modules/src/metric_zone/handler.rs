//! Updates metrics at their stages.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View};
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Logger, Verdict};
use turnpike_http::rooms::Room;
use turnpike_lane::log::Level;
use turnpike_plan::Quoted;
use turnpike_plan::builder::Builder;
use turnpike_plan::regex::Undecided;
use turnpike_plan::template::Template;

use super::plan;
use super::zone::{Updated, Zone, key_and_value};
use crate::common::served::Served;

/// The names of the stages, in their order.
#[derive(Clone, Copy)]
pub(super) struct Stages(pub(super) [&'static str; 3]);

impl Stages {
    /// The place of the last one, at which metrics are updated where nothing is said.
    pub(super) const END: usize = 2;
}

/// The place of the stage of a request at which its response is known.
const RESPONSE: usize = 1;

/// One `metric`.
struct Update {
    zone: Arc<Zone>,
    key: Template,
    value: Template,
}

/// The updates of a block, by stage.
#[derive(Default)]
pub(super) struct Updates([Vec<Update>; 3]);

/// How many stages of a request are over.
#[derive(Default)]
struct Over(usize);

impl Room for Over {
    fn clear(&mut self) {
        self.0 = 0;
    }
}

impl Updates {
    /// The updates that hold in a block, where there are any.
    ///
    /// # Errors
    /// Angie's message, at the directive.
    pub(super) fn in_force<S>(
        view: View<'_>,
        builder: &mut Builder<'_, S>,
        stages: Stages,
    ) -> Result<Option<Updates>, ConfError> {
        let entries = view.nearest_all("metric");
        if entries.is_empty() {
            return Ok(None);
        }
        let mut updates = Updates::default();
        for entry in entries {
            let read = update(entry, builder, stages);
            let (stage, update) = read.map_err(|message| view.error(entry.span, message))?;
            updates.0[stage].push(update);
        }
        Ok(Some(updates))
    }

    /// Whether a stage has any.
    pub(super) fn has(&self, stage: usize) -> bool {
        !self.0[stage].is_empty()
    }

    /// Makes the updates of a stage; of all or, where a match has no verdict, of none.
    pub(super) fn run<S: Served>(&self, stage: usize, subject: &S) -> Result<(), Undecided> {
        let evaluate = |update: &Update| (update.key.value(subject), update.value.value(subject));
        let values: Vec<_> = self.0[stage].iter().map(evaluate).collect();
        if subject.is_undecided() {
            return Err(Undecided);
        }
        for (Update { zone, .. }, (key, value)) in self.0[stage].iter().zip(&values) {
            if zone.update(key, value, subject.now_ms()) == Updated::NoRoom {
                let (name, key, value) = (&zone.name, Quoted(key), Quoted(value));
                subject.log(
                    Level::Error,
                    format_args!("failed to update metric \"{name}\" with \"{key}={value}\""),
                );
            }
        }
        Ok(())
    }

    /// Makes the updates of all stages of a request up to this one that are not over.
    fn run_until(&self, last: usize, exchange: &Exchange) -> Result<(), Undecided> {
        let over = exchange.rooms.get::<Over>().map_or(0, |over| over.0);
        (over..=last).try_for_each(|stage| self.run(stage, exchange))
    }
}

fn update<S>(
    entry: &Entry,
    builder: &mut Builder<'_, S>,
    stages: Stages,
) -> Result<(usize, Update), Complaint> {
    let zone = plan::zone(entry.argument(0), builder)?;
    let text = entry.argument(1).to_owned();
    let written = turnpike_conf::bytes_of(&text);
    let (key, value) = key_and_value(&written);
    if key.is_empty() {
        return Err(format!("empty metric \"{}\" key", zone.name).into());
    }
    let stage = match entry.arguments.get(2) {
        None => Stages::END,
        Some(word) => {
            let word = word.text.as_str();
            let name = word.strip_prefix("on=");
            let name = name.ok_or_else(|| format!("invalid parameter \"{word}\""))?;
            let mut names = stages.0.iter();
            let stage = names.position(|stage| *stage == name);
            stage.ok_or_else(|| format!("unknown stage \"{name}\""))?
        }
    };
    let update = Update {
        zone,
        key: Template::compile(key, &mut builder.variables)?,
        value: Template::compile(value, &mut builder.variables)?,
    };
    Ok((stage, update))
}

impl Handler for Updates {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let is_request = exchange.purpose() == Purpose::Request;
        if !is_request || !self.has(0) {
            return Verdict::Declined;
        }
        if self.run_until(0, exchange).is_err() {
            return Verdict::Undecided;
        }
        let over = exchange.rooms.get_mut::<Over>();
        over.0 = over.0.max(1);
        Verdict::Declined
    }
}

impl Filter for Updates {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        if !self.has(0) && !self.has(RESPONSE) {
            return None;
        }
        // Without a verdict the request is answered by 500, and the stage comes again.
        if self.run_until(RESPONSE, exchange).is_ok() {
            exchange.rooms.get_mut::<Over>().0 = Stages::END;
        }
        None
    }
}

impl Logger for Updates {
    fn log(&self, exchange: &Exchange) {
        if exchange.purpose() == Purpose::Request {
            // There is nobody left to be told.
            let _ = self.run_until(Stages::END, exchange);
        }
    }
}

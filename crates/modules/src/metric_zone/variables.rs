//! The variables of a zone: by `set` they update its metrics, and they show their values.
//!
//! `$metric_NAME` takes a key with a value, and shows the key with its values;
//! `$metric_NAME_key` is the key alone; `$metric_NAME_value` takes a value for the key, and shows
//! its values; `$metric_NAME_value_METRIC` shows that of one metric.

use std::sync::Arc;

use turnpike_conf::Complaint;
use turnpike_http::rooms::{Room, Rooms};
use turnpike_plan::builder::Builder;
use turnpike_plan::variables::{Assign, Evaluate};

use super::zone::{Updated, Zone, cut, key_and_value};
use crate::common::served::Served;

/// What a variable is about.
enum About {
    KeyAndValue,
    Key,
    Value,
    /// That of the metric of this place.
    ValueOf(usize),
}

struct Variable {
    zone: Arc<Zone>,
    about: About,
}

/// The keys that variables of zones have, by the place of the zone.
#[derive(Default)]
struct Keys(Vec<(usize, Vec<u8>)>);

impl Room for Keys {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        if !self.0.is_empty() {
            rooms.get_mut::<Self>().0.clone_from(&self.0);
        }
    }
}

/// Defines the variables of a zone.
///
/// # Errors
/// Another variable has the name.
pub(super) fn define<S: Served>(
    zone: &Arc<Zone>,
    builder: &mut Builder<'_, S>,
) -> Result<(), Complaint> {
    let variable = |about| {
        let zone = Arc::clone(zone);
        Arc::new(Variable { zone, about })
    };
    let name = format!("metric_{}", zone.name);
    let table = &mut builder.variables;
    table.define_assigned(&name, variable(About::KeyAndValue))?;
    table.define_assigned(&format!("{name}_key"), variable(About::Key))?;
    table.define_assigned(&format!("{name}_value"), variable(About::Value))?;
    for (index, metric) in zone.names.iter().flatten().enumerate() {
        let name = format!("{name}_value_{metric}");
        table.define_volatile(&name, variable(About::ValueOf(index)))?;
    }
    Ok(())
}

impl Keys {
    fn of(&self, zone: &Zone) -> Option<&[u8]> {
        let mut keys = self.0.iter();
        let (_, key) = keys.find(|(index, _)| *index == zone.index)?;
        Some(key.as_slice()).filter(|key| !key.is_empty())
    }

    fn set(&mut self, zone: &Zone, key: &[u8]) {
        let key = cut(key);
        match self.0.iter_mut().find(|(index, _)| *index == zone.index) {
            Some((_, old)) => key.clone_into(old),
            None => self.0.push((zone.index, key.to_vec())),
        }
    }
}

impl<S: Served> Evaluate<S> for Variable {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let zone = &self.zone;
        let Some(key) = subject.rooms().get::<Keys>().and_then(|keys| keys.of(zone)) else {
            return false;
        };
        let now_ms = subject.now_ms();
        match self.about {
            About::Key => {
                out.extend_from_slice(key);
                true
            }
            About::Value => zone.append(key, None, now_ms, out),
            About::ValueOf(index) => zone.append(key, Some(index), now_ms, out),
            About::KeyAndValue => {
                let start = out.len();
                out.extend_from_slice(key);
                out.push(b'=');
                let found = zone.append(key, None, now_ms, out);
                if !found {
                    out.truncate(start);
                }
                found
            }
        }
    }
}

impl<S: Served> Assign<S> for Variable {
    fn assign(&self, subject: &mut S, value: &[u8]) {
        let zone = &self.zone;
        let now_ms = subject.now_ms();
        let keys = subject.rooms_mut().get_mut::<Keys>();
        match self.about {
            About::KeyAndValue => {
                let (key, value) = key_and_value(value);
                if zone.update(key, value, now_ms) == Updated::Done {
                    keys.set(zone, key);
                }
            }
            About::Key => keys.set(zone, value),
            About::Value => {
                let key = keys.of(zone).unwrap_or_default();
                zone.update(key, value, now_ms);
            }
            About::ValueOf(_) => {}
        }
    }
}

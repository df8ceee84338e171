//! Reads zones and limits.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::LocationDraft;
use turnpike_lane::log::Level;
use turnpike_plan::builder::Builder;
use turnpike_plan::template::Template;

use super::handler::{Limit, Limits, REJECTIONS, Zone};
use super::zone::CountZone;
use crate::common::limits::RejectionReader;
use crate::common::{limits, zone};

/// Largest limit; nginx's.
const LIMIT_MAX: i64 = 65_535;

/// Zones by name.
#[derive(Default)]
struct Store(HashMap<String, Arc<Zone>>);

/// Declares the zones of the http or stream level; `owner` keeps the two apart.
pub(super) fn zones<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    owner: &'static str,
) -> Result<(), ConfError> {
    for entry in view.own_all("limit_conn_zone") {
        if let Err(message) = declare(entry, builder, owner) {
            builder.report(view.error(entry.span, message));
        }
    }
    Ok(())
}

fn declare<S>(
    entry: &Entry,
    builder: &mut Builder<'_, S>,
    owner: &'static str,
) -> Result<(), Complaint> {
    let [key, word] = &*entry.arguments else {
        return Ok(());
    };
    let key_text = key.text.as_str();
    let key = Template::compile(&key.bytes(), &mut builder.variables)?;
    let text = word.text.as_str();
    let Some(text) = text.strip_prefix("zone=") else {
        return Err(format!("invalid parameter \"{text}\"").into());
    };
    let (name, size_bytes) = zone::declaration(text)?;
    if name.is_empty() {
        return Err("\"limit_conn_zone\" must have \"zone\" parameter".into());
    }
    if let Some(known) = builder.store::<Store>().0.get(name) {
        return Err(limits::already_bound("limit_conn_zone", name, &known.key).into());
    }
    let environment = &mut builder.environment;
    environment.zone_memory(entry.row.name, name, size_bytes);
    let identity = format!("{size_bytes}:{key_text}");
    let counts = zone::open(builder, owner, name, &identity, || {
        CountZone::new(size_bytes)
    })?;
    let zone = Zone {
        name: name.to_owned(),
        key,
        counts,
    };
    let zones = &mut builder.store::<Store>().0;
    zones.insert(name.to_owned(), Arc::new(zone));
    Ok(())
}

/// Shows in the metrics what the zones refuse.
pub(super) fn show_rejections(builder: &mut turnpike_http::plan::Builder<'_>) {
    let zones = builder.store::<Store>().0.values();
    let zones = zones.map(|zone| (zone.name.clone(), zone.counts.clone()));
    let reader = RejectionReader::of(&REJECTIONS, zones);
    builder.metrics(reader);
}

/// Adds the limits that hold in a location.
pub(super) fn location<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let status = limits::status(view, "limit_conn_status")?;
    if let Some(limits) = in_force(view, builder, status)? {
        draft.add_handler(HandlerPlace::Concurrency, Arc::new(limits));
    }
    Ok(())
}

/// The limits that hold in a block, where there are any.
pub(super) fn in_force<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    status: u16,
) -> Result<Option<Limits>, ConfError> {
    let mut asked: Vec<Limit> = Vec::new();
    for entry in view.nearest_all("limit_conn") {
        let place = |message: Complaint| view.error(entry.span, message);
        let limit = limit(entry, builder).map_err(place)?;
        if asked.iter().any(|other| other.zone.name == limit.zone.name) {
            return Err(place(
                "\"limit_conn\" directive is duplicate".to_owned().into(),
            ));
        }
        asked.push(limit);
    }
    if asked.is_empty() {
        return Ok(None);
    }
    Ok(Some(Limits {
        limits: asked,
        log_level: Level::from_name(view.choice("limit_conn_log_level")).unwrap_or(Level::Error),
        status,
        dry_run: view.flag("limit_conn_dry_run"),
    }))
}

fn limit<S>(entry: &Entry, builder: &mut Builder<'_, S>) -> Result<Limit, Complaint> {
    let [name, number] = &*entry.arguments else {
        return Err("invalid number of arguments in \"limit_conn\" directive".into());
    };
    let (name, number) = (name.text.as_str(), number.text.as_str());
    let zone = builder.store::<Store>().0.get(name).map(Arc::clone);
    let zone = zone.ok_or_else(|| limits::undeclared(name))?;
    let most = value::number(number)
        .filter(|most| *most > 0)
        .ok_or_else(|| format!("invalid number of connections \"{number}\""))?;
    if most > LIMIT_MAX {
        return Err("connection limit must be less 65536".into());
    }
    Ok(Limit {
        zone,
        most: most as u32,
    })
}

//! Reads zones and limits.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_lane::log::Level;

use super::handler::{Limit, Limits, REJECTIONS, Zone};
use super::zone::RateZone;
use crate::common::limits::RejectionReader;
use crate::common::{limits, zone};

/// Largest burst and delay, in requests: thousandths of it must fit the arithmetic.
const BURST_MAX: i64 = i64::MAX / 1_000_000;

/// Zones by name.
#[derive(Default)]
struct Store(HashMap<String, Arc<Zone>>);

/// Declares the zones of the http level.
pub(super) fn zones(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    for entry in view.own_all("limit_req_zone") {
        if let Err(message) = declare(entry, builder) {
            builder.report(view.error(entry.span, message));
        }
    }
    Ok(())
}

fn declare(entry: &Entry, builder: &mut Builder<'_>) -> Result<(), Complaint> {
    let Some((key, words)) = entry.arguments.split_first() else {
        return Ok(());
    };
    let key_text = key.text.as_str();
    let key = turnpike_http::variables::Template::compile(&key.bytes(), &mut builder.variables)?;
    let (mut named, mut rate) = (None, 1000);
    for word in words {
        let text = word.text.as_str();
        if let Some(text) = text.strip_prefix("zone=") {
            named = Some(zone::declaration(text)?);
        } else if let Some(text) = text.strip_prefix("rate=") {
            rate =
                limits::parse_rate(text).ok_or_else(|| format!("invalid rate \"rate={text}\""))?;
        } else {
            return Err(format!("invalid parameter \"{text}\"").into());
        }
    }
    let Some((name, size_bytes)) = named.filter(|(name, _)| !name.is_empty()) else {
        return Err("\"limit_req_zone\" must have \"zone\" parameter".into());
    };
    if let Some(known) = builder.store::<Store>().0.get(name) {
        return Err(limits::already_bound("limit_req_zone", name, &known.key).into());
    }
    let environment = &mut builder.environment;
    environment.zone_memory(entry.row.name, name, size_bytes);
    let identity = format!("{size_bytes}:{key_text}");
    let rates = zone::open(builder, "limit_req", name, &identity, || {
        RateZone::new(size_bytes)
    })?;
    let zone = Zone {
        name: name.to_owned(),
        key,
        rate,
        rates,
    };
    let zones = &mut builder.store::<Store>().0;
    zones.insert(name.to_owned(), Arc::new(zone));
    Ok(())
}

/// Shows in the metrics what the zones refuse.
pub(super) fn show_rejections(builder: &mut turnpike_http::plan::Builder<'_>) {
    let zones = builder.store::<Store>().0.values();
    let zones = zones.map(|zone| (zone.name.clone(), zone.rates.clone()));
    let reader = RejectionReader::of(&REJECTIONS, zones);
    builder.metrics(reader);
}

/// Adds the limits that hold in a location.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let status = limits::status(view, "limit_req_status")?;
    let mut asked: Vec<Limit> = Vec::new();
    for entry in view.nearest_all("limit_req") {
        let place = |message: Complaint| view.error(entry.span, message);
        let limit = limit(entry, builder).map_err(place)?;
        if asked.iter().any(|other| other.zone.name == limit.zone.name) {
            return Err(place(
                "\"limit_req\" directive is duplicate".to_owned().into(),
            ));
        }
        asked.push(limit);
    }
    if asked.is_empty() {
        return Ok(());
    }
    let log_level = Level::from_name(view.choice("limit_req_log_level")).unwrap_or(Level::Error);
    let handler = Limits {
        limits: asked,
        log_level,
        delay_log_level: below(log_level),
        status,
        dry_run: view.flag("limit_req_dry_run"),
    };
    draft.add_handler(HandlerPlace::RequestRate, Arc::new(handler));
    Ok(())
}

fn below(level: Level) -> Level {
    match level {
        Level::Error => Level::Warn,
        Level::Warn => Level::Notice,
        _ => Level::Info,
    }
}

fn limit(entry: &Entry, builder: &mut Builder<'_>) -> Result<Limit, Complaint> {
    let (mut name, mut burst, mut delay) = (None, 0, 0);
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        let count = |given: &str| value::number(given).filter(|n| (1..=BURST_MAX).contains(n));
        if let Some(given) = text.strip_prefix("zone=") {
            name = Some(given);
        } else if let Some(given) = text.strip_prefix("burst=") {
            burst = count(given).ok_or_else(|| format!("invalid burst value \"{text}\""))?;
        } else if let Some(given) = text.strip_prefix("delay=") {
            delay = count(given).ok_or_else(|| format!("invalid delay value \"{text}\""))?;
        } else if text == "nodelay" {
            delay = BURST_MAX;
        } else {
            return Err(format!("invalid parameter \"{text}\"").into());
        }
    }
    let name = name.ok_or("\"limit_req\" must have \"zone\" parameter")?;
    let zone = builder.store::<Store>().0.get(name).map(Arc::clone);
    Ok(Limit {
        zone: zone.ok_or_else(|| limits::undeclared(name))?,
        burst: burst * 1000,
        delay: delay * 1000,
    })
}

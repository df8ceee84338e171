//! Reads zones.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, View, value};
use turnpike_lane::counters::Row;
use turnpike_plan::builder::Builder;

use super::memory::{KEY_BYTES_MAX, Memory, Sizes, WhenFull};
use super::mode::Mode;
use super::reader::Zones;
use super::variables;
use super::zone::Zone;
use crate::common::served::Served;
use crate::common::{limits, zone};

/// Least size of a zone: eight pages, Angie's.
const ZONE_BYTES_MIN: u64 = 8 * 4096;

/// Zones by name.
#[derive(Default)]
struct Store(HashMap<String, Arc<Zone>>);

/// What is written of a zone.
struct Written<'a> {
    name: &'a str,
    size_bytes: u64,
    when_full: WhenFull,
    names: Option<Vec<String>>,
    modes: Vec<Mode>,
}

/// Declares the zones of the http or stream level; `owner` keeps the two apart, `rows` show them.
pub(super) fn zones<S: Served>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    owner: &'static str,
    rows: &'static [Row; 4],
) -> Result<(), ConfError> {
    let mut zones = Vec::new();
    for entry in view.own_all("metric_zone") {
        let read = single(entry).and_then(|written| declare(entry, written, builder, owner));
        match read {
            Ok(zone) => zones.push(zone),
            Err(message) => builder.report(view.error(entry.span, message)),
        }
    }
    for entry in view.own_all("metric_complex_zone") {
        let read = complex(view, entry).and_then(|written| {
            let declared = declare(entry, written, builder, owner);
            declared.map_err(|message| view.error(entry.span, message))
        });
        match read {
            Ok(zone) => zones.push(zone),
            Err(error) => builder.report(error),
        }
    }
    if !zones.is_empty() {
        zones.sort_by(|one, other| one.name.cmp(&other.name));
        builder.metrics(Arc::new(Zones { rows, zones }));
    }
    Ok(())
}

/// The zone of that name.
///
/// # Errors
/// Nobody has declared it.
pub(super) fn zone<S>(name: &str, builder: &mut Builder<'_, S>) -> Result<Arc<Zone>, String> {
    let found = builder.store::<Store>().0.get(name).cloned();
    found.ok_or_else(|| limits::undeclared(name))
}

/// A zone with one metric.
fn single(entry: &Entry) -> Result<Written<'_>, String> {
    let words: Vec<&str> = words(entry).collect();
    let [spec, rest @ ..] = words.as_slice() else {
        return Err("\"metric_zone\" missing value mode".to_owned());
    };
    let (name, size_bytes) = specification(spec)?;
    let (when_full, rest) = when_full(rest)?;
    if rest.is_empty() {
        return Err("\"metric_zone\" missing value mode".to_owned());
    }
    Ok(Written {
        name,
        size_bytes,
        when_full,
        names: None,
        modes: vec![Mode::read(rest)?],
    })
}

/// A zone with a block of metrics.
fn complex<'a>(view: View<'a>, entry: &'a Entry) -> Result<Written<'a>, ConfError> {
    let fail = |message: String| view.error(entry.span, message);
    let words: Vec<&str> = words(entry).collect();
    let (spec, rest) = words.split_first().unwrap_or((&"", &[]));
    let (name, size_bytes) = specification(spec).map_err(fail)?;
    let (when_full, rest) = when_full(rest).map_err(fail)?;
    if let Some(other) = rest.first() {
        return Err(fail(format!("invalid parameter \"{other}\"")));
    }
    let (mut names, mut modes): (Vec<String>, Vec<Mode>) = Default::default();
    let block = view.child(entry);
    for line in block.iter().flat_map(View::data) {
        let fail = |message: String| view.error(line.span, message);
        let name = &line.name.text;
        let words: Vec<&str> = line.arguments.iter().map(|word| &*word.text).collect();
        if words.is_empty() {
            return Err(fail(format!("missing value mode after \"{name}\"")));
        }
        if names.contains(name) {
            return Err(fail(format!("duplicated metric name \"{name}\"")));
        }
        modes.push(Mode::read(&words).map_err(fail)?);
        names.push(name.clone());
    }
    if modes.is_empty() {
        return Err(fail(format!(
            "no metrics in metric_complex_zone \"{name}\""
        )));
    }
    Ok(Written {
        name,
        size_bytes,
        when_full,
        names: Some(names),
        modes,
    })
}

fn words(entry: &Entry) -> impl Iterator<Item = &str> {
    entry.arguments.iter().map(|word| word.text.as_str())
}

/// Makes a zone, or finds what it had before a reload, and defines its variables.
fn declare<S: Served>(
    entry: &Entry,
    written: Written<'_>,
    builder: &mut Builder<'_, S>,
    owner: &'static str,
) -> Result<Arc<Zone>, String> {
    let Written {
        name,
        size_bytes,
        when_full,
        names,
        modes,
    } = written;
    let directive = entry.row.name;
    if builder.store::<Store>().0.contains_key(name) {
        return Err(format!("{directive} \"{name}\" already exists"));
    }
    let sizes = Sizes::new(size_bytes, &modes);
    let sizes = sizes.ok_or_else(|| {
        format!("zone \"{name}\" is too small for a key of {KEY_BYTES_MAX} bytes")
    })?;
    builder.environment.zone_memory(directive, name, size_bytes);
    let identity = format!("{size_bytes}:{names:?}:{modes:?}");
    let memory = zone::open(builder, owner, name, &identity, || {
        Memory::new(sizes, modes.clone())
    })?;
    let store = &mut builder.store::<Store>().0;
    let zone = Arc::new(Zone {
        name: name.to_owned(),
        index: store.len(),
        names,
        memory,
        when_full,
    });
    store.insert(name.to_owned(), Arc::clone(&zone));
    variables::define(&zone, builder)?;
    Ok(zone)
}

/// What is said of a full zone, and the words behind it.
fn when_full<'a, 'w>(words: &'w [&'a str]) -> Result<(WhenFull, &'w [&'a str]), String> {
    let mut when_full = WhenFull {
        expire: false,
        discard_key: None,
    };
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        if let Some(text) = word.strip_prefix("expire=") {
            when_full.expire = match text {
                "on" => true,
                "off" => false,
                _ => return Err(format!("unknown expire mode \"{text}\"")),
            };
        } else if let Some(key) = word.strip_prefix("discard_key=") {
            let key = turnpike_conf::bytes_of(key);
            when_full.discard_key = Some(key).filter(|key| !key.is_empty());
        } else {
            break;
        }
        rest = behind;
    }
    Ok((when_full, rest))
}

/// Reads `NAME:SIZE`.
fn specification(text: &str) -> Result<(&str, u64), String> {
    let invalid = || format!("invalid zone specification \"{text}\"");
    let mut parts = text.split(':');
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(invalid)?;
    let size = parts.next().ok_or("zone size is not specified")?;
    if size.is_empty() {
        return Err(invalid());
    }
    let size_bytes = value::size(size).ok_or_else(|| format!("invalid zone size \"{size}\""))?;
    if size_bytes < ZONE_BYTES_MIN {
        return Err(format!(
            "zone \"{name}\" is too small, at least {ZONE_BYTES_MIN} bytes expected"
        ));
    }
    match parts.next() {
        None => Ok((name, size_bytes)),
        Some(other) if other.starts_with("file=") => {
            Err("this zone cannot be serialized using file".to_owned())
        }
        Some(_) => Err(invalid()),
    }
}

//! `cache show`: what zones hold for a URL.
//!
//! A key is whatever the configuration makes of a request, so a URL stands for the keys that end
//! with its path and query, also with a slice's range behind it; without such a key, for those that
//! have it somewhere.

use std::sync::Arc;

use turnpike_cache::purge::{Labels as _, without_range};
use turnpike_cache::stored::{Resource, StoredBody, Variant};
use turnpike_cache::why::WhyNotStored;
use turnpike_cache::zone::Zone;
use turnpike_lane::sys::process::unix_ms;
use turnpike_plan::control::{self, Arguments, Command, CommandError, CommandRow, Value, json};

use super::zones::Zones;

pub(super) const ROW: CommandRow = CommandRow {
    name: "cache.show",
    arguments: "url=URL [zone=NAME]",
    summary: "Shows what the cache holds for a URL: the keys that end with its path and query, \
        their age, freshness, tags and place. If there are none, it shows why responses were not \
        stored.",
};

/// The most responses that are shown: nobody reads more.
const SHOWN_MAX: usize = 100;

pub(super) struct ShowCommand(pub(super) Zones);

impl Command for ShowCommand {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let url = control::required_text(arguments, "url")?;
        let zones: Vec<&Arc<Zone>> = match control::text(arguments, "zone")? {
            None => self.0.0.values().collect(),
            Some(name) => match self.0.0.get(name) {
                Some(zone) => vec![zone],
                None => return Err(CommandError::NotFound(format!("no zone \"{name}\""))),
            },
        };
        let target = target(url).as_bytes();
        let ends = |key: &[u8]| without_range(key).ends_with(target);
        let has = |key: &[u8]| memchr::memmem::find(key, target).is_some();
        let mut stored = responses(&zones, &ends);
        if stored.is_empty() {
            stored = responses(&zones, &has);
        }
        let not_stored: Vec<Value> = if stored.is_empty() {
            zones.iter().flat_map(|zone| reasons(zone)).collect()
        } else {
            Vec::new()
        };
        Ok(json!({ "stored": stored, "not_stored": not_stored }))
    }
}

/// The part of a URL that keys end with: its path and query.
fn target(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else {
        return url;
    };
    rest.find('/').map_or("/", |at| &rest[at..])
}

fn responses(zones: &[&Arc<Zone>], is_wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Value> {
    let now_ms = unix_ms();
    let mut shown = Vec::new();
    for zone in zones {
        let room = SHOWN_MAX - shown.len();
        for resource in zone.look_for(is_wanted, room) {
            let variants = resource.variants().iter();
            shown.extend(variants.map(|variant| response(zone, &resource, variant, now_ms)));
        }
        shown.truncate(SHOWN_MAX);
    }
    shown
}

fn response(zone: &Zone, resource: &Resource, variant: &Variant, now_ms: u64) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let timing = variant.timing();
    let tags: Vec<String> = variant.tags.iter().map(|tag| text(tag)).collect();
    json!({
        "zone": zone.name(),
        "key": text(resource.key()),
        "host": text(resource.host()),
        "status": variant.head.status,
        "bytes": variant.length(),
        "age_s": timing.age_s(now_ms),
        "fresh_for_s": timing.fresh_for_s(now_ms),
        "tags": tags,
        "path": match &variant.body {
            StoredBody::Memory(_) => None,
            StoredBody::File(file) => Some(file.path().display().to_string()),
        },
    })
}

/// Why responses were not stored in a zone, since the start.
fn reasons(zone: &Zone) -> impl Iterator<Item = Value> {
    WhyNotStored::ALL.iter().filter_map(|why| {
        let count = zone.not_stored(*why);
        let reason = why.text();
        let name = zone.name();
        (count > 0).then(|| json!({ "zone": name, "reason": reason, "responses": count }))
    })
}

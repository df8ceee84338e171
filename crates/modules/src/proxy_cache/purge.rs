//! Purges: by request where the configuration allows it, and over the control socket.

use std::sync::Arc;

use turnpike_cache::purge::{PurgeKind, Target, tags, without_range};
use turnpike_cache::zone::{Purged, Storage, Zone};
use turnpike_conf::{ConfError, Entry};
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::response::Response;
use turnpike_http::variables::Template;
use turnpike_lane::sys::process::unix_ms;
use turnpike_plan::background::run_blocking;
use turnpike_plan::control::{self, Arguments, Command, CommandError, CommandRow, Value, json};
use turnpike_wire::message::Head;

use super::handler::request_field;
use super::purge_rules::Reply;
use super::show::{self, ShowCommand};
use super::warm::{self, WarmCommand};
use super::zones::Zones;
use crate::common::html;
use crate::pass::view::PassView;

const PURGE: CommandRow = CommandRow {
    name: "cache.purge",
    arguments: "[zone=NAME] [key=KEY] [prefix=KEY] [host=NAME] [tag=TAG] [all=on] [soft=on]",
    summary: "Removes responses with all their variants from the cache, by one of key, prefix, \
        host, tag or all. Without zone it applies to all zones. With soft=on the responses become \
        stale instead. After the answer, none of them is sent as fresh.",
};

const LIST: CommandRow = CommandRow {
    name: "cache.list",
    arguments: "",
    summary: "Lists the zones of the cache and their content.",
};

/// The verbs.
pub(super) const COMMANDS: &[CommandRow] = &[PURGE, LIST, show::ROW, warm::ROW];

/// Offers the verbs with the zones of this plan.
pub(super) fn offer(builder: &mut Builder<'_>) {
    let zones = builder.store::<Zones>().clone();
    builder.command(&COMMANDS[0], Arc::new(PurgeCommand(zones.clone())));
    builder.command(&COMMANDS[1], Arc::new(ListCommand(zones.clone())));
    builder.command(&COMMANDS[2], Arc::new(ShowCommand(zones.clone())));
    builder.command(&COMMANDS[3], Arc::new(WarmCommand(zones)));
}

struct PurgeCommand(Zones);

impl Command for PurgeCommand {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let target = target(arguments)?;
        let manner = if control::flag(arguments, "soft")? {
            PurgeKind::Soft
        } else {
            PurgeKind::Hard
        };
        let zones: Vec<&Arc<Zone>> = match control::text(arguments, "zone")? {
            None => self.0.0.values().collect(),
            Some(name) => match self.0.0.get(name) {
                Some(zone) => vec![zone],
                None => return Err(CommandError::NotFound(format!("no zone \"{name}\""))),
            },
        };
        let now_ms = unix_ms();
        let mut sum = Purged::default();
        for zone in zones {
            let purged = zone.purge(&target, manner, now_ms);
            sum.keys += purged.keys;
            sum.responses += purged.responses;
        }
        Ok(json!({ "keys": sum.keys, "responses": sum.responses }))
    }
}

/// The one thing that is to be purged.
fn target(arguments: &Arguments) -> Result<Target, CommandError> {
    let mut targets = Vec::new();
    let mut text = |name: &str, make: fn(Vec<u8>) -> Target| {
        control::text(arguments, name).map(|text| {
            targets.extend(text.map(|text| make(text.as_bytes().to_vec())));
        })
    };
    text("key", Target::Key)?;
    text("prefix", Target::Prefix)?;
    text("host", Target::Host)?;
    text("tag", Target::Tag)?;
    if control::flag(arguments, "all")? {
        targets.push(Target::All);
    }
    match (targets.pop(), targets.is_empty()) {
        (Some(target), true) => Ok(target),
        _ => Err(CommandError::Invalid(
            "one of \"key\", \"prefix\", \"host\", \"tag\" and \"all\" must be given".to_owned(),
        )),
    }
}

struct ListCommand(Zones);

impl Command for ListCommand {
    fn run(&self, _: &Arguments) -> Result<Value, CommandError> {
        let zones = self.0.0.values().map(|zone| {
            let contents = zone.contents();
            let place = match zone.storage() {
                Storage::Memory(_) => "memory",
                Storage::Disk(_) => "disk",
            };
            let (requests, hits) = zone.requests_and_hits();
            json!({
                "zone": zone.name(),
                "place": place,
                "keys": contents.keys,
                "bytes": contents.bytes,
                // Without `max_size` a disk zone has no limit.
                "bytes_max": Some(zone.bytes_max()).filter(|bytes| *bytes != u64::MAX),
                "requests": requests,
                "hits": hits,
                "saved_bytes": zone.saved_bytes(),
                "filled_ppm": contents.filled_ppm,
                "evicted": contents.evicted,
            })
        });
        Ok(json!({ "zones": zones.collect::<Vec<Value>>() }))
    }
}

/// What a key has of a slice.
const SLICE_RANGE: &[u8] = b"slice_range";

/// A request that purges: its key, a prefix (`*` at the end), or the tags that it names.
///
/// `template` is that of the key: where it has a slice's range, all slices are purged.
pub(super) fn by_request(
    exchange: &mut Exchange,
    zone: &Arc<Zone>,
    (template, key): (Option<&Template>, &[u8]),
    reply: Reply,
) -> Verdict {
    let soft = exchange
        .field(b"Soft-Purge")
        .is_some_and(|value| value == b"1");
    let manner = if soft {
        PurgeKind::Soft
    } else {
        PurgeKind::Hard
    };
    let tags = request_tags(exchange);
    if exchange.is_undecided() {
        // The key may be that of something else.
        return Verdict::Undecided;
    }
    let now_ms = exchange.lane.clock.unix_ms();
    let is_sliced = template
        .is_some_and(|template| memchr::memmem::find(template.text(), SLICE_RANGE).is_some());
    let is_one = tags.is_empty() && key.last() != Some(&b'*');
    if is_one && !is_sliced {
        let purged = zone.purge(&Target::Key(key.to_vec()), manner, now_ms);
        return verdict(&mut exchange.response, purged, key, reply);
    }
    let targets = match tags.is_empty() {
        true if is_one => vec![Target::Sliced(without_range(key).to_vec())],
        true => vec![Target::Prefix(key[..key.len() - 1].to_vec())],
        false => tags
            .into_iter()
            .map(|tag| Target::Tag(tag.into_vec()))
            .collect(),
    };
    Verdict::Wait(Box::new(Purging {
        zone: zone.clone(),
        key: key.into(),
        targets,
        manner,
        now_ms,
        reply,
    }))
}

/// A location for purges only: every request purges its key.
struct PurgeLocation {
    zone: Arc<Zone>,
    key: Template,
}

impl Handler for PurgeLocation {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let key = self.key.value(exchange);
        by_request(exchange, &self.zone, (Some(&self.key), &key), Reply::Page)
    }
}

/// `..._cache_purge ZONE KEY` in this very location: the zone, and the directive.
pub(super) fn purge_location<'c>(
    pass: PassView<'c>,
    builder: &mut Builder<'_>,
) -> Option<(Arc<Zone>, &'c Entry)> {
    let entry = pass.own("cache_purge")?;
    let [name, _] = &*entry.arguments else {
        return None;
    };
    let zone = builder.store::<Zones>().find(pass.prefix, &name.text)?;
    Some((Arc::clone(zone), entry))
}

/// Has every request to such a location purge its key.
///
/// # Errors
/// What is wrong with the key.
pub(super) fn purge_by_location(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some((zone, entry)) = purge_location(pass, builder)
        && let Some(key) = entry.arguments.get(1)
    {
        let key = builder.template(pass.view, entry, &key.bytes())?;
        draft.content = Some(Arc::new(PurgeLocation { zone, key }));
    }
    Ok(())
}

fn request_tags(exchange: &Exchange) -> Vec<Box<[u8]>> {
    let mut head = Head::default();
    for name in [&b"surrogate-key"[..], b"cache-tag"] {
        let mut value = Vec::new();
        if request_field(exchange, name, &mut value) {
            head.fields.add(name, &value);
        }
    }
    tags(&head)
}

/// Looks every key over: too long for a lane's turn.
struct Purging {
    zone: Arc<Zone>,
    key: Box<[u8]>,
    targets: Vec<Target>,
    manner: PurgeKind,
    now_ms: u64,
    reply: Reply,
}

impl Work for Purging {
    async fn run(self, exchange: &mut Exchange, _: Client<'_>) -> Verdict {
        let (key, reply) = (self.key, self.reply);
        let (zone, targets, manner, now_ms) = (self.zone, self.targets, self.manner, self.now_ms);
        let purge = move || {
            let mut sum = Purged::default();
            for target in &targets {
                sum.keys += zone.purge(target, manner, now_ms).keys;
            }
            sum
        };
        // Too many purges wait: the operator may try again.
        let Ok(purge) = run_blocking(purge) else {
            return Verdict::Status(503);
        };
        match purge.await {
            Some(purged) => verdict(&mut exchange.response, purged, &key, reply),
            None => Verdict::Status(500),
        }
    }
}

fn verdict(response: &mut Response, purged: Purged, key: &[u8], reply: Reply) -> Verdict {
    match (purged.keys, reply) {
        (0, _) => Verdict::Status(404),
        (_, Reply::Status) => Verdict::Status(204),
        (_, Reply::Page) => {
            response.set_status(200);
            response.set_content_type(b"text/html");
            let text = response.text_mut();
            text.clear();
            text.extend_from_slice(
                b"<html>\r\n<head><title>Successful purge</title></head>\r\n<body>\r\n\
                  <center><h1>Successful purge</h1>\r\n<br>Key: ",
            );
            html::escape(key, text);
            text.extend_from_slice(b"\r\n</center>\r\n</body>\r\n</html>\r\n");
            response.send_text();
            Verdict::Respond
        }
    }
}

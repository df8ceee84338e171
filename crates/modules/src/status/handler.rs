//! Writes the page.

use std::io::Write;

use serde::ser::{Serialize, SerializeMap, Serializer};
use turnpike_http::counters::{Counter, HttpCounters};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_plan::metrics::{self, Samples};
use turnpike_plan::protocol::ProtocolPlan as _;

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A name and a number a line.
    Text,
    /// One object.
    Json,
    /// A page that asks for all metrics every second (`?json`).
    Html,
}

/// The content handler.
pub(super) struct Page(pub(super) Form);

/// A counter's name and where it is.
type Row = (&'static str, fn(&HttpCounters) -> &Counter);

/// The counters that are shown, in all and for each lane.
const COUNTERS: &[Row] = &[
    ("accepted", |counters| &counters.accepted),
    ("handled", |counters| &counters.handled),
    ("active", |counters| &counters.active),
    ("reading", |counters| &counters.reading),
    ("writing", |counters| &counters.writing),
    ("waiting", |counters| &counters.waiting),
    ("requests", |counters| &counters.requests),
    ("made_room", |counters| &counters.made_room),
    ("http_streams_waiting", |counters| &counters.streams),
    ("http_streams_made_room", |counters| {
        &counters.streams_made_room
    }),
    ("http_streams_refused", |counters| &counters.streams_refused),
    ("log_lines_lost", |counters| &counters.log_lines_lost),
];

impl Handler for Page {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let mut out = exchange.response.take_text();
        out.clear();
        let is_asked_for_numbers = exchange.walk.query() == PAGE_NUMBERS;
        let (kind, written): (&[u8], _) = match self.0 {
            Form::Html if is_asked_for_numbers => {
                (b"application/json", write_metrics(exchange, &mut out))
            }
            Form::Html if shows_pages(exchange) => {
                (b"text/html; charset=utf-8", out.write_all(PAGE))
            }
            Form::Html | Form::Text => (b"text/plain", write_text(exchange, &mut out)),
            Form::Json => (b"application/json", write_json(exchange, &mut out)),
        };
        debug_assert!(written.is_ok(), "writing to a vector cannot fail");
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(kind);
        response.set_text(out);
        response.send_text();
        Verdict::Respond
    }
}

/// Whether the client shows pages, as browsers say by naming their type. One that says nothing of
/// what it accepts is taken for one that does, as those of probes and old scripts.
fn shows_pages(exchange: &Exchange) -> bool {
    let accepted = exchange.field(b"Accept");
    accepted.is_none_or(|accepted| memchr::memmem::find(accepted, b"text/html").is_some())
}

/// The page: one file that asks for nothing but its numbers.
const PAGE: &[u8] = include_bytes!("page.html");

/// The arguments with which the page asks for its numbers.
const PAGE_NUMBERS: &[u8] = b"json";

fn write_metrics(exchange: &Exchange, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut samples = Samples::of(&exchange.plan.offers().readers);
    samples.read(&*exchange.lane.all_counters);
    let json = metrics::write_json(&samples, exchange.lane.clock.unix_ms());
    write!(out, "{json}")
}

fn write_text(exchange: &Exchange, out: &mut Vec<u8>) -> std::io::Result<()> {
    let all = &exchange.lane.all_counters;
    let lanes = all.numbered();
    writeln!(out, "generation {}", exchange.plan.generation)?;
    writeln!(out, "lanes {}", lanes.len())?;
    for (name, counter) in COUNTERS {
        writeln!(out, "{name} {}", all.total(counter))?;
    }
    for (number, lane) in &lanes {
        for (name, counter) in COUNTERS {
            writeln!(out, "lane {number} {name} {}", counter(lane).value())?;
        }
    }
    if let Some(count) = turnpike_lane::allocations() {
        writeln!(out, "allocations {count}")?;
    }
    Ok(())
}

fn write_json(exchange: &Exchange, out: &mut Vec<u8>) -> std::io::Result<()> {
    let all = &exchange.lane.all_counters;
    let numbered = all.numbered();
    let mut json = serde_json::Serializer::new(&mut *out);
    let mut page = json.serialize_map(None)?;
    page.serialize_entry("generation", &exchange.plan.generation)?;
    for (name, counter) in COUNTERS {
        page.serialize_entry(name, &all.total(counter))?;
    }
    if let Some(count) = turnpike_lane::allocations() {
        page.serialize_entry("allocations", &count)?;
    }
    let lanes: Vec<Lane<'_>> = numbered
        .iter()
        .map(|(number, counters)| Lane(*number, counters))
        .collect();
    page.serialize_entry("lanes", &lanes)?;
    page.end()?;
    out.push(b'\n');
    Ok(())
}

/// A lane's number and counters.
struct Lane<'a>(usize, &'a HttpCounters);

impl Serialize for Lane<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut lane = serializer.serialize_map(Some(1 + COUNTERS.len()))?;
        lane.serialize_entry("lane", &self.0)?;
        for (name, counter) in COUNTERS {
            lane.serialize_entry(name, &counter(self.1).value())?;
        }
        lane.end()
    }
}

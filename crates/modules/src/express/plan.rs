//! What the directives of this family mean.

use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_express::{
    Mode, OBJECTS_MAX, OBJECTS_MIN, ProgramSettings, Publisher, SAMPLED_ONE_IN_MAX, SLOT_BYTES,
    slot_count,
};
use turnpike_http::plan::{Builder, LocationDraft};

use super::drops::{Drops, REFUSALS_MAX, Refusals};
use super::eligible::Reasons;
use super::handler::{Publishes, Recent};
use super::metrics::Reader;
use super::samples::Samples;
use super::syn::SynChoice;
use super::watch::FileWatch;
use crate::common::limits::parse_rate;
use crate::common::published_copies::Copies;
use turnpike_plan::cidr::Cidr;

/// What the locations of a plan publish to.
#[derive(Default)]
struct Shared(Option<Lane>);

#[derive(Clone)]
struct Lane {
    publisher: Arc<Publisher>,
    reasons: Arc<Reasons>,
    files: Arc<FileWatch>,
    samples: Arc<Samples>,
    /// `None`: SYN segments are always answered.
    syn: Option<Arc<SynChoice>>,
    /// Clients that are never dropped.
    allowed: Arc<[Cidr]>,
}

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    if !is_wanted(view) {
        return Ok(());
    }
    let wish = wish(view)?;
    let allowed = allowed(view)?;
    let publisher = builder.environment.provide(&wish);
    let Some(Ok(publisher)) = publisher.map(|publisher| publisher.downcast::<Publisher>()) else {
        return Ok(());
    };
    let reasons = Arc::new(Reasons::default());
    let copies = Copies::offer(builder, &publisher);
    let files = FileWatch::new(copies, builder.error_log(view)?);
    builder.service(files.clone());
    let reader = Reader {
        publisher: publisher.clone(),
        reasons: reasons.clone(),
        files: files.clone(),
    };
    builder.metrics(Arc::new(reader));
    let samples = Samples::new(publisher.clone());
    builder.add_sample_source(samples.clone());
    builder.store::<Shared>().0 = Some(Lane {
        publisher,
        reasons,
        files,
        samples,
        syn: (view.choice("express_syn") == "auto").then(Arc::default),
        allowed,
    });
    Ok(())
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let recent = recent(view)?;
    let drops_after = drops_after(view)?;
    let sampled_one_in = sampled_one_in(view)?;
    let Some(lane) = builder.store::<Shared>().0.clone() else {
        return Ok(());
    };
    if view.choice("express") != "off" {
        lane.publisher.expect_answers();
        if sampled_one_in > 0 {
            lane.samples.add(draft.index, sampled_one_in);
        }
        draft.add_logger(Arc::new(Publishes {
            publisher: lane.publisher.clone(),
            reasons: lane.reasons,
            files: lane.files,
            syn: lane.syn,
            recent,
            closes_kept: view.flag("express_close"),
            sampled_one_in,
        }));
    }
    if view.flag("express_drop") {
        draft.add_logger(Arc::new(Drops {
            publisher: lane.publisher,
            allowed: lane.allowed,
            time_ms: view.milliseconds("express_drop_time"),
            refusals: Refusals::new(drops_after),
        }));
    }
    Ok(())
}

/// What is hot, for `express auto`.
fn recent(view: View<'_>) -> Result<Option<Recent>, ConfError> {
    let rate = match view.nearest("express_min_rate") {
        None => parse_rate("10r/s"),
        Some(entry) => {
            let rate = parse_rate(entry.argument(0));
            Some(rate.ok_or_else(|| {
                let message = format!("invalid rate \"{}\"", entry.argument(0));
                view.error(entry.span, message)
            })?)
        }
    };
    let is_auto = view.choice("express") == "auto";
    Ok(is_auto.then(|| Recent::new(rate.unwrap_or_default())))
}

/// One of so many requests of which a line is written; 0: of none.
fn sampled_one_in(view: View<'_>) -> Result<u32, ConfError> {
    let Some(entry) = view.nearest("express_log") else {
        return Ok(0);
    };
    let word = entry.argument(0);
    if word == "off" {
        return Ok(0);
    }
    let Some(part) = word.strip_prefix("sample=") else {
        return Err(view.error(entry.span, format!("invalid parameter \"{word}\"")));
    };
    let one_in = part.strip_prefix("1/").and_then(|text| text.parse().ok());
    let one_in = one_in.filter(|one_in| (1..=SAMPLED_ONE_IN_MAX).contains(one_in));
    one_in.ok_or_else(|| {
        let message = format!(
            "invalid sample \"{part}\" in \"express_log\", it must be between 1/1 and \
             1/{SAMPLED_ONE_IN_MAX}"
        );
        view.error(entry.span, message)
    })
}

/// Refusals in a second after which `express_drop` has a client dropped.
fn drops_after(view: View<'_>) -> Result<u64, ConfError> {
    let after = u64::try_from(view.number("express_drop_after")).ok();
    let after = after.filter(|after| (1..=REFUSALS_MAX).contains(after));
    after.ok_or_else(|| {
        let entry = view.nearest("express_drop_after");
        let span = entry.map_or(view.span(), |entry| entry.span);
        let message = format!("\"express_drop_after\" must be between 1 and {REFUSALS_MAX}");
        view.error(span, message)
    })
}

/// The clients that are never dropped.
fn allowed(view: View<'_>) -> Result<Arc<[Cidr]>, ConfError> {
    let entries = view.own_of(&["express_allow"]).into_iter();
    let words = entries.flat_map(|entry| entry.arguments.iter().map(move |word| (entry, word)));
    words
        .map(|(entry, word)| {
            let range = Cidr::parse(&word.text);
            range.ok_or_else(|| {
                view.error(entry.span, format!("invalid parameter \"{}\"", word.text))
            })
        })
        .collect()
}

/// Whether the express lane is on in this block or one inside it.
fn is_wanted(view: View<'_>) -> bool {
    let is_on = |name| {
        let entry = view.own(name);
        entry.is_some_and(|entry| entry.argument(0) != "off")
    };
    is_on("express")
        || is_on("express_drop")
        || view.children("server").any(is_wanted)
        || view.children("location").any(is_wanted)
        || view.children("if").any(is_wanted)
}

/// How many answers there is room for. Where only the memory is said, they are as many as fit.
fn objects(view: View<'_>) -> Result<usize, ConfError> {
    let (by_count, by_memory) = (view.own("express_objects"), view.own("express_memory"));
    let error = |entry: Option<&Entry>, message: String| {
        Err(view.error(entry.map_or(view.span(), |entry| entry.span), message))
    };
    let objects = usize::try_from(view.number("express_objects")).ok();
    let Some(objects) = objects.filter(|count| (1..=OBJECTS_MAX).contains(count)) else {
        let message = format!("\"express_objects\" must be between 1 and {OBJECTS_MAX}");
        return error(by_count, message);
    };
    let Some(memory) = by_memory else {
        return Ok(objects);
    };
    let fitting = objects_in(view.size("express_memory"));
    if !(OBJECTS_MIN..=OBJECTS_MAX).contains(&fitting) {
        let [least, most] = [OBJECTS_MIN, OBJECTS_MAX].map(|count| count as u64 * SLOT_BYTES);
        let (least, most) = (least / 1024, most / 1024 / 1024);
        let message = format!("\"express_memory\" must be between {least}k and {most}m");
        return error(Some(memory), message);
    }
    let wanted = slot_count(objects);
    if by_count.is_some() && wanted > fitting {
        let (size, kilobytes) = (memory.argument(0), wanted as u64 * SLOT_BYTES / 1024);
        let message = format!(
            "\"express_objects {objects}\" needs {kilobytes}k, more than \"express_memory {size}\""
        );
        return error(by_count, message);
    }
    Ok(if by_count.is_some() { objects } else { fitting })
}

/// The largest table that is not above that size, in answers: a power of two.
fn objects_in(size_bytes: u64) -> usize {
    let fitting = usize::try_from(size_bytes / SLOT_BYTES).unwrap_or(usize::MAX);
    fitting.checked_ilog2().map_or(0, |power| 1 << power)
}

fn wish(view: View<'_>) -> Result<ProgramSettings, ConfError> {
    let Some(interfaces) = view.own("express_interface") else {
        let message = "\"express\" and \"express_drop\" need \"express_interface\" with their \
            network interfaces";
        return Err(view.error(view.span(), message));
    };
    let objects = objects(view)?;
    let names = interfaces.arguments.iter().map(|word| word.text.clone());
    Ok(ProgramSettings {
        interfaces: names.collect(),
        mode: match view.choice("express_mode") {
            "native" => Mode::Native,
            "generic" => Mode::Generic,
            _ => Mode::Auto,
        },
        objects,
    })
}

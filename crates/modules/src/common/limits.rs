//! What `limit_req` and `limit_conn` have in common: what they decided of a request, its key, the
//! status of a refusal, and the messages about zones. How they count is each family's own business.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_conf::{ConfError, View, value};
use turnpike_http::Quoted;
use turnpike_http::rooms::{Room, Rooms};
use turnpike_lane::log::Level;
use turnpike_plan::metrics::{Reader, Row, Samples};
use turnpike_plan::template::Template;
use turnpike_plan::variables::Subject;

use crate::common::served::Served;

/// The highest rate, in requests per second or minute: its thousandths can still be reckoned with.
const RATE_MAX: i64 = i64::MAX / 1_000_000;

/// A rate in thousandths of a request per second.
pub(crate) fn parse_rate(text: &str) -> Option<i64> {
    let (count, seconds) = match (text.strip_suffix("r/s"), text.strip_suffix("r/m")) {
        (Some(count), _) => (count, 1),
        (_, Some(count)) => (count, 60),
        _ => (text, 1),
    };
    let count = value::number(count).filter(|count| (1..=RATE_MAX).contains(count))?;
    Some(count * 1000 / seconds)
}

/// Requests that a zone refused, counted there and read for the metrics.
#[derive(Default)]
pub(crate) struct Rejections(AtomicU64);

impl Rejections {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A zone that counts what it refuses.
pub(crate) trait CountsRejections: Send + Sync {
    fn rejections(&self) -> &Rejections;
}

/// Reads what zones have refused.
pub(crate) struct RejectionReader {
    row: &'static Row,
    /// The zones with their names.
    zones: Vec<(String, Arc<dyn CountsRejections>)>,
}

impl RejectionReader {
    /// A reader of zones, in the order of their names.
    pub(crate) fn of<Z: CountsRejections + 'static>(
        row: &'static Row,
        zones: impl Iterator<Item = (String, Arc<Z>)>,
    ) -> Arc<Self> {
        let zones = zones.map(|(name, zone)| (name, zone as Arc<dyn CountsRejections>));
        let mut zones: Vec<_> = zones.collect();
        zones.sort_by(|(one, _), (other, _)| one.cmp(other));
        Arc::new(Self { row, zones })
    }
}

impl Reader for RejectionReader {
    fn read(&self, samples: &mut Samples) {
        for (name, zone) in &self.zones {
            samples.number(self.row, &[name], zone.rejections().count());
        }
    }
}

/// What a limit by zones of this kind decided; empty when it was not asked. A request is limited
/// once, with its subrequests.
struct Decision<Zone> {
    text: &'static str,
    zone: PhantomData<Zone>,
}

impl<Zone> Default for Decision<Zone> {
    fn default() -> Self {
        Self {
            text: "",
            zone: PhantomData,
        }
    }
}

impl<Zone: 'static> Room for Decision<Zone> {
    fn clear(&mut self) {
        self.text = "";
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        if !self.text.is_empty() {
            rooms.get_mut::<Self>().text = self.text;
        }
    }
}

/// What the limit by zones of this kind decided; empty when it was not asked.
pub(crate) fn decision<Zone: 'static>(subject: &impl Served) -> &'static str {
    let decision = subject.rooms().get::<Decision<Zone>>();
    decision.map_or("", |decision| decision.text)
}

/// Remembers what the limit by zones of this kind decided.
pub(crate) fn decide<Zone: 'static>(subject: &mut impl Served, text: &'static str) {
    subject.rooms_mut().get_mut::<Decision<Zone>>().text = text;
}

/// What came of a key.
pub(crate) enum Keyed<T> {
    /// The request is counted by it.
    Counted(T),
    /// The request is not to be counted: its key is empty, or too long.
    NotCounted,
    /// A match had no verdict.
    Undecided,
}

/// Counts by the key of a request; not where that is empty, or longer than `key_bytes_max`, which
/// is logged.
pub(crate) fn with_key<S: Subject, T>(
    subject: &S,
    template: &Template,
    key_bytes_max: usize,
    count: impl FnOnce(&[u8]) -> T,
) -> Keyed<T> {
    template.with_value(subject, |key| {
        if subject.is_undecided() {
            return Keyed::Undecided;
        }
        if key.len() > key_bytes_max {
            let (name, key) = (Quoted(template.text()), Quoted(key));
            subject.log(
                Level::Error,
                format_args!(
                    "the value of the \"{name}\" key is more than {key_bytes_max} bytes: \"{key}\""
                ),
            );
            return Keyed::NotCounted;
        }
        if key.is_empty() {
            Keyed::NotCounted
        } else {
            Keyed::Counted(count(key))
        }
    })
}

/// The status of refusals, as `directive` sets it.
///
/// # Errors
/// Where it is not one of an error.
pub(crate) fn status(view: View<'_>, directive: &str) -> Result<u16, ConfError> {
    match u16::try_from(view.number(directive)) {
        Ok(status @ 400..=599) => Ok(status),
        _ => {
            let entry = view.nearest(directive);
            let span = entry.map_or(view.span(), |entry| entry.span);
            Err(view.error(span, "value must be between 400 and 599"))
        }
    }
}

/// nginx's message about a zone that is declared twice.
pub(crate) fn already_bound(directive: &str, name: &str, key: &Template) -> String {
    let key = String::from_utf8_lossy(key.text());
    format!("{directive} \"{name}\" is already bound to key \"{key}\"")
}

/// nginx's message about a zone that nobody declared.
pub(crate) fn undeclared(name: impl Display) -> String {
    format!("zero size shared memory zone \"{name}\", is the line that declares it missing?")
}

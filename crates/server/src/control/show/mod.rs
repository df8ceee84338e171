//! Answers as people read them: a row a thing, units that people use, and words for what is empty.
//!
//! An answer that has no view of its own is shown as the table of its members.

mod lists;
mod requests;
mod table;
#[cfg(test)]
mod tests;
mod units;

use serde_json::Value;
pub(super) use units::{bytes, seconds};

/// What an answer looks like; `None`: as the table of its members.
type View = fn(&Value) -> Option<String>;

/// The verbs whose answers have a view of their own.
const VIEWS: &[(&str, View)] = &[
    ("status", lists::status),
    ("drain", lists::drain),
    ("reload", lists::reload),
    ("upstream.", lists::upstreams),
    ("cache.list", lists::zones),
    ("cache.show", lists::stored),
    ("lanes", lists::lanes),
    ("gates", lists::gates),
    ("connections", lists::connections),
    ("certificates", lists::certificates),
    ("requests", requests::requests),
    ("verbs", lists::verbs),
];

/// The answer to a verb as text.
pub(super) fn answer(verb: &str, answer: &Value) -> String {
    let views = VIEWS.iter().filter(|(name, _)| {
        if name.ends_with('.') {
            verb.starts_with(name)
        } else {
            verb == *name
        }
    });
    let shown = views.map(|(_, view)| view(answer)).next().flatten();
    shown.unwrap_or_else(|| table::of(answer))
}

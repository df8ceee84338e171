//! `$fastcgi_script_name` and `$fastcgi_path_info`: which script a request is for, and what its
//! path says behind that.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder, LocationDraft, Pattern};
use turnpike_http::regex::{Case, Regex};
use turnpike_http::variables::Evaluate;

use crate::common::by_location::ByLocation;

/// How a path is split in a location.
#[derive(Default)]
struct Script {
    /// `fastcgi_split_path_info`.
    split: Option<Pattern>,
    /// `fastcgi_index`.
    index: Vec<u8>,
}

/// `$fastcgi_script_name`.
struct Name(ByLocation<Script>);

/// `$fastcgi_path_info`.
struct PathInfo(ByLocation<Script>);

/// A pattern with two groups.
pub(super) fn check(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let pattern = words.first().copied().unwrap_or_default();
    match Regex::check(pattern, Case::Sensitive)?.group_count() {
        2 => Ok(()),
        _ => Err(format!("pattern \"{pattern}\" must have 2 captures").into()),
    }
}

/// Defines the variables.
pub(super) fn variables(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let scripts = builder.store::<ByLocation<Script>>().clone();
    let (name, path_info) = (Name(scripts.clone()), PathInfo(scripts));
    let table = &mut builder.variables;
    table
        .define_volatile("fastcgi_script_name", Arc::new(name))
        .and_then(|_| table.define_volatile("fastcgi_path_info", Arc::new(path_info)))
        .map_err(|message| view.error(view.span(), message))?;
    Ok(())
}

/// Remembers how paths are split in a location.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &LocationDraft,
) -> Result<(), ConfError> {
    let index = view.nearest("fastcgi_index");
    // As in nginx, the last one of a block counts.
    let split = match view.nearest_all("fastcgi_split_path_info").last() {
        None if index.is_none() => return Ok(()),
        None => None,
        Some(entry) => {
            let pattern = entry.argument(0);
            let place = view.place(entry.span);
            let programs = &mut builder.variables.programs;
            let regex = Regex::shared(pattern, Case::Sensitive, &place, programs);
            let regex = regex.map_err(|message| view.error(entry.span, message))?;
            Some(Pattern {
                regex,
                names: Vec::new(),
            })
        }
    };
    let script = Script {
        split,
        index: index.map_or(Vec::new(), |entry| bytes_of(entry.argument(0))),
    };
    let scripts = builder.store::<ByLocation<Script>>();
    scripts.insert(draft.index, Arc::new(script));
    Ok(())
}

impl Script {
    /// A group of the pattern, where the path matches it. The captures of the configuration's own
    /// patterns stay as they are.
    fn group(&self, exchange: &Exchange, number: usize, out: &mut Vec<u8>) -> bool {
        let Some(split) = &self.split else {
            return false;
        };
        let before = exchange.evaluation.captures().borrow().clone();
        // Without a verdict the exchange is answered with 500.
        let found = split
            .matches(exchange, exchange.walk.path())
            .unwrap_or(false);
        if found {
            let captures = exchange.evaluation.captures().borrow();
            out.extend_from_slice(captures.group(number).unwrap_or_default());
        }
        *exchange.evaluation.captures().borrow_mut() = before;
        found
    }
}

impl Evaluate<Exchange> for Name {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let script = self.0.of(exchange);
        let start = out.len();
        let script = script.as_deref();
        if !script.is_some_and(|script| script.group(exchange, 1, out)) {
            out.extend_from_slice(exchange.walk.path());
        }
        if let Some(script) = script
            && out.len() > start
            && out.ends_with(b"/")
        {
            out.extend_from_slice(&script.index);
        }
        true
    }
}

impl Evaluate<Exchange> for PathInfo {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        if let Some(script) = self.0.of(exchange) {
            script.group(exchange, 2, out);
        }
        true
    }
}

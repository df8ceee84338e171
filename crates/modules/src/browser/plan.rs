//! Reads which browsers are modern.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View};
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::{Ages, Ancient, Browsers, KINDS, Modern, Rule};

/// What the variables look up by location; filled while the plan is built.
#[derive(Default)]
struct Store(Ages);

/// A scale beyond the fourth number of a version has no room.
const SCALE: u64 = 1_000_000;

/// Reads a version: up to four numbers, each of two digits but for the first.
pub(super) fn version(text: &str) -> Option<u64> {
    let mut scale = SCALE;
    let mut version = 0_u64;
    for number in text.split('.') {
        let number: u64 = match number {
            "" => 0,
            // A number too large to be read is newer than any browser.
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().unwrap_or(u64::MAX)
            }
            _ => return None,
        };
        version = version.saturating_add(number.saturating_mul(scale));
        scale /= 100;
    }
    Some(version)
}

/// `browser version | unlisted`.
pub(super) fn check_modern(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["unlisted"] => Ok(()),
        [name] => Err(format!("unknown browser name \"{name}\"").into()),
        [name, text] => {
            if version(text).is_none() {
                return Err(format!("invalid browser version \"{text}\"").into());
            }
            if KINDS.iter().any(|kind| kind.name == *name) {
                Ok(())
            } else {
                Err(format!("unknown browser name \"{name}\"").into())
            }
        }
        _ => Ok(()),
    }
}

/// Defines the variables that depend on a location.
pub(super) fn variables(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let place = |message| view.error(view.span(), message);
    let ages = builder.store::<Store>().0.clone();
    let modern = Arc::new(Modern(ages.clone()));
    let ancient = Arc::new(Ancient(ages));
    let table = &mut builder.variables;
    let defined = table.define_volatile("modern_browser", modern);
    defined.map_err(place)?;
    let defined = table.define_volatile("ancient_browser", ancient);
    defined.map_err(place)?;
    Ok(())
}

/// Remembers the rules of a location.
pub(super) fn location(view: View<'_>, builder: &mut Builder<'_>, draft: &LocationDraft) {
    let names = [
        "modern_browser",
        "ancient_browser",
        "modern_browser_value",
        "ancient_browser_value",
    ];
    if names.iter().all(|name| view.nearest(name).is_none()) {
        return;
    }
    let mut browsers = Browsers {
        modern_value: view.text("modern_browser_value").as_bytes().into(),
        ancient_value: view.text("ancient_browser_value").as_bytes().into(),
        ..Browsers::default()
    };
    for entry in view.nearest_all("modern_browser") {
        let kind = KINDS.iter().find(|kind| kind.name == entry.argument(0));
        match (kind, version(entry.argument(1))) {
            (Some(kind), Some(version)) => browsers.modern.push(Rule { kind, version }),
            _ => browsers.unlisted_is_modern = true,
        }
    }
    for entry in view.nearest_all("ancient_browser") {
        for word in entry.arguments.iter() {
            match word.text.as_str() {
                "netscape4" => browsers.netscape4_is_ancient = true,
                _ => browsers.ancient.push(word.bytes().into()),
            }
        }
    }
    builder.store::<Store>().0.insert(draft.index, browsers);
}

//! What the directives of this family mean for a location.

use std::fmt::Write;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View, value};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::{Mode, NotReset, Settings, Shown, UserIdFilter};
use crate::common::by_location::ByLocation;
use crate::common::cookie_expiry::Expires;

/// What the variables look up; filled while the plan is built.
#[derive(Default)]
struct Store(ByLocation<Settings>);

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let settings = builder.store::<Store>().0.clone();
    for (name, is_given) in [("uid_got", false), ("uid_set", true)] {
        let settings = settings.clone();
        let shown = Arc::new(Shown { settings, is_given });
        let defined = builder.variables.define_computed(name, shown);
        defined.map_err(|message| view.error(view.span(), message))?;
    }
    let defined = builder
        .variables
        .define_settable("uid_reset", Arc::new(NotReset));
    defined.map_err(|message| view.error(view.span(), message))?;
    Ok(())
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let mode = match view.choice("userid") {
        "log" => Mode::Log,
        "v1" => Mode::V1,
        "on" => Mode::On,
        _ => return Ok(()),
    };
    let settings = Arc::new(Settings {
        mode,
        name: view.text("userid_name").to_owned(),
        attributes: attributes(view),
        expires: expires(view),
        mark: mark(view),
        p3p: named(view, "userid_p3p").map(|text| text.as_bytes().to_vec()),
        service: view
            .try_number("userid_service")
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        reset: builder.variables.reference("uid_reset"),
    });
    builder
        .store::<Store>()
        .0
        .insert(draft.index, Arc::clone(&settings));
    if mode != Mode::Log {
        draft.add_filter(FilterPlace::Headers, Arc::new(UserIdFilter(settings)));
    }
    Ok(())
}

/// A text that is left out with "none".
fn named<'a>(view: View<'a>, directive: &str) -> Option<&'a str> {
    view.try_text(directive)
        .filter(|text| *text != "none" && !text.is_empty())
}

fn mark(view: View<'_>) -> Option<u8> {
    let text = view.try_text("userid_mark").filter(|text| *text != "off")?;
    text.bytes().next()
}

fn expires(view: View<'_>) -> Option<Expires> {
    match view.try_text("userid_expires")? {
        "off" => None,
        "max" => Some(Expires::Max),
        text => value::seconds(text).map(Expires::Seconds),
    }
}

/// What stands in the cookie behind its date.
fn attributes(view: View<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if let Some(domain) = named(view, "userid_domain") {
        let _ = write!(text, "; domain={domain}");
    }
    let _ = write!(text, "; path={}", view.text("userid_path"));
    let flags = view.nearest_all("userid_flags");
    let has = |flag: &str| {
        let mut words = flags.iter().flat_map(|entry| entry.arguments.iter());
        words.any(|word| word.text == flag)
    };
    for flag in [
        "secure",
        "httponly",
        "samesite=strict",
        "samesite=lax",
        "samesite=none",
    ] {
        if has(flag) {
            let _ = write!(text, "; {flag}");
        }
    }
    text
}

/// A letter, a digit, `=` or `off`.
pub(super) fn check_mark(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        [mark]
            if mark.len() == 1 && mark.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'=') =>
        {
            Ok(())
        }
        _ => Err("value must be \"off\" or a single letter, digit or \"=\"".into()),
    }
}

/// A time, `max` or `off`.
pub(super) fn check_expires(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["max" | "off"] => Ok(()),
        [text] if value::seconds(text).is_some() => Ok(()),
        _ => Err("invalid value".into()),
    }
}

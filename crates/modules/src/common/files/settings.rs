//! What the directives of open files mean for a location: `open_file_cache` and its companions, and
//! `disable_symlinks`.

use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;

/// `disable_symlinks`.
#[derive(Clone, Debug)]
pub(crate) enum SymlinkSettings {
    Allowed,
    /// Refused, from the prefix on where one is given.
    Refused(Option<Template>),
    /// Refused where link and target have different owners.
    RefusedUnlessOwner(Option<Template>),
}

/// `open_file_cache` and its companions.
#[derive(Clone, Debug)]
pub(crate) struct OpenFileCacheSettings {
    /// Entries kept.
    pub(super) entries_max: usize,
    /// Dropped when not used for so long, in milliseconds.
    pub(super) inactive_ms: u64,
    /// Looked at again after so long, in milliseconds.
    pub(super) valid_ms: u64,
    /// Uses within `inactive` that keep a descriptor open.
    pub(super) uses_min: u32,
    /// Failures are remembered too.
    pub(super) errors: bool,
}

/// Checks the arguments of `open_file_cache`: `off | max=N [inactive=time]`.
pub(crate) fn check_open_file_cache(name: &str, words: &[&str]) -> Result<(), Complaint> {
    let mut has_max = false;
    for word in words {
        let is_right = match word.split_once('=') {
            Some(("max", number)) => {
                has_max = true;
                value::number(number).is_some_and(|number| number > 0)
            }
            Some(("inactive", time)) => value::seconds(time).is_some(),
            _ if *word == "off" => {
                has_max = true;
                true
            }
            _ => false,
        };
        if !is_right {
            return Err(format!("invalid \"{name}\" parameter \"{word}\"").into());
        }
    }
    if has_max {
        Ok(())
    } else {
        Err(format!("\"{name}\" must have the \"max\" parameter").into())
    }
}

/// Reads `disable_symlinks`.
pub(super) fn symlinks(
    view: View<'_>,
    builder: &mut Builder<'_>,
) -> Result<SymlinkSettings, ConfError> {
    let Some(entry) = view.nearest("disable_symlinks") else {
        return Ok(SymlinkSettings::Allowed);
    };
    let mut mode = None;
    let mut from = None;
    for word in entry.arguments.iter() {
        match word.text.as_str() {
            "on" | "off" | "if_not_owner" if mode.is_none() => mode = Some(word.text.as_str()),
            text => {
                let prefix = text.strip_prefix("from=").ok_or_else(|| {
                    view.error(entry.span, format!("invalid parameter \"{text}\""))
                })?;
                if prefix.is_empty() {
                    continue;
                }
                from = Some(builder.template(view, entry, prefix.as_bytes())?);
            }
        }
    }
    match mode {
        Some("on") => Ok(SymlinkSettings::Refused(from)),
        Some("if_not_owner") => Ok(SymlinkSettings::RefusedUnlessOwner(from)),
        Some(_) => Ok(SymlinkSettings::Allowed),
        None => Err(view.error(
            entry.span,
            "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter"
                .to_owned(),
        )),
    }
}

/// Reads `open_file_cache`.
pub(super) fn open_file_cache(view: View<'_>) -> Result<Option<OpenFileCacheSettings>, ConfError> {
    const INACTIVE_DEFAULT_MS: u64 = 60_000;
    let Some(entry) = view.nearest("open_file_cache") else {
        return Ok(None);
    };
    let mut entries_max = None;
    let mut inactive_ms = INACTIVE_DEFAULT_MS;
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        if text == "off" {
            return Ok(None);
        } else if let Some(max) = text.strip_prefix("max=") {
            let max = max.parse().ok().filter(|max| *max > 0);
            entries_max = Some(max.ok_or_else(|| invalid_cache(view, entry, text))?);
        } else if let Some(time) = text.strip_prefix("inactive=") {
            inactive_ms = value::seconds(time).ok_or_else(|| invalid_cache(view, entry, text))?;
            inactive_ms = inactive_ms.saturating_mul(1000);
        } else {
            return Err(invalid_cache(view, entry, text));
        }
    }
    let Some(entries_max) = entries_max else {
        let message = "\"open_file_cache\" must have the \"max\" parameter".to_owned();
        return Err(view.error(entry.span, message));
    };
    let uses = view.number("open_file_cache_min_uses");
    Ok(Some(OpenFileCacheSettings {
        entries_max,
        inactive_ms,
        valid_ms: view.seconds("open_file_cache_valid").saturating_mul(1000),
        uses_min: u32::try_from(uses).unwrap_or(u32::MAX),
        errors: view.flag("open_file_cache_errors"),
    }))
}

fn invalid_cache(view: View<'_>, entry: &Entry, text: &str) -> ConfError {
    let message = format!("invalid \"open_file_cache\" parameter \"{text}\"");
    view.error(entry.span, message)
}

#[cfg(test)]
mod tests;

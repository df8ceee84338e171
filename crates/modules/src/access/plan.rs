//! Reads the rules of a level, `allow` and `deny` in one order.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::{Rule, Rules, Who};
use turnpike_plan::cidr::Cidr;

/// Adds the rules that hold in a location.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    if let Some(rules) = rules(view)? {
        draft.add_handler(HandlerPlace::AddressAccess, Arc::new(rules));
    }
    Ok(())
}

/// The rules that hold in a block, where there are any.
pub(super) fn rules(view: View<'_>) -> Result<Option<Rules>, ConfError> {
    let mut level = Some(view);
    while let Some(view) = level {
        let rules = level_rules(view)?;
        if !rules.is_empty() {
            return Ok(Some(Rules::new(rules)));
        }
        level = view.parent();
    }
    Ok(None)
}

fn level_rules(view: View<'_>) -> Result<Vec<Rule>, ConfError> {
    let entries = view.own_of(&["allow", "deny"]).into_iter();
    entries
        .map(|entry| rule(entry).map_err(|message| view.error(entry.span, message)))
        .collect()
}

fn rule(entry: &Entry) -> Result<Rule, Complaint> {
    let text = entry
        .arguments
        .first()
        .map_or("", |word| word.text.as_str());
    let who = match text {
        "all" => Who::All,
        "unix:" => Who::Unix,
        _ => {
            let range = Cidr::parse(text);
            Who::Range(range.ok_or_else(|| format!("invalid parameter \"{text}\""))?)
        }
    };
    Ok(Rule {
        who,
        denies: entry.row.name == "deny",
    })
}

/// `address | CIDR | unix: | all`.
pub(super) fn check(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let text = words.first().copied().unwrap_or_default();
    if matches!(text, "all" | "unix:") || Cidr::parse(text).is_some() {
        Ok(())
    } else {
        Err(format!("invalid parameter \"{text}\"").into())
    }
}

//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;

use super::handler::{Prepared, Rules, SubFilterFilter};
use super::strings::{Strings, Times};
use crate::common::content_types::Types;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let entries = view.nearest_all("sub_filter");
    let Some(last) = entries.last() else {
        return Ok(());
    };
    let times = if view.flag("sub_filter_once") {
        Times::Once
    } else {
        Times::Always
    };
    let mut rules = Vec::with_capacity(entries.len());
    for entry in &entries {
        rules.push(rule(view, entry, builder)?);
    }
    let rules = settle(rules, times).map_err(|error| view.error(last.span, error.to_string()))?;
    let filter = SubFilterFilter {
        rules,
        times,
        keeps_last_modified: view.flag("sub_filter_last_modified"),
        types: Types::read(view, "sub_filter_types", &["text/html"]),
    };
    draft.add_filter(FilterPlace::Replace, Arc::new(filter));
    Ok(())
}

fn rule(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<(Template, Template), ConfError> {
    let [string, replacement] = &*entry.arguments else {
        return Err(view.error(entry.span, "invalid number of arguments in \"sub_filter\""));
    };
    if string.text.is_empty() {
        return Err(view.error(entry.span, "empty search pattern"));
    }
    let string = builder.template(view, entry, &string.bytes())?;
    let replacement = builder.template(view, entry, &replacement.bytes())?;
    Ok((string, replacement))
}

/// Does once what need not be done for each response.
fn settle(
    rules: Vec<(Template, Template)>,
    times: Times,
) -> Result<Rules, aho_corasick::BuildError> {
    let constant = |template: &Template| template.constant().map(<[u8]>::to_vec);
    let strings: Option<Vec<Vec<u8>>> = rules.iter().map(|(string, _)| constant(string)).collect();
    let Some(strings) = strings else {
        return Ok(Rules::Variable(rules));
    };
    let strings = Arc::new(Strings::new(&strings, times)?);
    let replacements: Option<Arc<[Vec<u8>]>> =
        rules.iter().map(|(_, text)| constant(text)).collect();
    Ok(match replacements {
        Some(replacements) => Rules::Constant(Prepared {
            strings,
            replacements,
        }),
        None => {
            let templates = rules.into_iter().map(|(_, replacement)| replacement);
            Rules::Replacements(strings, templates.collect())
        }
    })
}

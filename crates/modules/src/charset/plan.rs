//! What the directives of this family mean for a location.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;

use super::handler::CharsetFilter;
use super::recode::{Invalid, Pair, Table};
use crate::common::content_types::Types;

/// Types of responses that the family is for where none are named; nginx's.
const TYPES: &[&str] = &[
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let mut maps = Maps::default();
    for block in view.children("charset_map") {
        maps.add(block)?;
    }
    *builder.store::<Arc<Maps>>() = Arc::new(maps);
    Ok(())
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let target = name(view, "charset", builder)?;
    let source = name(view, "source_charset", builder)?;
    let target = target.filter(|target| target.constant() != Some(b"off"));
    let maps = Arc::clone(builder.store::<Arc<Maps>>());
    // Where there are maps, a server may ask for a conversion anywhere.
    if target.is_none() && maps.0.is_empty() {
        return Ok(());
    }
    let fixed = |name: &Option<Template>| {
        let name = name.as_ref().and_then(Template::constant)?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    if let (Some(from), Some(to)) = (fixed(&source), fixed(&target))
        && !from.eq_ignore_ascii_case(&to)
        && maps.find(from.as_bytes(), to.as_bytes()).is_none()
    {
        let message = format!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"");
        return Err(view.error(view.end(), message));
    }
    let filter = CharsetFilter {
        target,
        source,
        overrides: view.flag("override_charset"),
        types: Types::read(view, "charset_types", TYPES),
        maps,
    };
    draft.add_filter(FilterPlace::Charset, Arc::new(filter));
    Ok(())
}

/// The name that the directive in force gives.
fn name(
    view: View<'_>,
    directive: &str,
    builder: &mut Builder<'_>,
) -> Result<Option<Template>, ConfError> {
    let Some(entry) = view.nearest(directive) else {
        return Ok(None);
    };
    let text = turnpike_conf::bytes_of(entry.argument(0));
    if text.starts_with(b"$") {
        builder.template(view, entry, &text).map(Some)
    } else {
        Ok(Some(Template::literal(&text)))
    }
}

/// Tables by the lower-case names of both character sets.
#[derive(Default)]
pub(super) struct Maps(HashMap<FromTo, Arc<Table>>);

type FromTo = (Box<[u8]>, Box<[u8]>);

impl Maps {
    /// How the first is converted to the second.
    pub(super) fn find(&self, from: &[u8], to: &[u8]) -> Option<&Arc<Table>> {
        let key = (
            from.to_ascii_lowercase().into(),
            to.to_ascii_lowercase().into(),
        );
        self.0.get(&key)
    }

    fn add(&mut self, block: View<'_>) -> Result<(), ConfError> {
        let (from, to) = (block.argument(0), block.argument(1));
        let refused = |message: String| Err(block.error(block.span(), message));
        if from.eq_ignore_ascii_case(to) {
            return refused(format!(
                "\"charset_map\" between the same charsets \"{from}\" and \"{to}\""
            ));
        }
        if from.eq_ignore_ascii_case("utf-8") {
            return refused(
                "\"charset_map\" with \"utf-8\" charset should be given in the second column"
                    .to_owned(),
            );
        }
        if self.find(from.as_bytes(), to.as_bytes()).is_some() {
            return refused(format!(
                "duplicate \"charset_map\" between \"{from}\" and \"{to}\""
            ));
        }
        let mut pair = if to.eq_ignore_ascii_case("utf-8") {
            Pair::of_utf8()
        } else {
            Pair::of_bytes()
        };
        for line in block.data() {
            let place = |message: String| block.error(line.span, message);
            let [other] = &*line.arguments else {
                return Err(place("invalid parameters number".to_owned()));
            };
            pair.add(&line.name.text, &other.text)
                .map_err(|Invalid(word)| place(format!("invalid value \"{word}\"")))?;
        }
        let lower = |name: &str| -> Box<[u8]> { name.to_ascii_lowercase().into_bytes().into() };
        let (from, to) = (lower(from), lower(to));
        let key = (from.clone(), to.clone());
        self.0.insert(key, Arc::new(pair.forth));
        self.0.insert((to, from), Arc::new(pair.back));
        Ok(())
    }
}

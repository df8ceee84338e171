//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::Phase;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::{Format, Listing};
use super::rows::ROWS;

/// The family of `autoindex`.
pub(crate) struct Autoindex;

impl Family for Autoindex {
    fn name(&self) -> &'static str {
        "autoindex"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        if !view.flag("autoindex") {
            return Ok(());
        }
        let charset = view.nearest("charset").map(|entry| entry.argument(0));
        let listing = Listing {
            format: match view.choice("autoindex_format") {
                "json" => Format::Json,
                "jsonp" => Format::Jsonp,
                "xml" => Format::Xml,
                _ => Format::Html,
            },
            local_time: view.flag("autoindex_localtime"),
            exact_size: view.flag("autoindex_exact_size"),
            utf8: charset.is_some_and(|charset| charset.eq_ignore_ascii_case("utf-8")),
        };
        draft.add_handler(Phase::Content, Arc::new(listing));
        Ok(())
    }
}

//! In which responses strings are replaced, and what their heads say then.

use std::sync::Arc;

use turnpike_http::body_filter::Filtered;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Body;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

use super::body::Replacing;
use super::strings::{Strings, Times};
use crate::common::changed_entity::{change_text, is_coded};
use crate::common::content_types::Types;

/// Replaces strings in texts.
pub(super) struct SubFilterFilter {
    pub(super) rules: Rules,
    pub(super) times: Times,
    pub(super) keeps_last_modified: bool,
    pub(super) types: Types,
}

/// What is replaced by what.
pub(super) enum Rules {
    /// The same for all requests.
    Constant(Prepared),
    /// Only the replacements differ.
    Replacements(Arc<Strings>, Vec<Template>),
    /// Strings and replacements.
    Variable(Vec<(Template, Template)>),
}

/// What is replaced by what in one response.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) strings: Arc<Strings>,
    pub(super) replacements: Arc<[Vec<u8>]>,
}

impl Filter for SubFilterFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &exchange.response;
        let concerned = self.types.has(response.content_type())
            && response.content_length() != Some(0)
            && !is_coded(response)
            && !matches!(response.status(), 204 | 304);
        if !concerned {
            return None;
        }
        let prepared = match self.rules.prepare(exchange, self.times) {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return None,
            Err(message) => {
                exchange.log(Level::Error, format_args!("{message}"));
                return Some(500);
            }
        };
        let response = &mut exchange.response;
        change_text(response, self.keeps_last_modified);
        if !response.is_head_only() {
            let filter = Replacing::new(prepared.strings, prepared.replacements, self.times);
            let body = Filtered::new(response.take_stream(), filter);
            response.set_body(Body::Stream(Box::new(body)));
        }
        None
    }

    fn filters_parts(&self) -> bool {
        true
    }
}

impl Rules {
    /// `None`: every string is empty.
    fn prepare(&self, exchange: &Exchange, times: Times) -> Result<Option<Prepared>, String> {
        let replaced = match self {
            Self::Constant(prepared) => return Ok(Some(prepared.clone())),
            Self::Replacements(strings, templates) => {
                let values = templates.iter().map(|template| template.value(exchange));
                return Ok(Some(Prepared {
                    strings: Arc::clone(strings),
                    replacements: values.collect(),
                }));
            }
            Self::Variable(rules) => rules,
        };
        let (mut strings, mut replacements) = (Vec::new(), Vec::new());
        for (string, replacement) in replaced {
            let string = string.value(exchange);
            if !string.is_empty() {
                strings.push(string);
                replacements.push(replacement.value(exchange));
            }
        }
        if strings.is_empty() {
            return Ok(None);
        }
        let strings = Strings::new(&strings, times).map_err(|error| error.to_string())?;
        Ok(Some(Prepared {
            strings: Arc::new(strings),
            replacements: replacements.into(),
        }))
    }
}

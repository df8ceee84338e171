//! Which responses are templates, and what their heads say then.

use std::sync::Arc;

use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Body;

use super::body::TemplateBody;
use super::plan::Settings;
use crate::types::Types;

/// `ssi`.
pub(super) struct SsiFilter {
    pub(super) types: Types,
    pub(super) keeps_last_modified: bool,
    pub(super) settings: Arc<Settings>,
}

impl Filter for SsiFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let is_part = exchange.purpose() == Purpose::Part;
        let response = &mut exchange.response;
        let coded = response.fields.values(b"Content-Encoding").next().is_some();
        let concerned = !response.content_type.is_empty()
            && self.types.has(&response.content_type)
            && !coded
            && !matches!(response.status, 204 | 304);
        if !concerned {
            return None;
        }
        if !is_part {
            response.content_length = None;
            response.ranges_allowed = false;
            response.fields.remove(b"Accept-Ranges");
            match self.keeps_last_modified {
                true => weaken(&mut response.etag),
                false => {
                    response.last_modified = None;
                    response.etag.clear();
                    response.fields.remove(b"Last-Modified");
                }
            }
        }
        if response.head_only {
            return None;
        }
        let body = response.take_stream();
        let template = TemplateBody::new(body, Arc::clone(&self.settings), exchange);
        exchange.response.body = Body::Stream(Box::new(template));
        None
    }

    fn filters_parts(&self) -> bool {
        true
    }
}

/// Makes an entity tag a weak one: the text between commands is the same, the page need not be.
fn weaken(etag: &mut Vec<u8>) {
    if !etag.is_empty() && !etag.starts_with(b"W/") {
        etag.splice(0..0, *b"W/");
    }
}

//! Which responses are templates, and what their heads say then.

use std::sync::Arc;

use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Body;

use super::body::{PageBody, TemplateBody};
use super::plan::Settings;
use crate::common::changed_entity::{change_text, is_coded};
use crate::common::content_types::Types;

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
        let concerned = self.types.has(response.content_type())
            && !is_coded(response)
            && !matches!(response.status(), 204 | 304);
        if !concerned {
            return None;
        }
        if !is_part {
            change_text(response, self.keeps_last_modified);
        }
        if response.is_head_only() {
            return None;
        }
        let body = exchange.take_stream();
        let settings = Arc::clone(&self.settings);
        let mut page: Box<PageBody> = exchange.rooms.take_spare();
        let rooms = &mut exchange.rooms;
        page.begin(|buffers| TemplateBody::new(body, settings, buffers, rooms));
        exchange.response.set_body(Body::Stream(page));
        None
    }

    fn filters_parts(&self) -> bool {
        true
    }
}

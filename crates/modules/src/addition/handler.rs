//! Which responses have texts added to them, and what their heads say then.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Body;

use crate::common::added_body::AddedBody;
use crate::common::changed_entity::{change_text, is_coded};
use crate::common::content_types::Types;

/// Adds what other locations answer.
pub(super) struct AdditionFilter {
    /// The path whose answer comes first.
    pub(super) before: Option<Arc<[u8]>>,
    /// The path whose answer comes last.
    pub(super) after: Option<Arc<[u8]>>,
    pub(super) types: Types,
}

impl Filter for AdditionFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &mut exchange.response;
        let concerned = response.status() == 200
            && self.types.has(response.content_type())
            && !is_coded(response);
        if !concerned {
            return None;
        }
        change_text(response, true);
        if !response.is_head_only() {
            let body = response.take_stream();
            let body = AddedBody::new(self.before.clone(), body, self.after.clone());
            response.set_body(Body::Stream(Box::new(body)));
        }
        None
    }
}

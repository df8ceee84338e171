//! What this family does with a response.

use std::sync::Arc;

use turnpike_http::body_filter::Filtered;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::{Body, BodyStream, CharsetConversion, Response};
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

use super::plan::Maps;
use super::recode::{Recoding, Table};
use crate::common::changed_entity::{is_coded, lose_length};
use crate::common::content_types::Types;

/// Bytes of a body that are converted at once: its new length is known then, and parts of it can be
/// asked for.
const WHOLE_BYTES_MAX: u64 = 64 * 1024;

/// Says which character set texts are in, and converts them.
pub(super) struct CharsetFilter {
    pub(super) target: Option<Template>,
    pub(super) source: Option<Template>,
    pub(super) overrides: bool,
    pub(super) types: Types,
    pub(super) maps: Arc<Maps>,
}

impl Filter for CharsetFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let (target, source) = self.sets(exchange)?;
        match source {
            Some(source) if !source.eq_ignore_ascii_case(&target) => {
                if is_coded(&exchange.response) {
                    return None;
                }
                let Some(table) = self.maps.find(&source, &target) else {
                    let source = String::from_utf8_lossy(&source);
                    let target = String::from_utf8_lossy(&target);
                    exchange.log(
                        Level::Error,
                        format_args!(
                            "no \"charset_map\" between the charsets \"{source}\" and \"{target}\""
                        ),
                    );
                    return None;
                };
                let table = Arc::clone(table);
                name(&mut exchange.response, &target);
                recode(exchange, table)
            }
            _ => {
                name(&mut exchange.response, &target);
                None
            }
        }
    }

    fn is_same_for_all(&self) -> bool {
        let mut names = self.target.iter().chain(&self.source);
        names.all(|name| name.constant().is_some())
    }
}

impl CharsetFilter {
    /// The set that the response is to be in, and the one that it is in; `None`: it is left alone.
    fn sets(&self, exchange: &Exchange) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let response = &exchange.response;
        let value = |name: &Option<Template>| {
            let value = name.as_ref()?.value(exchange);
            (!value.is_empty()).then_some(value)
        };
        if response.content_type().is_empty() {
            return None;
        }
        let own = split(response.content_type()).1.map(<[u8]>::to_vec);
        match (response.charset_conversion(), own) {
            (CharsetConversion::Instead(wish), own) => Some((wish.clone(), own)),
            (CharsetConversion::Named, own) => Some((own?, value(&self.source))),
            (CharsetConversion::No, Some(own)) if self.overrides => {
                Some((value(&self.target)?, Some(own)))
            }
            (CharsetConversion::No, None) if self.types.has(response.content_type()) => {
                Some((value(&self.target)?, value(&self.source)))
            }
            (CharsetConversion::No, _) => None,
        }
    }
}

/// The type without its character set, and that.
pub(super) fn split(content_type: &[u8]) -> (&[u8], Option<&[u8]>) {
    const NAME: &[u8] = b"charset=";
    for semicolon in memchr::memchr_iter(b';', content_type) {
        let parameter = content_type[semicolon + 1..].trim_ascii_start();
        if let Some((name, value)) = parameter.split_at_checked(NAME.len())
            && name.eq_ignore_ascii_case(NAME)
        {
            let end = memchr::memchr(b';', value).unwrap_or(value.len());
            let value = value[..end].trim_ascii();
            let bare = value.strip_prefix(b"\"").unwrap_or(value);
            let bare = bare.strip_suffix(b"\"").unwrap_or(bare);
            return (&content_type[..semicolon], Some(bare));
        }
    }
    (content_type, None)
}

/// Says in Content-Type what the text is in, in place of a semicolon without a parameter. Redirects
/// do not: nginx's rule.
fn name(response: &mut Response, charset: &[u8]) {
    let bare = split(response.content_type()).0.trim_ascii_end();
    let bare = bare.strip_suffix(b";").unwrap_or(bare).len();
    response.content_type_mut().truncate(bare);
    if !matches!(response.status(), 301 | 302) {
        response.content_type_mut().extend_from_slice(b"; charset=");
        response.content_type_mut().extend_from_slice(charset);
    }
}

fn recode(exchange: &mut Exchange, table: Arc<Table>) -> Option<u16> {
    let response = &mut exchange.response;
    let at_hand = !matches!(response.body(), Body::Stream(_));
    let small = response.content_length().unwrap_or(u64::MAX) <= WHOLE_BYTES_MAX;
    if response.is_head_only() {
        if !table.keeps_length() {
            response.set_content_length(None);
        }
        return None;
    }
    let keeps_length = table.keeps_length();
    let mut body = Filtered::new(response.take_stream(), Recoding::new(table));
    let mut text = Vec::new();
    if at_hand && small {
        let mut piece = Vec::new();
        let is_whole = loop {
            piece.clear();
            let more = body.ready(exchange, &mut piece);
            text.extend_from_slice(&piece);
            match more {
                Some(Ok(true)) => {}
                Some(Ok(false)) => break true,
                // The rest of a file is not in memory.
                None => break false,
                Some(Err(_)) => return Some(500),
            }
        };
        if is_whole {
            exchange.response.set_text(text);
            exchange.response.send_text();
            return None;
        }
    }
    let response = &mut exchange.response;
    if !keeps_length {
        lose_length(response);
    }
    response.set_body(Body::Stream(Box::new(body.with_begun(text))));
    None
}

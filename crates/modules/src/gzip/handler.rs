//! Which responses are compressed or expanded, and what their heads say then.

use std::sync::Arc;

use turnpike_http::body_filter::Filtered;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Verdict};
use turnpike_http::response::{Body, BodyStream, Response};
use turnpike_lane::log::Level;
use turnpike_wire::message::Method;

use super::accept::Acceptance;
use super::compress::{Compressed, Compressor};
use super::expand::Expander;
use super::kept::{Recording, Source};
use super::plan::{Compressing, State};
use crate::entity::{lose_length, weaken};
use crate::files::{self, Files};
use crate::static_files;

/// `gzip`.
pub(super) struct GzipFilter {
    pub(super) acceptance: Arc<Acceptance>,
    pub(super) compression: Arc<Compressing>,
    pub(super) state: State,
}

impl Filter for GzipFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &exchange.response;
        let looked_at = LookedAt::of(response);
        let concerned = looked_at.has_content
            && looked_at.coding.is_none()
            && looked_at
                .length
                .is_none_or(|length| length >= self.compression.length_min)
            && self.compression.types.has(looked_at.content_type)
            && !exchange.upstream.forbids_transforming();
        if !concerned {
            return None;
        }
        self.acceptance.add_vary(exchange);
        if !self.acceptance.accepts(exchange) {
            return None;
        }
        if exchange.response.withheld().stands {
            weaken(exchange.response.etag_mut());
            return None;
        }
        exchange
            .response
            .fields_mut()
            .add(b"Content-Encoding", b"gzip");
        let source = Source::of(exchange.response.body());
        if let Some(source) = &source
            && let Some(form) = exchange.plan.state(&self.state.kept).form_of(source)
        {
            answer_with(exchange, source, form);
            return None;
        }
        let compression = Arc::clone(&self.compression);
        let state = self.state;
        recode(&mut exchange.response, |body| {
            let compressor = Compressor::new(compression, state, source.map(Recording::new));
            Body::Stream(Box::new(Filtered::new(body, compressor)))
        });
        None
    }
}

/// Answers with what was made of the same source before.
fn answer_with(exchange: &mut Exchange, source: &Source, form: Arc<[u8]>) {
    let length = form.len() as u64;
    *exchange.rooms.get_mut() = Compressed {
        taken_bytes: source.length(),
        given_bytes: length,
    };
    let response = &mut exchange.response;
    lose_length(response);
    weaken(response.etag_mut());
    response.set_content_length(Some(length));
    response.set_body(Body::Shared(form));
}

/// `gunzip`.
pub(super) struct GunzipFilter {
    pub(super) acceptance: Arc<Acceptance>,
    /// Most bytes in one piece.
    pub(super) piece_bytes: usize,
}

impl Filter for GunzipFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let coding = LookedAt::of(&exchange.response).coding;
        let is_gzip = coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"));
        if !is_gzip || exchange.upstream.forbids_transforming() {
            return None;
        }
        // A part of another response has to be text.
        if exchange.purpose() != Purpose::Part {
            self.acceptance.add_vary(exchange);
            if self.acceptance.accepts(exchange) {
                return None;
            }
        }
        if exchange.response.withheld().stands {
            weaken(exchange.response.etag_mut());
            return None;
        }
        exchange.response.fields_mut().remove(b"Content-Encoding");
        recode(&mut exchange.response, |body| {
            let expander = Expander::new(self.piece_bytes);
            Body::Stream(Box::new(Filtered::new(body, expander)))
        });
        None
    }

    fn filters_parts(&self) -> bool {
        true
    }
}

/// What decides whether a response is coded anew: of a 304, what its 200 would have had, so that
/// both have the same Vary and entity tag (RFC 9110 section 15.4.5).
struct LookedAt<'a> {
    has_content: bool,
    content_type: &'a [u8],
    length: Option<u64>,
    coding: Option<&'a [u8]>,
}

impl<'a> LookedAt<'a> {
    fn of(response: &'a Response) -> Self {
        let withheld = response.withheld();
        if withheld.stands {
            return Self {
                has_content: true,
                content_type: &withheld.content_type,
                length: withheld.content_length,
                coding: Some(withheld.coding.as_slice()).filter(|coding| !coding.is_empty()),
            };
        }
        Self {
            has_content: matches!(response.status(), 200 | 403 | 404),
            content_type: response.content_type(),
            length: response.content_length(),
            coding: coding(response),
        }
    }
}

/// The coding that the response has already.
fn coding(response: &Response) -> Option<&[u8]> {
    let mut values = response.fields().values(b"Content-Encoding");
    values.find(|value| !value.is_empty())
}

/// Makes the response another coding of the same: its length is not known, parts of it are not
/// offered, and its ETag says that bytes differ (RFC 9110 section 8.8.1).
fn recode(response: &mut Response, stream: impl FnOnce(Box<dyn BodyStream>) -> Body) {
    lose_length(response);
    weaken(response.etag_mut());
    if !response.is_head_only() {
        let body = response.take_stream();
        response.set_body(stream(body));
    } else if !matches!(response.body(), Body::Stream(_)) {
        response.set_body(Body::Empty);
    }
}

/// `gzip_static`.
pub(super) struct GzipStatic {
    pub(super) files: Files,
    pub(super) acceptance: Arc<Acceptance>,
    /// Whatever the client accepts.
    pub(super) always: bool,
}

impl Handler for GzipStatic {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let fits = matches!(exchange.method(), Method::Get | Method::Head)
            && exchange.walk.path().last() != Some(&b'/');
        let accepts = self.always || self.acceptance.accepts(exchange);
        // Where the file is there for others, its sender has to say so.
        if !fits || (!accepts && !self.acceptance.vary) {
            return Verdict::Declined;
        }
        files::with_file_path(exchange, |exchange, path| {
            path.extend_from_slice(b".gz");
            self.answer(exchange, path, accepts)
        })
    }
}

impl GzipStatic {
    fn answer(&self, exchange: &mut Exchange, path: &[u8], accepts: bool) -> Verdict {
        let file = match self.files.open(exchange, path) {
            Ok(file) => file,
            Err(error) if files::is_absence(error.errno) => return Verdict::Declined,
            Err(error) => {
                let refused = error.errno == libc::EACCES || files::is_refused_link(error.errno);
                let level = if refused { Level::Error } else { Level::Crit };
                files::log_failure(exchange, level, path, error);
                return Verdict::Declined;
            }
        };
        if !self.always {
            self.acceptance.add_vary(exchange);
        }
        if !accepts || file.metadata().is_directory() {
            return Verdict::Declined;
        }
        let verdict = static_files::answer(exchange, path, file);
        if matches!(verdict, Verdict::Respond) {
            exchange
                .response
                .fields_mut()
                .add(b"Content-Encoding", b"gzip");
            // Parts of the file would be parts of another coding than clients mean.
            exchange.response.allow_ranges(false);
        }
        verdict
    }
}

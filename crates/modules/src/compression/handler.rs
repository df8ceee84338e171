//! Which responses are compressed or expanded, and what their heads say then.

use std::sync::Arc;

use turnpike_http::body_filter::Filtered;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Verdict};
use turnpike_http::response::{Body, BodyStream, Response};
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::Level;
use turnpike_wire::message::Method;

use super::accept::Acceptance;
use super::compress::{Compressed, Compressor};
use super::encoder::Coding;
use super::expand::Expander;
use super::kept::{Recording, Source};
use super::plan::{Compressing, State};
use crate::common::changed_entity::{lose_length, weaken};
use crate::common::file_response;
use crate::common::files::{self, Files};

/// `gzip`, `brotli` and `zstd`: one filter, since a client gets the coding that it likes best.
pub(super) struct CompressFilter {
    pub(super) acceptance: Arc<Acceptance>,
    /// At most one of a coding, in the order of [`Coding`].
    pub(super) choices: Box<[Choice]>,
}

/// A coding that responses of a location may get.
pub(super) struct Choice {
    pub(super) compression: Arc<Compressing>,
    pub(super) state: State,
}

impl Choice {
    fn coding(&self) -> Coding {
        self.compression.strength.coding
    }

    /// Whether it is meant for such a response.
    fn concerns(&self, looked_at: &LookedAt<'_>) -> bool {
        let compression = &self.compression;
        let long_enough = looked_at.length >= Some(compression.length_min);
        (looked_at.length.is_none() || long_enough) && compression.types.has(looked_at.content_type)
    }
}

impl CompressFilter {
    /// The choice that the client likes best; of equals the first. `concerned`: for which of them
    /// the response is.
    fn best(&self, exchange: &Exchange, concerned: [bool; CHOICES_MAX]) -> Option<&Choice> {
        let mut best = (0, None);
        for (choice, concerned) in self.choices.iter().zip(concerned) {
            if concerned {
                let weight = self.acceptance.weight(exchange, choice.coding());
                if weight > best.0 {
                    best = (weight, Some(choice));
                }
            }
        }
        best.1
    }
}

/// Choices of a location: one of each coding.
const CHOICES_MAX: usize = Coding::ALL.len();

impl Filter for CompressFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let looked_at = LookedAt::of(&exchange.response);
        let may_be_coded = looked_at.has_content
            && looked_at.coding.is_none()
            && !exchange.upstream.forbids_transforming();
        if !may_be_coded {
            return None;
        }
        let mut concerned = [false; CHOICES_MAX];
        for (choice, concerned) in self.choices.iter().zip(&mut concerned) {
            *concerned = choice.concerns(&looked_at);
        }
        if !concerned.contains(&true) {
            return None;
        }
        self.acceptance.add_vary(&mut exchange.response);
        let Choice { compression, state } = self.best(exchange, concerned)?;
        if exchange.response.withheld().is_set {
            weaken(exchange.response.etag_mut());
            return None;
        }
        let coding = compression.strength.coding;
        let fields = exchange.response.fields_mut();
        fields.add(b"Content-Encoding", coding.token().as_bytes());
        let source = Source::of(exchange.response.body());
        if let Some(source) = &source
            && let Some(form) = exchange.plan.state(&state.kept).form_of(source)
        {
            let Exchange {
                rooms, response, ..
            } = exchange;
            answer_with(rooms, response, coding, source, form);
            return None;
        }
        let (compression, state) = (Arc::clone(compression), *state);
        recode(&mut exchange.response, |body| {
            let compressor = Compressor::new(compression, state, source.map(Recording::new));
            Body::Stream(Box::new(Filtered::new(body, compressor)))
        });
        None
    }
}

/// Answers with what was made of the same source before.
fn answer_with(
    rooms: &mut Rooms,
    response: &mut Response,
    coding: Coding,
    source: &Source,
    form: Arc<[u8]>,
) {
    let length = form.len() as u64;
    *rooms.get_mut() = Compressed {
        coding: Some(coding),
        taken_bytes: source.length(),
        given_bytes: length,
    };
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
            self.acceptance.add_vary(&mut exchange.response);
            if self.acceptance.weight(exchange, Coding::Gzip) > 0 {
                return None;
            }
        }
        if exchange.response.withheld().is_set {
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
        if withheld.is_set {
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

/// `gzip_static`, `brotli_static` and `zstd_static`.
pub(super) struct StaticForms {
    pub(super) files: Files,
    pub(super) acceptance: Arc<Acceptance>,
    /// At most one of a coding, in the order of [`Coding`].
    pub(super) forms: Box<[StaticForm]>,
}

/// Files in one coding.
pub(super) struct StaticForm {
    pub(super) coding: Coding,
    /// Sent also to clients that do not accept the coding.
    pub(super) always: bool,
}

impl Handler for StaticForms {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let fits = matches!(exchange.method(), Method::Get | Method::Head)
            && exchange.walk.path().last() != Some(&b'/');
        if !fits {
            return Verdict::Declined;
        }
        let mut asked = [(0, None); CHOICES_MAX];
        for (form, asked) in self.forms.iter().zip(&mut asked) {
            let weight = self.acceptance.weight(exchange, form.coding);
            *asked = (weight, Some(form));
        }
        // It is stable: of equals the first.
        asked.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        for (weight, form) in asked {
            let Some(form) = form else {
                continue;
            };
            let accepts = form.always || weight > 0;
            // Where the file is there for others, its sender has to say so.
            if !accepts && !self.acceptance.vary {
                continue;
            }
            let verdict = files::with_file_path(exchange, |exchange, path| {
                path.extend_from_slice(form.coding.suffix());
                self.answer(exchange, path, form, accepts)
            });
            if !matches!(verdict, Verdict::Declined) {
                return verdict;
            }
        }
        Verdict::Declined
    }
}

impl StaticForms {
    fn answer(
        &self,
        exchange: &mut Exchange,
        path: &[u8],
        form: &StaticForm,
        accepts: bool,
    ) -> Verdict {
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
        if !form.always {
            self.acceptance.add_vary(&mut exchange.response);
        }
        if !accepts || file.metadata().is_directory() {
            return Verdict::Declined;
        }
        let verdict = file_response::answer(exchange, &self.files, path, file);
        if matches!(verdict, Verdict::Respond) {
            let coding = form.coding.token();
            let fields = exchange.response.fields_mut();
            fields.add(b"Content-Encoding", coding.as_bytes());
            // Parts of the file would be parts of another coding than clients mean.
            exchange.response.set_ranges_allowed(false);
        }
        verdict
    }
}

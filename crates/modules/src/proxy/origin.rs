//! HTTP/1 as the proxy's servers talk it.

use turnpike_http::exchange::Exchange;
use turnpike_wire::message::{Head, Version};

use super::cookies::{self, CookieRewrites};
use super::request::{self, Request};
use super::rewrites::Rewrites;
use super::{head, hops};
use crate::pass::head::{Progress, ReceivedHead};
use crate::pass::origin::{BodyFormat, BodyFraming, Origin, Path, Question, Unwritable};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;
use crate::pass::target::{PassUrl, UrlError};

/// What a location's directives say of requests and responses of HTTP/1.
pub(super) struct HttpOrigin {
    pub(super) request: Request,
    pub(super) redirects: Rewrites,
    pub(super) cookies: CookieRewrites,
    pub(super) passes_trailers: bool,
    /// What this server is called in `Via`.
    pub(super) via: Option<Vec<u8>>,
}

impl Origin for HttpOrigin {
    fn ends_here(&self, exchange: &mut Exchange) -> bool {
        let ends = hops::ends_here(exchange);
        if ends {
            exchange.answer_options();
        }
        ends
    }

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse(text)
    }

    fn write_target(&self, exchange: &Exchange, path: &Path<'_>, out: &mut Vec<u8>) {
        request::write_target(exchange, path, out);
    }

    /// HTTP/1.0 knows no chunks.
    fn takes_unknown_length(&self) -> bool {
        self.request.version == Version::Http11
    }

    fn write_head(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let mut target = std::mem::take(&mut exchange.scratch);
        target.clear();
        request::write_target(exchange, &question.path, &mut target);
        let method = request::write_head(exchange, self, question, &target, out);
        exchange.scratch = target;
        request::note(exchange, &self.request, method, out);
        Ok(())
    }

    fn body_format(&self, framing: BodyFraming) -> BodyFormat {
        match framing {
            BodyFraming::Unknown => BodyFormat::Chunked,
            BodyFraming::None | BodyFraming::Length(_) => BodyFormat::Plain,
        }
    }

    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Vec<u8>,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        head::take_head(exchange, passing, input, head, progress)
    }

    fn rewrite_redirect(&self, exchange: &Exchange, kept: usize, value: &mut Vec<u8>) {
        self.redirects.apply(exchange, kept, value);
    }

    fn rewrite_cookie(&self, exchange: &Exchange, value: &mut Vec<u8>) {
        cookies::rewrite(&self.cookies, exchange, value);
    }

    fn names_via(&self) -> bool {
        self.via.is_some()
    }

    fn write_via(&self, received: Version, out: &mut Vec<u8>) {
        if let Some(name) = &self.via {
            hops::write_via(received, name, out);
        }
    }

    fn passes_trailers(&self) -> bool {
        self.passes_trailers
    }

    fn is_proxied(&self) -> bool {
        true
    }
}

//! Origins that speak HTTP, in the version that is configured, and those of gRPC.

mod cookies;
mod head;
mod hops;
mod request;
mod rewrites;

use turnpike_http::exchange::Exchange;
use turnpike_http::h1::origin::RequestLines;
use turnpike_http::received::Received;
use turnpike_wire::message::{Head, Version};

use super::head::{Progress, ReceivedHead};
use super::http2::{self, RequestBlock};
use super::origin::{BodyFormat, BodyFraming, Carries, Origin, Path, Question, Unwritable};
use super::server::Stop;
use super::settings::Passing;
use super::target::{PassUrl, UrlError};
use super::upgrade::{self, Upgrades};

pub(crate) use cookies::CookieRewrites;
pub(crate) use hops::read_via;
pub(crate) use request::{Fields, Request, accepts_trailers};
pub(crate) use rewrites::{Rewrites, check as check_rewrite};

/// What a location's directives say of requests and responses of HTTP.
pub(crate) struct HttpOrigin {
    /// How an address is read that is made of variables.
    pub(crate) parse_url: fn(&str) -> Result<PassUrl, UrlError>,
    pub(crate) request: Request,
    pub(crate) redirects: Rewrites,
    pub(crate) cookies: CookieRewrites,
    pub(crate) passes_trailers: bool,
    /// What this server is called in `Via`.
    pub(crate) via: Option<Vec<u8>>,
}

impl HttpOrigin {
    /// Servers of gRPC, whose requests have these fields.
    pub(crate) fn of_grpc(fields: Fields) -> Self {
        Self {
            parse_url: PassUrl::parse_grpc,
            request: Request {
                method: None,
                version: Version::Http20,
                fields,
                is_grpc: true,
            },
            redirects: Rewrites::default(),
            cookies: CookieRewrites::default(),
            passes_trailers: true,
            via: None,
        }
    }
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
        (self.parse_url)(text)
    }

    fn write_target(&self, exchange: &Exchange, path: &Path<'_>, out: &mut Vec<u8>) {
        request::write_target(exchange, path, out);
    }

    /// HTTP/1.0 knows no chunks.
    fn takes_unknown_length(&self) -> bool {
        self.request.version != Version::Http10
    }

    fn carries(&self) -> Carries {
        match self.request.version {
            Version::Http20 => Carries::Streams,
            _ => Carries::Messages,
        }
    }

    fn write_head(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let mut scratch = exchange.lane.take_scratch();
        request::write_target(exchange, &question.path, &mut scratch);
        let written = match self.request.version {
            Version::Http20 => {
                let mut block = RequestBlock::new(out, question.is_secure);
                request::write_head(exchange, self, question, &mut scratch, &mut block)
            }
            version => {
                let mut lines = RequestLines::new(out, version);
                let written =
                    request::write_head(exchange, self, question, &mut scratch, &mut lines);
                lines.end();
                written
            }
        };
        exchange.lane.keep_scratch(scratch);
        request::note(&mut exchange.upstream, &written);
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
        input: &mut Received,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        match self.request.version {
            Version::Http20 => http2::read_head(exchange, passing, head, progress),
            _ => {
                let received = head::take_head(exchange, passing, input, head, progress)?;
                let fields = &self.request.fields;
                let passes = fields.names_upgrade || fields.upgrades != Upgrades::None;
                if !passes && matches!(received, ReceivedHead::Whole) {
                    upgrade::hint(exchange, head);
                }
                Ok(received)
            }
        }
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

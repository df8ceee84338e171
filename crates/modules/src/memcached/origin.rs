//! memcached's text protocol as the engine needs it.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::received::Received;
use turnpike_http::rooms::Rooms;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;
use turnpike_wire::memcached::Line;
use turnpike_wire::message::{BodyEnd, Head, Method, decimal};
use turnpike_wire::target::{Escape, escape};

use super::value::Framing;
use crate::pass::head::{Progress, ReceivedHead, invalid};
use crate::pass::origin::{
    BodyFormat, BodyFraming, Origin, Path, Question, RecordLayer, Unwritable,
};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;
use crate::pass::target::{PassUrl, UrlError};

/// What log lines show before an address.
pub(super) const SCHEME: &str = "memcached://";

/// The most bytes of a value: together with the line behind it, it has a length that can be written
/// down, as in nginx.
const VALUE_BYTES_MAX: u64 = i64::MAX as u64 - b"\r\nEND\r\n".len() as u64;

/// What a request begins with.
const GET: &[u8] = b"get ";

/// What a location's directives say of requests and responses.
pub(super) struct MemcachedOrigin {
    pub(super) key: Template,
    /// `memcached_gzip_flag`; 0: no value is compressed.
    pub(super) gzip_flag: u32,
}

impl Origin for MemcachedOrigin {
    /// A server can only be asked for a value.
    fn refused(&self, exchange: &mut Exchange) -> Option<u16> {
        (!exchange.is_get_or_head()).then(|| exchange.method_refused())
    }

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    /// A server is asked for a key.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    /// A request has no body.
    fn takes_unknown_length(&self) -> bool {
        false
    }

    fn write_head(
        &self,
        exchange: &mut Exchange,
        _: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let key = self.key.value(exchange);
        if key.is_empty() {
            exchange.log(
                Level::Error,
                format_args!("the \"$memcached_key\" variable is not set"),
            );
            return Err(Unwritable);
        }
        out.extend_from_slice(GET);
        escape(&key, Escape::Memcached, out);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn body_format(&self, _: BodyFraming) -> BodyFormat {
        BodyFormat::Plain
    }

    fn record_layer(&self, _: &mut Rooms) -> Option<Box<dyn RecordLayer>> {
        Some(Box::new(Framing::new()))
    }

    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Received,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        let Some(feed) = memchr::memchr(b'\n', input) else {
            return if input.len() < passing.buffers.first_bytes {
                Ok(ReceivedHead::Incomplete)
            } else {
                Err(invalid(exchange, "upstream sent too big header"))
            };
        };
        let asked = exchange.upstream.output().strip_prefix(GET);
        let asked = asked.unwrap_or_default().trim_ascii_end();
        let line = input.get(..feed).unwrap_or_default();
        let head_only = exchange.method() == Method::Head;
        head.clear();
        progress.head_bytes = feed + 1;
        match self.judge(exchange, asked, line)? {
            Found::Nothing => head.status = 404,
            Found::Value { length, gzip } => {
                head.status = 200;
                let text = length.to_string();
                head.fields.add(b"Content-Length", text.as_bytes());
                if gzip {
                    head.fields.add(b"Content-Encoding", b"gzip");
                }
                if !head_only {
                    progress.delivery.end = BodyEnd::Length(length);
                }
            }
        }
        input.skip(feed + 1);
        Ok(ReceivedHead::Whole)
    }

    fn answers_for(&self, status: u16) -> bool {
        status != 404
    }

    fn is_typed_by_path(&self) -> bool {
        true
    }
}

/// What a server has under a key.
enum Found {
    Nothing,
    Value { length: u64, gzip: bool },
}

impl MemcachedOrigin {
    /// What the line says, in nginx's words where it says nothing.
    fn judge(&self, exchange: &Exchange, asked: &[u8], line: &[u8]) -> Result<Found, Stop> {
        let shown = Quoted(line.trim_ascii_end());
        let for_key = |what: &str| {
            let key = Quoted(asked);
            let reason =
                format!("memcached sent invalid {what} in response \"{shown}\" for key \"{key}\"");
            Err(invalid(exchange, &reason))
        };
        match Line::parse(line) {
            Line::NotFound => {
                let key = Quoted(asked);
                exchange.log(
                    Level::Info,
                    format_args!("key: \"{key}\" was not found by memcached"),
                );
                Ok(Found::Nothing)
            }
            Line::Other => {
                let reason = format!("memcached sent invalid response: \"{shown}\"");
                Err(invalid(exchange, &reason))
            }
            Line::Value { key, .. } if key != asked => for_key("key"),
            Line::Value { flags, length, .. } => {
                let flags = decimal(flags).and_then(|flags| u32::try_from(flags).ok());
                let Some(flags) = flags else {
                    return for_key("flags");
                };
                let length = decimal(length).filter(|length| *length <= VALUE_BYTES_MAX);
                let Some(length) = length else {
                    return for_key("length");
                };
                let gzip = flags & self.gzip_flag != 0;
                Ok(Found::Value { length, gzip })
            }
        }
    }
}

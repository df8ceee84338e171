//! The uwsgi protocol as the engine needs it: requests of parameters in one packet, answers of CGI.
//!
//! The protocol is that of <https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html>: lengths
//! have two bytes, the lower one first.

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::StatusLine;

use crate::pass::cgi::CgiOrigin;
use crate::pass::origin::{BodyFormat, Question, Unwritable};
use crate::pass::params::{ParamWriter, Params};
use crate::pass::target::{PassUrl, UrlError};

/// What log lines show before an address.
const SCHEME: &str = "uwsgi://";

/// The same of servers that are spoken to by TLS.
const SECURE_SCHEME: &str = "suwsgi://";

/// What a location's directives say of requests of uwsgi.
pub(super) struct UwsgiOrigin {
    pub(super) params: Params,
    /// `uwsgi_modifier1` and `uwsgi_modifier2`.
    pub(super) modifiers: [u8; 2],
    /// `uwsgi_string`.
    pub(super) string: Vec<u8>,
}

/// Reads an address, with or without a protocol.
///
/// # Errors
/// See [`UrlError`].
pub(super) fn parse_url(text: &str) -> Result<PassUrl, UrlError> {
    let without = |scheme: &str| {
        let (head, rest) = text.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    if let Some(rest) = without(SECURE_SCHEME) {
        return PassUrl::parse_secure_address(SECURE_SCHEME, rest);
    }
    PassUrl::parse_address(SCHEME, without(SCHEME).unwrap_or(text))
}

impl CgiOrigin for UwsgiOrigin {
    const STATUS_LINE: StatusLine = StatusLine::Optional;
    /// An application reads as much as `CONTENT_LENGTH` says.
    const TAKES_UNKNOWN_LENGTH: bool = false;
    const BODY_FORMAT: BodyFormat = BodyFormat::Plain;

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        parse_url(text)
    }

    fn write_params(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let start = out.len();
        let [modifier1, modifier2] = self.modifiers;
        out.extend_from_slice(&[modifier1, 0, 0, modifier2]);
        let content = out.len();
        let mut pairs = ParamPairs::default();
        self.params.write(exchange, question, &mut pairs, out);
        out.extend_from_slice(&self.string);
        let length = out.len() - content;
        match u16::try_from(length) {
            Ok(length) if !pairs.too_long => {
                out[start + 1..start + 3].copy_from_slice(&length.to_le_bytes());
                Ok(())
            }
            _ => {
                exchange.log(
                    Level::Alert,
                    format_args!("uwsgi request is too big: {length}"),
                );
                Err(Unwritable)
            }
        }
    }
}

/// Names and values, each behind its length.
#[derive(Default)]
pub(super) struct ParamPairs {
    /// One of them is too long for that. It is appended all the same, so that the request is seen
    /// to be too big.
    pub(super) too_long: bool,
}

impl ParamPairs {
    fn length(&mut self, bytes: usize) -> [u8; 2] {
        let length = u16::try_from(bytes);
        self.too_long |= length.is_err();
        length.unwrap_or(u16::MAX).to_le_bytes()
    }
}

impl ParamWriter for ParamPairs {
    fn begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.length(name.len()));
        out.extend_from_slice(name);
        out.extend_from_slice(&[0; 2]);
    }

    fn end(&mut self, _: &[u8], _: usize, value: usize, out: &mut Vec<u8>) {
        let length = self.length(out.len() - value);
        out[value - 2..value].copy_from_slice(&length);
    }
}

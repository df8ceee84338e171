//! The uwsgi protocol as the engine needs it: requests of parameters in one packet, answers of CGI.
//!
//! The protocol is that of <https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html>: lengths
//! have two bytes, the lower one first.

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::StatusLine;

use crate::pass::cgi::CgiOrigin;
use crate::pass::origin::{BodyFormat, Question, Unwritable};
use crate::pass::params::Params;
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
        let mut too_long = false;
        self.params.each(exchange, question, |name, value| {
            too_long |= !write_param(name, value, out);
        });
        out.extend_from_slice(&self.string);
        let length = out.len() - content;
        match u16::try_from(length) {
            Ok(length) if !too_long => {
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

/// Appends a name and a value, each behind its length. `false`: one of them is too long for that;
/// it is appended all the same, so that the request is seen to be too big.
pub(super) fn write_param(name: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
    let mut fits = true;
    for text in [name, value] {
        let length = u16::try_from(text.len());
        fits &= length.is_ok();
        out.extend_from_slice(&length.unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(text);
    }
    fits
}

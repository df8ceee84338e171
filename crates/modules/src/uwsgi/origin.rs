//! The uwsgi protocol as the engine needs it: requests of parameters in one packet, answers of CGI.
//!
//! The protocol is that of <https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html>: lengths
//! have two bytes, the lower one first.

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::h1::StatusLine;
use turnpike_wire::message::Head;

use crate::pass::head::{Progress, ReceivedHead, read_cgi_head};
use crate::pass::origin::{BodyFormat, BodyFraming, Origin, Path, Question, Unwritable};
use crate::pass::params::{self, Params};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;
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

impl Origin for UwsgiOrigin {
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        parse_url(text)
    }

    /// An application is given parameters, not a target.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    fn write_key(&self, exchange: &Exchange, _: &Path<'_>, out: &mut Vec<u8>) {
        params::write_key(exchange, out);
    }

    /// An application reads as much as `CONTENT_LENGTH` says.
    fn takes_unknown_length(&self) -> bool {
        false
    }

    fn write_head(
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

    fn body_format(&self, _: BodyFraming) -> BodyFormat {
        BodyFormat::Plain
    }

    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Vec<u8>,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        let line = StatusLine::Optional;
        read_cgi_head(exchange, passing, line, input, head, progress)
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

//! SCGI as the engine needs it: requests of parameters in a netstring, answers of CGI.
//!
//! The protocol is that of <https://python.ca/scgi/protocol.txt>: `CONTENT_LENGTH` comes first, and
//! names and values end with zero bytes.

use turnpike_http::Quoted;
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
pub(super) const SCHEME: &str = "scgi://";

/// The parameter that says how long the body is.
const CONTENT_LENGTH: &[u8] = b"CONTENT_LENGTH";

/// What a location's directives say of requests of SCGI.
pub(super) struct ScgiOrigin {
    pub(super) params: Params,
}

impl Origin for ScgiOrigin {
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    /// An application is given parameters, not a target.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    fn write_key(&self, exchange: &Exchange, _: &Path<'_>, out: &mut Vec<u8>) {
        params::write_key(exchange, out);
    }

    /// The length is the first thing that is said.
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
        let length = match question.framing {
            BodyFraming::Length(length) => length,
            BodyFraming::None | BodyFraming::Unknown => 0,
        };
        write_param(CONTENT_LENGTH, length.to_string().as_bytes(), out);
        let mut refused = Vec::new();
        self.params.each(exchange, question, |name, value| {
            if name.contains(&0) || value.contains(&0) {
                refused.push(name.to_vec());
            } else if name != CONTENT_LENGTH {
                write_param(name, value, out);
            }
        });
        for name in refused {
            exchange.log(
                Level::Error,
                format_args!("scgi param \"{}\" holds a zero byte", Quoted(&name)),
            );
        }
        let length = out.len() - start;
        out.splice(start..start, format!("{length}:").into_bytes());
        out.push(b',');
        Ok(())
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

/// Appends a name and a value, each with its zero byte.
pub(super) fn write_param(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for text in [name, value] {
        out.extend_from_slice(text);
        out.push(0);
    }
}

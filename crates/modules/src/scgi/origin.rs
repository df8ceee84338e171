//! SCGI as the engine needs it: requests of parameters in a netstring, answers of CGI.
//!
//! The protocol is that of <https://python.ca/scgi/protocol.txt>: `CONTENT_LENGTH` comes first, and
//! names and values end with zero bytes.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::StatusLine;

use crate::pass::cgi::CgiOrigin;
use crate::pass::origin::{BodyFormat, BodyFraming, Question, Unwritable};
use crate::pass::params::{ParamWriter, Params};
use crate::pass::target::{PassUrl, UrlError};

/// What log lines show before an address.
pub(super) const SCHEME: &str = "scgi://";

/// The parameter that says how long the body is.
const CONTENT_LENGTH: &[u8] = b"CONTENT_LENGTH";

/// What a location's directives say of requests of SCGI.
pub(super) struct ScgiOrigin {
    pub(super) params: Params,
}

impl CgiOrigin for ScgiOrigin {
    const STATUS_LINE: StatusLine = StatusLine::Optional;
    /// The length is the first thing that is said.
    const TAKES_UNKNOWN_LENGTH: bool = false;
    const BODY_FORMAT: BodyFormat = BodyFormat::Plain;

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    fn write_params(
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
        write_text(CONTENT_LENGTH, out);
        write_text(length.to_string().as_bytes(), out);
        let mut texts = ParamTexts::default();
        self.params.write(exchange, question, &mut texts, out);
        for name in texts.refused {
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
}

/// Appends a name or a value with its zero byte.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Names and values, each with its zero byte. The length of the body is written before them.
#[derive(Default)]
pub(super) struct ParamTexts {
    /// The names of those that hold a zero byte themselves, and are left out.
    pub(super) refused: Vec<Vec<u8>>,
}

impl ParamWriter for ParamTexts {
    fn begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        write_text(name, out);
    }

    fn end(&mut self, name: &[u8], start: usize, value: usize, out: &mut Vec<u8>) {
        if name.contains(&0) || out[value..].contains(&0) {
            self.refused.push(name.to_vec());
            out.truncate(start);
        } else if name == CONTENT_LENGTH {
            out.truncate(start);
        } else {
            out.push(0);
        }
    }
}

//! What protocols of applications have in common: requests are parameters, and answers are those of
//! CGI (RFC 3875).

use turnpike_http::exchange::Exchange;
use turnpike_http::received::Received;
use turnpike_http::rooms::Rooms;
use turnpike_wire::message::{Head, StatusLine};

use super::head::{Progress, ReceivedHead, read_cgi_head};
use super::origin::{BodyFormat, BodyFraming, Origin, Path, Question, RecordLayer, Unwritable};
use super::params;
use super::server::Stop;
use super::settings::Passing;
use super::target::{PassUrl, UrlError};

/// The protocol of an application server.
pub(crate) trait CgiOrigin: Send + Sync {
    /// Whether a status line may stand before the answer's head.
    const STATUS_LINE: StatusLine;
    /// Whether a body may be sent whose length is not known when the head is written.
    const TAKES_UNKNOWN_LENGTH: bool;
    /// How bodies of requests are written.
    const BODY_FORMAT: BodyFormat;

    /// Reads an address that is made of variables.
    ///
    /// # Errors
    /// See [`UrlError`].
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError>;

    /// Appends the request's parameters.
    ///
    /// # Errors
    /// [`Unwritable`] where the protocol has no place for such a request; the log says why.
    fn write_params(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable>;

    /// What takes off the records around an answer; `None`: an answer has none.
    /// `rooms` may keep one of an earlier request.
    fn record_layer(&self, _rooms: &mut Rooms) -> Option<Box<dyn RecordLayer>> {
        None
    }
}

impl<O: CgiOrigin> Origin for O {
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        CgiOrigin::parse_url(self, text)
    }

    /// An application is given parameters, not a target.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    fn write_key(&self, exchange: &Exchange, _: &Path<'_>, out: &mut Vec<u8>) {
        params::write_key(exchange, out);
    }

    fn takes_unknown_length(&self) -> bool {
        Self::TAKES_UNKNOWN_LENGTH
    }

    fn write_head(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        self.write_params(exchange, question, out)
    }

    fn body_format(&self, _: BodyFraming) -> BodyFormat {
        Self::BODY_FORMAT
    }

    fn record_layer(&self, rooms: &mut Rooms) -> Option<Box<dyn RecordLayer>> {
        CgiOrigin::record_layer(self, rooms)
    }

    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Received,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        read_cgi_head(exchange, passing, Self::STATUS_LINE, input, head, progress)
    }
}

//! A tunnel as the engine needs it: nothing is asked of the server, and whatever it sends is for
//! the client.

use turnpike_http::exchange::Exchange;
use turnpike_http::received::Received;
use turnpike_wire::message::{Head, Method};

use crate::pass::Failure;
use crate::pass::head::{Progress, ReceivedHead};
use crate::pass::origin::{BodyFormat, BodyFraming, Carries, Origin, Path, Question, Unwritable};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;
use crate::pass::target::{PassUrl, UrlError};

/// Log lines show no scheme before the address of a tunnel.
pub(super) const SCHEME: &str = "";

/// The other end of a tunnel.
pub(super) struct TunnelOrigin;

impl Origin for TunnelOrigin {
    /// Only `CONNECT` asks for a tunnel.
    fn refused(&self, exchange: &mut Exchange) -> Option<u16> {
        if exchange.method() == Method::Connect {
            return None;
        }
        exchange.response.fields_mut().set(b"Allow", b"CONNECT");
        Some(405)
    }

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    /// A server is asked for nothing.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    fn takes_unknown_length(&self) -> bool {
        false
    }

    /// No request is written: see [`Carries::Tunnel`].
    fn write_head(
        &self,
        _: &mut Exchange,
        _: &Question<'_>,
        _: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        Err(Unwritable)
    }

    fn body_format(&self, _: BodyFraming) -> BodyFormat {
        BodyFormat::Plain
    }

    fn carries(&self) -> Carries {
        Carries::Tunnel
    }

    /// No head is read: see [`Carries::Tunnel`].
    fn read_head(
        &self,
        _: &Exchange,
        _: &Passing,
        _: &mut Received,
        _: &mut Head,
        _: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        Err(Stop::Failed(Failure::InvalidHeader))
    }
}

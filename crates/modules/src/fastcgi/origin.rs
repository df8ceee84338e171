//! FastCGI as the engine needs it: requests of parameters, answers of CGI.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_wire::fastcgi;
use turnpike_wire::h1::StatusLine;
use turnpike_wire::message::Head;

use super::records::Records;
use crate::pass::head::{Progress, ReceivedHead, read_cgi_head};
use crate::pass::origin::{
    BodyFormat, BodyFraming, Origin, Path, Question, RecordLayer, Unwritable,
};
use crate::pass::params::{self, Params};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;
use crate::pass::target::{PassUrl, UrlError};

/// What log lines show before an address.
pub(super) const SCHEME: &str = "fastcgi://";

/// What a location's directives say of requests and responses of FastCGI.
pub(super) struct FastCgiOrigin {
    pub(super) params: Params,
    /// `fastcgi_keep_conn`.
    pub(super) keeps_connection: bool,
    /// `fastcgi_catch_stderr`.
    pub(super) caught: Arc<[Vec<u8>]>,
}

impl Origin for FastCgiOrigin {
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    /// An application is given parameters, not a target.
    fn write_target(&self, _: &Exchange, _: &Path<'_>, _: &mut Vec<u8>) {}

    fn write_key(&self, exchange: &Exchange, _: &Path<'_>, out: &mut Vec<u8>) {
        params::write_key(exchange, out);
    }

    fn takes_unknown_length(&self) -> bool {
        true
    }

    fn write_head(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        fastcgi::write_begin(self.keeps_connection, out);
        let start = fastcgi::begin_params(out);
        self.params.each(exchange, question, |name, value| {
            fastcgi::write_param(name, value, out);
        });
        fastcgi::end_params(start, out);
        Ok(())
    }

    fn body_format(&self, _: BodyFraming) -> BodyFormat {
        BodyFormat::FastCgi
    }

    fn record_layer(&self) -> Option<Box<dyn RecordLayer>> {
        let caught = Arc::clone(&self.caught);
        Some(Box::new(Records::new(caught, self.keeps_connection)))
    }

    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Vec<u8>,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop> {
        read_cgi_head(exchange, passing, StatusLine::Absent, input, head, progress)
    }
}

//! FastCGI as the engine needs it: requests of parameters, answers of CGI.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::rooms::Rooms;
use turnpike_wire::fastcgi;
use turnpike_wire::message::StatusLine;

use super::records::Records;
use crate::pass::cgi::CgiOrigin;
use crate::pass::origin::{BodyFormat, Question, RecordLayer, Unwritable};
use crate::pass::params::{ParamWriter, Params};
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

impl CgiOrigin for FastCgiOrigin {
    const STATUS_LINE: StatusLine = StatusLine::Absent;
    const TAKES_UNKNOWN_LENGTH: bool = true;
    const BODY_FORMAT: BodyFormat = BodyFormat::FastCgi;

    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError> {
        PassUrl::parse_address(SCHEME, text)
    }

    fn write_params(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        fastcgi::write_begin(self.keeps_connection, out);
        let start = fastcgi::begin_params(out);
        self.params.write(exchange, question, &mut ParamPairs, out);
        fastcgi::end_params(start, out);
        Ok(())
    }

    fn record_layer(&self, rooms: &mut Rooms) -> Option<Box<dyn RecordLayer>> {
        let mut records: Box<Records> = rooms.take_spare();
        *records = Records::new(Arc::clone(&self.caught), self.keeps_connection);
        Some(records)
    }
}

/// Names and values, with their lengths before both.
struct ParamPairs;

impl ParamWriter for ParamPairs {
    fn begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        fastcgi::begin_param(name, out);
    }

    fn end(&mut self, name: &[u8], _: usize, value: usize, out: &mut Vec<u8>) {
        fastcgi::end_param(name, value, out);
    }
}

//! What this family does with a request.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_wire::message::Method;

use crate::file_response::{answer, refuse};
use crate::files::{self, Files};

/// Answers with the file that the path stands for.
pub(super) struct StaticFile {
    pub(super) files: Files,
}

impl Handler for StaticFile {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let method = exchange.method();
        if !matches!(method, Method::Get | Method::Head | Method::Post) {
            return Verdict::Status(exchange.method_refused());
        }
        if exchange.walk.path().last() == Some(&b'/') {
            return Verdict::Declined;
        }
        files::with_file_path(exchange, |exchange, path| {
            match self.files.open(exchange, path) {
                Ok(file) => answer(exchange, &self.files, path, file),
                Err(error) => refuse(exchange, path, error),
            }
        })
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

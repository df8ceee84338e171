//! What this family does with a request.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_wire::message::Method;

use crate::common::file_response::{answer, refuse};
use crate::common::files::{self, Files};
use crate::common::published_copies::{Copies, Original};

/// Answers with the file that the path stands for.
pub(super) struct StaticFile {
    pub(super) files: Files,
    /// Where copies of answers are kept.
    pub(super) copies: Option<Arc<Copies>>,
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
        let withdrawals = self.copies.as_ref().map(|copies| copies.withdrawals());
        files::with_file_path(exchange, |exchange, path| {
            match self.files.open(exchange, path) {
                Ok(file) => {
                    if let Some(withdrawals) = withdrawals {
                        Original::note_file(&mut exchange.rooms, withdrawals, path);
                    }
                    answer(exchange, &self.files, path, file)
                }
                Err(error) => refuse(exchange, path, error),
            }
        })
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

//! `OPTIONS` requests that the server itself answers (RFC 9110 section 9.3.7).

use turnpike_wire::message::TargetForm;

use crate::engine::Outcome;
use crate::exchange::Exchange;

/// Methods that every server block has something to say to.
const SERVER_METHODS: &[u8] = b"GET, HEAD, OPTIONS";

impl Exchange {
    /// Whether the request is `OPTIONS *`, and no rewrite has made it another: it is for the server
    /// as a whole, so that no location is asked.
    pub(crate) fn asks_whole_server(&self) -> bool {
        self.request().head().form == TargetForm::Asterisk && self.walk.path() == b"*"
    }

    /// The answer to `OPTIONS *`.
    pub(crate) fn whole_server_options(&mut self) -> Option<Outcome> {
        self.answer_options();
        self.response.fields_mut().set(b"Allow", SERVER_METHODS);
        self.respond()
    }

    /// Makes the answer to an `OPTIONS` request that ends here: it has no content.
    pub fn answer_options(&mut self) {
        self.response.set_status(200);
        self.response.set_content_length(Some(0));
    }
}

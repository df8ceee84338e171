//! What an exchange knows of the servers that were asked on its behalf: for variables, for the log,
//! and for those who make the answer of it.
//!
//! The module talks to nobody. Buffers are kept from request to request.

use std::sync::Arc;

use turnpike_wire::message::{Fields, Head, Method};

use crate::received::Received;

/// The servers asked, and what the last of them said.
#[derive(Clone, Default)]
pub struct Upstream {
    tries: Vec<Try>,
    target: Vec<u8>,
    host: Vec<u8>,
    port: Vec<u8>,
    output: Vec<u8>,
    input: Received,
    head: Head,
    trailers: Fields,
    /// See [`Upstream::answered_from`].
    stored: Option<Arc<Head>>,
}

/// One server that was asked.
#[derive(Clone, Debug, Default)]
pub struct Try {
    /// The address, as `$upstream_addr` has it.
    pub address: Arc<str>,
    /// What it answered, or what its failure counts as; 0 while neither is known.
    pub status: u16,
    /// When it was asked, in the lane's monotonic milliseconds.
    pub started_ms: u64,
    /// How long the request waited before until a server had room, in milliseconds.
    pub queue_ms: Option<u64>,
    /// Until it was connected, in milliseconds.
    pub connect_ms: Option<u64>,
    /// Until its head was received, in milliseconds.
    pub header_ms: Option<u64>,
    /// Until its answer was received, in milliseconds.
    pub response_ms: Option<u64>,
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
    /// Bytes of the body received, as it came.
    pub response_bytes: u64,
    /// The method that it was asked with.
    pub method: Method,
    /// Whether the request said that its connection is closed after it.
    pub said_close: bool,
    /// Whether an internal redirect lies between it and the one before.
    pub after_redirect: bool,
}

impl Upstream {
    /// Makes ready for the next request; the room is kept.
    pub fn clear(&mut self) {
        if self.is_untouched() {
            return;
        }
        self.tries.clear();
        self.target.clear();
        self.host.clear();
        self.port.clear();
        self.clear_answer();
        self.output.clear();
        self.stored = None;
    }

    /// Forgets what the last server said, before another is asked.
    pub fn clear_answer(&mut self) {
        self.input.clear();
        self.head.clear();
        self.trailers.clear();
    }

    /// Every server that was asked, in order.
    pub fn tries(&self) -> &[Try] {
        &self.tries
    }

    /// What is asked, as the log names it: scheme, address and target. Empty while nobody is.
    pub fn target(&self) -> &[u8] {
        &self.target
    }

    /// What is asked, to be changed.
    pub fn target_mut(&mut self) -> &mut Vec<u8> {
        &mut self.target
    }

    /// The host that the configuration names (`$proxy_host`); empty while nobody is asked.
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The port (`$proxy_port`).
    pub fn port(&self) -> &[u8] {
        &self.port
    }

    /// The host and port that the configuration names.
    pub fn set_host(&mut self, host: &[u8], port: &[u8]) {
        self.host.clear();
        self.host.extend_from_slice(host);
        self.port.clear();
        self.port.extend_from_slice(port);
    }

    /// The request on its way.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The request on its way, to be written.
    pub fn output_mut(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// What was received and belongs to no head yet: the beginning of one, or what came behind it.
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// What was received, to be read into or taken.
    pub fn input_mut(&mut self) -> &mut Received {
        &mut self.input
    }

    /// The head of the last server's answer; without status while there is none.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The head, to be read into or taken.
    pub fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// Fields behind a chunked body.
    pub fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// Keeps the fields that stood behind a chunked body.
    pub fn set_trailers(&mut self, trailers: Fields) {
        self.trailers = trailers;
    }

    /// The answer is given without a server being asked: this is its head as it is stored. `None`:
    /// it is not.
    pub fn answered_from(&mut self, stored: Option<Arc<Head>>) {
        self.stored = stored;
    }

    /// Begins a try.
    pub fn begin_try(&mut self, address: Arc<str>, now_ms: u64, after_redirect: bool) {
        self.tries.push(Try {
            address,
            started_ms: now_ms,
            after_redirect,
            ..Try::default()
        });
    }

    /// The try under way, or the last one.
    pub fn last_try(&mut self) -> Option<&mut Try> {
        self.tries.last_mut()
    }

    /// The value of the first field of that name in the last answer.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.head.value(name)
    }

    /// The head of the answer that was given: a stored one, or that of the last server asked.
    pub fn answer(&self) -> &Head {
        self.stored.as_deref().unwrap_or(&self.head)
    }

    /// Whether the answer, from a server or from a cache, must not be sent in another coding: it
    /// says `no-transform` (RFC 9111 section 5.2.2.6).
    pub fn forbids_transforming(&self) -> bool {
        const NAME: &[u8] = b"Cache-Control";
        let says_so = |value: &[u8]| {
            let mut directives = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
        };
        self.answer().values(NAME).any(says_so)
    }

    /// Buffers that may have grown with a response.
    pub(crate) fn buffers(&mut self) -> [&mut Vec<u8>; 3] {
        [
            self.input.whole(),
            &mut self.output,
            self.head.fields.buffer(),
        ]
    }

    fn is_untouched(&self) -> bool {
        self.tries.is_empty()
            && self.target.is_empty()
            && self.host.is_empty()
            && self.stored.is_none()
    }
}

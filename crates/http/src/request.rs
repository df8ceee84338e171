//! A request as it was read, which its subrequests share. Nobody changes it afterwards.
//!
//! What a redirect or a subrequest asks for in its place is the walk's ([`crate::engine::Walk`]):
//! path, query and method. So are the fields that the configuration changes
//! ([`crate::exchange::Exchange::change_fields`]).

use std::cell::Cell;

use turnpike_wire::host;
use turnpike_wire::message::RequestHead;

/// A request, whatever protocol it came by. It has no copies: one that is shared cannot be changed.
#[derive(Default)]
pub struct Request {
    head: RequestHead,
    host: Vec<u8>,
    id: Cell<Option<u128>>,
}

impl Request {
    /// The head as the client wrote it. Method, body and fields that are in force may be others:
    /// [`Exchange::method`](crate::exchange::Exchange::method),
    /// [`Exchange::body_length`](crate::exchange::Exchange::body_length) and
    /// [`Exchange::fields`](crate::exchange::Exchange::fields).
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// The validated, lower-case host; empty when there is none.
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The random number of the request (`$request_id`), which `random` makes when it is first
    /// asked for.
    pub(crate) fn id(&self, random: impl FnOnce() -> u128) -> u128 {
        let id = self.id.get().unwrap_or_else(random);
        self.id.set(Some(id));
        id
    }

    /// The head, for the protocol that reads it.
    pub(crate) fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.head
    }

    /// The buffer of the head, for a caller that limits its size.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.head.fields.buffer()
    }

    /// Takes the host from the head.
    pub(crate) fn read_host(&mut self) {
        self.host.clear();
        if let Some(written) = self.head.host() {
            host::lower_case(written, &mut self.host);
        }
    }

    /// Makes ready for the next request; the room is kept.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.host.clear();
        self.id.set(None);
    }
}

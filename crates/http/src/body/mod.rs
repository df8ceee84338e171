//! The request's body: what came with the head, what was read, what is still to come.

pub(crate) mod buffers;
mod reading;

use std::cell::Cell;
use std::rc::Rc;

use turnpike_plan::temporary::TemporaryFile;
use turnpike_wire::message::Fields;

use crate::arrived::Arrived;
use crate::scratch::Scratches;
use buffers::BodyBuffers;

/// A request's body.
#[derive(Default)]
pub struct RequestBody {
    /// What has come and nobody has asked for yet.
    arrived: Arrived,
    /// Whether it was asked for.
    touched: bool,
    finished: bool,
    /// The body's bytes, when a handler asked for them and they are not in the file.
    bytes: Vec<u8>,
    /// What belongs behind these bytes and is too much for memory: on its way into the file.
    overflow: Vec<u8>,
    /// The file that the bytes were moved to, being too many.
    file: Option<Rc<TemporaryFile>>,
    /// Bytes that were kept, in memory or in the file.
    length: u64,
    /// See [`RequestBody::is_left_out`].
    left_out: bool,
    /// Whether `Expect: 100-continue` was answered, or need not be.
    expect_answered: bool,
    /// See [`RequestBody::uses`].
    uses: Cell<u32>,
    /// See [`RequestBody::unsettled_uses`].
    unsettled_uses: Cell<u32>,
}

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it was taken.
    Complete,
    /// More has to be read from the connection.
    Incomplete,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The chunked coding is broken: 400.
    Malformed,
    /// The body is larger than `client_max_body_size` allows: 413.
    TooLarge,
}

impl RequestBody {
    /// A body that has been read, for a subrequest: the file is the same.
    pub(crate) fn of_subrequest(body: &RequestBody) -> Self {
        Self {
            finished: true,
            bytes: body.bytes.clone(),
            file: body.file.clone(),
            length: body.length,
            left_out: body.left_out,
            ..Self::default()
        }
    }

    /// Makes ready for the next request; the room is kept.
    pub fn clear(&mut self) {
        self.arrived.clear();
        self.touched = false;
        self.finished = false;
        self.bytes.clear();
        self.overflow = Vec::new();
        self.file = None;
        self.length = 0;
        self.left_out = false;
        self.expect_answered = false;
        self.uses.set(0);
        self.unsettled_uses.set(0);
    }

    /// Whether the request has no body, whatever its head says: it is a subrequest's.
    pub(crate) fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// There is no body, whatever the head says.
    pub(crate) fn leave_out(&mut self) {
        self.left_out = true;
    }

    /// The body's bytes, when a handler asked for them and they are not in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The body's bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The number of times that a variable was made from the bytes of the content, or would have
    /// been if they were there.
    pub fn uses(&self) -> u32 {
        self.uses.get()
    }

    /// The number of times that a variable was made from what the content will be once it was read:
    /// its bytes, or the name of its file.
    pub(crate) fn unsettled_uses(&self) -> u32 {
        self.unsettled_uses.get()
    }

    /// Counts a use of the bytes.
    pub(crate) fn bytes_used(&self) {
        self.uses.set(self.uses.get().wrapping_add(1));
        self.place_used();
    }

    /// Counts a use of where the content is.
    pub(crate) fn place_used(&self) {
        self.unsettled_uses
            .set(self.unsettled_uses.get().wrapping_add(1));
    }

    /// The file that the bytes were moved to, being too many.
    pub fn file(&self) -> Option<&TemporaryFile> {
        self.file.as_deref()
    }

    /// Takes the file out, to be kept under a name.
    pub fn take_file(&mut self) -> Option<Rc<TemporaryFile>> {
        self.file.take()
    }

    /// Whether nothing of it was taken yet.
    pub fn is_untouched(&self) -> bool {
        !self.touched
    }

    /// Bytes of the body that were kept so far; once it is finished, all of them.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The trailer fields behind a body that is whole. They are not among the request's fields
    /// (RFC 9110 section 6.5).
    pub fn trailers(&self) -> &Fields {
        self.arrived.trailers()
    }

    /// Whether all of it was taken.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// No `100 Continue` is sent any more.
    pub fn expect_answered(&mut self) {
        self.expect_answered = true;
    }

    /// What has come of it, for the connection that reads it.
    pub(crate) fn arrived(&mut self) -> &mut Arrived {
        &mut self.arrived
    }

    /// Where more of it is read to: into memory, which may have `buffer_bytes` of it; with
    /// `scratches`, on to a file.
    pub(crate) fn reading_buffers<'a>(
        &'a mut self,
        buffer_bytes: usize,
        scratches: Option<&'a Scratches>,
    ) -> BodyBuffers<'a> {
        let places = [&mut self.bytes, &mut self.overflow];
        BodyBuffers::new(&mut self.arrived, places, buffer_bytes, scratches)
    }

    /// The buffers, for whoever limits what is kept of them.
    pub(crate) fn buffers(&mut self) -> [&mut Vec<u8>; 2] {
        [&mut self.bytes, self.arrived.buffer()]
    }
}

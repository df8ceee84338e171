//! What a client has sent and nobody has taken yet: heads and bodies of requests are read of it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use turnpike_lane::transport::Transport;
use turnpike_wire::h1::{self, BodyDecoder, BodyState, HeadStep};
use turnpike_wire::message::{BodyLength, Fields, HeadRules, RequestHead, Strictness};

use super::peer::end_of_input;
use crate::arrived::Arrived;

/// Buffers that a lane keeps for use again: one serves the fast path, and as many more are in use
/// as connections have a part of a request to be taken.
const KEPT_BUFFERS_MAX: usize = 256;

/// Bytes that a kept buffer may have; a larger one is given back to the allocator.
const KEPT_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// What one connection has sent. It holds a buffer only while there is something in it.
pub(crate) struct Input {
    received: Option<Box<Buffer>>,
    pool: Rc<InputPool>,
}

/// A buffer, and how far it is taken.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where in the bytes those begin that are not taken yet.
    start: usize,
    /// The body that is being read.
    body: Option<BodyDecoder>,
    is_pipelined: bool,
    /// Whether a head was refused that stands among the bytes that were taken.
    is_refused: bool,
}

/// The buffers of a lane that no connection uses.
#[derive(Default)]
pub(crate) struct InputPool {
    // Boxed as they are used: an idle connection is to be small, and a busy one allocates nothing.
    #[expect(clippy::vec_box)]
    idle: RefCell<Vec<Box<Buffer>>>,
}

/// A head that cannot be taken: what is said of it in the log, and the status that answers it.
pub(crate) struct Refused {
    pub(crate) message: Vec<u8>,
    pub(crate) status: u16,
    /// Whether the target was read, so that the request may name its server.
    pub(crate) has_target: bool,
    /// Whether the whole head was read, and names no host.
    pub(crate) is_for_missing_host: bool,
    /// Bytes of the head; 0 where it was refused before its end.
    head_len: usize,
    /// Bytes that it was refused for.
    pub(crate) bytes: usize,
}

impl Input {
    /// An input of which nothing has come.
    pub(crate) fn new(pool: &Rc<InputPool>) -> Self {
        Self {
            received: None,
            pool: Rc::clone(pool),
        }
    }

    /// The input, in whose place an empty one stays.
    pub(crate) fn take(&mut self) -> Input {
        Input {
            received: self.received.take(),
            pool: Rc::clone(&self.pool),
        }
    }

    /// The bytes that are not taken yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.received {
            Some(received) => received.bytes.get(received.start..).unwrap_or_default(),
            None => &[],
        }
    }

    /// Whether the client has sent more than was taken as requests.
    pub(crate) fn has_unread(&self) -> bool {
        let received = self.received.as_ref();
        !self.is_empty() || received.is_some_and(|received| received.is_refused)
    }

    /// Whether every byte is taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Whether the request that is read next came behind another one.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.received
            .as_ref()
            .is_some_and(|received| received.is_pipelined)
    }

    /// Reads what the transport has, at most about `bytes_max`, behind what is there. 0 is the end.
    ///
    /// # Errors
    /// What the transport says.
    pub(crate) fn receive(&mut self, transport: &Transport, bytes_max: usize) -> io::Result<usize> {
        let received = self.received();
        if received.start == received.bytes.len() {
            received.bytes.clear();
            received.start = 0;
        }
        end_of_input(transport.try_read(&mut received.bytes, bytes_max))
    }

    /// Puts what was received before behind what is there.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.received().bytes.extend_from_slice(bytes);
    }

    /// Takes so many bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        if let Some(received) = &mut self.received {
            received.start = (received.start + count).min(received.bytes.len());
        }
    }

    /// Takes all that is there out, to be kept elsewhere.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        let Some(received) = &mut self.received else {
            return Vec::new();
        };
        let start = std::mem::take(&mut received.start);
        match start {
            0 => std::mem::take(&mut received.bytes),
            _ => received.bytes.split_off(start),
        }
    }

    /// Reads the head that is next, and moves it into `head` when it is whole.
    pub(crate) fn read_head(
        &mut self,
        rules: &HeadRules,
        head: &mut RequestHead,
    ) -> Result<HeadStep, Refused> {
        let received = self.received();
        let mut parsed = h1::RequestHead::default();
        parsed.borrow_room(head);
        let text = received.bytes.get(received.start..).unwrap_or_default();
        match h1::parse_request(text, 0, rules, &mut parsed) {
            Ok(HeadStep::Complete) => {
                received.start = parsed.move_to(head, &mut received.bytes, received.start);
                Ok(HeadStep::Complete)
            }
            Ok(incomplete) => {
                parsed.copy_to(head, &[]);
                head.clear();
                Ok(incomplete)
            }
            Err(error) => {
                let refused = Refused::new(error, &parsed, text);
                parsed.copy_to(head, text);
                self.consume(refused.head_len);
                Err(refused)
            }
        }
    }

    /// Reads a head, which was taken, once more by other rules.
    ///
    /// # Errors
    /// Why it is refused by these.
    pub(crate) fn read_again(
        &mut self,
        rules: &HeadRules,
        head: &mut RequestHead,
    ) -> Result<(), Refused> {
        let mut parsed = h1::RequestHead::default();
        let text = head.fields.bytes();
        let read = h1::parse_request(text, 0, rules, &mut parsed);
        let read = read.map_err(|error| Refused::new(error, &parsed, text));
        parsed.replace(head);
        let refused = read.as_ref().err();
        self.received().is_refused = refused.is_some_and(|refused| refused.head_len == 0);
        read.map(|_| ())
    }

    /// Notes what was understood of a head whose rest will not come.
    pub(crate) fn give_up_head(&mut self, rules: &HeadRules, head: &mut RequestHead) {
        let mut parsed = h1::RequestHead::default();
        // Why it would be refused is not asked any more.
        let _ = h1::parse_request(self.bytes(), 0, rules, &mut parsed);
        parsed.copy_to(head, self.bytes());
    }

    /// Reads what has come of the body, which is of that length.
    pub(crate) fn read_body(
        &mut self,
        length: BodyLength,
        strictness: Strictness,
        body: &mut Arrived,
    ) {
        if length == BodyLength::None || body.is_whole() {
            return;
        }
        let received = self.received();
        let decoder = decoder(&mut received.body, length, strictness);
        loop {
            let input = received.bytes.get(received.start..).unwrap_or_default();
            let Ok(event) = decoder.feed(input) else {
                body.set_malformed();
                return;
            };
            body.add(event.data.of(input), event.consumed as u64);
            received.start += event.consumed;
            if event.state == BodyState::Finished {
                body.set_trailers(trailers(decoder));
                received.body = None;
                body.set_whole();
                return;
            }
            if event.consumed == 0 {
                return;
            }
        }
    }

    /// The bytes of a body that are to come and can be read past the input: its length is known,
    /// and all that has come is taken. `None`: it has to be read through the input.
    pub(crate) fn left_past(&mut self, length: BodyLength, strictness: Strictness) -> Option<u64> {
        let is_known = matches!(length, BodyLength::Bytes(_));
        if !is_known || !self.is_empty() {
            return None;
        }
        let body = &mut self.received().body;
        let left = decoder(body, length, strictness).left_bytes();
        left.filter(|left| *left > 0)
    }

    /// So many bytes of that body were read past the input, and perhaps one `behind` it. Returns
    /// whether the body is whole.
    pub(crate) fn passed(&mut self, bytes: usize, behind: Option<u8>) -> bool {
        let received = self.received();
        if let Some(byte) = behind {
            received.bytes.clear();
            received.start = 0;
            received.bytes.push(byte);
        }
        let decoder = received.body.as_mut();
        let is_whole = decoder.is_some_and(|decoder| decoder.skip(bytes as u64));
        if is_whole {
            received.body = None;
        }
        is_whole
    }

    /// Goes on to the next request. `false`: nothing of it is there yet.
    pub(crate) fn next_request(&mut self) -> bool {
        let is_there = !self.is_empty();
        if let Some(received) = &mut self.received {
            received.body = None;
            received.is_pipelined = is_there;
        }
        is_there
    }

    /// Gives the buffer back where nothing is in it, nor expected.
    pub(crate) fn rest(&mut self) {
        let body = self.received.as_ref().map(|received| &received.body);
        if let Some(None) = body
            && self.is_empty()
        {
            self.release();
        }
    }

    /// Gives the buffer back, with all that is in it.
    pub(crate) fn release(&mut self) {
        if let Some(received) = self.received.take() {
            self.pool.put(received);
        }
    }

    fn received(&mut self) -> &mut Buffer {
        self.received.get_or_insert_with(|| self.pool.take())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.release();
    }
}

/// The decoder of the body that is read.
fn decoder(
    body: &mut Option<BodyDecoder>,
    length: BodyLength,
    strictness: Strictness,
) -> &mut BodyDecoder {
    body.get_or_insert_with(|| BodyDecoder::of_request(length.into()).under(strictness))
}

/// The fields behind a body that is whole.
fn trailers(decoder: &BodyDecoder) -> Fields {
    let mut fields = Fields::default();
    h1::trailer_fields(decoder.trailers(), |name, value| fields.add(name, value));
    fields
}

impl Refused {
    #[cold]
    fn new(error: h1::HeadError, head: &h1::RequestHead, text: &[u8]) -> Self {
        let mut message = Vec::new();
        error.write_log(text, head, &mut message);
        Self {
            message,
            status: error.status(),
            has_target: !head.target.is_empty(),
            is_for_missing_host: error == h1::HeadError::MissingHost,
            head_len: head.head_len,
            bytes: text.len(),
        }
    }
}

impl InputPool {
    fn take(&self) -> Box<Buffer> {
        self.idle.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps a buffer, unless there are enough.
    fn put(&self, mut received: Box<Buffer>) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= KEPT_BUFFERS_MAX {
            return;
        }
        let mut bytes = std::mem::take(&mut received.bytes);
        bytes.clear();
        if bytes.capacity() > KEPT_BUFFER_BYTES_MAX {
            bytes = Vec::new();
        }
        *received = Buffer {
            bytes,
            ..Buffer::default()
        };
        idle.push(received);
    }

    /// Lets go of all buffers.
    pub(crate) fn clear(&self) {
        self.idle.borrow_mut().clear();
    }
}

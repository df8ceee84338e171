//! The requests under way on a connection that carries many at once, whatever its protocol.

use crate::http1::Answer;

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) target: u32,
    /// Bytes of the request's body that are sent.
    pub(crate) sent_bytes: usize,
    pub(crate) intended_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) status: u16,
    /// Bytes of the response's body that have come.
    body_bytes: u64,
    body_differs: bool,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered(Answer),
    /// The server has reset the stream, or its answer breaks the rules.
    Reset,
    /// The server has not looked at it, and takes no more on this connection.
    Unprocessed,
}

/// The streams of a connection, and those that have ended since they were last asked for.
#[derive(Default)]
pub(crate) struct Streams {
    /// In the order in which they were sent.
    pub(crate) open: Vec<Stream>,
    ended: Vec<(Stream, Outcome)>,
}

impl Stream {
    /// A request that is sent now, and was meant to start at `intended_ns`.
    pub(crate) fn new(id: u64, target: u32, intended_ns: u64, now_ns: u64) -> Stream {
        Stream {
            id,
            target,
            sent_bytes: 0,
            intended_ns,
            sent_ns: now_ns,
            status: 0,
            body_bytes: 0,
            body_differs: false,
        }
    }

    /// Takes a part of the response's body, and compares it with what is expected.
    pub(crate) fn body(&mut self, data: &[u8], expected: Option<&[u8]>) {
        if let Some(expected) = expected {
            let start = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
            let same = expected
                .get(start..)
                .and_then(|rest| rest.get(..data.len()));
            self.body_differs |= same != Some(data);
        }
        self.body_bytes += data.len() as u64;
    }
}

impl Streams {
    /// The stream with that number, while it is open.
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Stream> {
        self.open.iter_mut().find(|stream| stream.id == id)
    }

    /// When the oldest request under way was sent.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.open.first().map(|stream| stream.sent_ns)
    }

    /// A response is whole.
    pub(crate) fn answered(&mut self, id: u64, expected: Option<&[u8]>) {
        self.ends(id, |stream| {
            let whole = expected.is_none_or(|body| body.len() as u64 == stream.body_bytes);
            Outcome::Answered(Answer {
                status: stream.status,
                close: false,
                body_matches: whole && !stream.body_differs,
            })
        });
    }

    /// A stream ends in another way.
    pub(crate) fn ends(&mut self, id: u64, outcome: impl FnOnce(&Stream) -> Outcome) {
        if let Some(at) = self.open.iter().position(|stream| stream.id == id) {
            let stream = self.open.remove(at);
            self.ended.push((stream, outcome(&stream)));
        }
    }

    /// The server does not look at streams from this number on.
    pub(crate) fn unprocessed_from(&mut self, id: u64) {
        let ended = self.open.iter().filter(|stream| stream.id >= id);
        self.ended
            .extend(ended.map(|stream| (*stream, Outcome::Unprocessed)));
        self.open.retain(|stream| stream.id < id);
    }

    /// The server has not looked at a request for which there is no stream.
    pub(crate) fn give_back(&mut self, stream: Stream) {
        self.ended.push((stream, Outcome::Unprocessed));
    }

    /// The requests that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<(Stream, Outcome)> {
        std::mem::take(&mut self.ended)
    }

    /// Gives the room of a list back that [`Streams::take_ended`] returned.
    pub(crate) fn reuse(&mut self, mut list: Vec<(Stream, Outcome)>) {
        list.clear();
        self.ended = list;
    }
}

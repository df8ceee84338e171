//! The frames around an answer: what a server sends on the stream of a request, and on its
//! connection.

use std::collections::VecDeque;

use turnpike_http::exchange::Exchange;
use turnpike_wire::h2::{ErrorCode, ResponseReader, ServerEvent, StreamId};
use turnpike_wire::message::{Fields, Head};

use crate::pass::http2_connection::Shared;
use crate::pass::origin::RecordLayer;

/// Heads that wait to be looked at: interim ones and the final one. Nobody sends more at once.
const HEADS_MAX: usize = 16;

/// Takes off the frames of one answer.
pub(crate) struct StreamRecords {
    http2: Shared,
    stream: StreamId,
    reader: ResponseReader,
    /// What has come of a frame that is not whole.
    partial: Vec<u8>,
    /// Heads, and whether nothing follows them.
    heads: VecDeque<(Head, bool)>,
    trailers: Option<Fields>,
    has_ended: bool,
    /// Whether the server has said that it has not processed the request.
    is_unprocessed: bool,
}

impl StreamRecords {
    pub(crate) fn new(http2: Shared, stream: StreamId) -> Self {
        Self {
            http2,
            stream,
            reader: ResponseReader::default(),
            partial: Vec::new(),
            heads: VecDeque::new(),
            trailers: None,
            has_ended: false,
            is_unprocessed: false,
        }
    }

    fn event(&mut self, event: &ServerEvent<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        match event {
            ServerEvent::Head { stream, ends } if *stream == self.stream => {
                if self.heads.len() == HEADS_MAX {
                    return Err("upstream sent too many interim responses".to_owned());
                }
                self.has_ended = *ends;
                let head = std::mem::take(&mut self.reader.head);
                self.heads.push_back((head, *ends));
            }
            ServerEvent::Data { stream, data, ends } if *stream == self.stream => {
                out.extend_from_slice(data);
                self.has_ended = *ends;
            }
            ServerEvent::Trailers { stream } if *stream == self.stream => {
                self.trailers = Some(std::mem::take(&mut self.reader.head.fields));
                self.has_ended = true;
            }
            ServerEvent::Malformed { stream, fault } if *stream == self.stream => {
                return Err(fault.reason().to_owned());
            }
            ServerEvent::Reset { stream, code } if *stream == self.stream => {
                self.is_unprocessed = *code == ErrorCode::RefusedStream;
                return Err(of_code("upstream rejected request with error", *code));
            }
            ServerEvent::GoingAway { last_stream, code } if *last_stream < self.stream => {
                self.is_unprocessed = true;
                return Err(of_code("upstream sent goaway with error", *code));
            }
            _ => {}
        }
        Ok(())
    }
}

fn of_code(what: &str, code: ErrorCode) -> String {
    format!("{what} {}", code.number())
}

impl RecordLayer for StreamRecords {
    fn take_off(
        &mut self,
        exchange: &Exchange,
        bytes: &mut Vec<u8>,
        from: usize,
    ) -> Result<(), String> {
        let mut input = std::mem::take(&mut self.partial);
        input.extend(bytes.drain(from..));
        let now_ms = exchange.lane.clock.now_ms();
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let received = self
                .http2
                .borrow_mut()
                .receive(rest, &mut self.reader, now_ms);
            let step = match received {
                Ok(step) => step,
                Err(error) => {
                    self.http2.borrow_mut().fail(error);
                    return Err(error.upstream_reason());
                }
            };
            at += step.consumed;
            if step.event == ServerEvent::More {
                break;
            }
            self.event(&step.event, bytes)?;
        }
        input.drain(..at);
        self.partial = input;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn is_complete(&self) -> bool {
        self.has_ended
    }

    fn early_end(&self) -> &'static str {
        "upstream prematurely closed stream"
    }

    fn is_reusable(&self) -> bool {
        self.has_ended && self.partial.is_empty() && self.http2.borrow().is_idle()
    }

    fn is_unprocessed(&self) -> bool {
        self.is_unprocessed
    }

    fn next_head(&mut self) -> Option<(Head, bool)> {
        self.heads.pop_front()
    }

    fn take_trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}

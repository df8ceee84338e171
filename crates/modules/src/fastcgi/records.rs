//! The records around an application's answer, and what they say besides: its error stream goes to
//! the error log.

use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::Level;
use turnpike_wire::fastcgi::{Part, RecordReader};

use crate::pass::origin::RecordLayer;

/// Bytes of one message that the log shows; about as much as nginx's longest line has.
const LOGGED_BYTES_MAX: usize = 2048;

/// Takes off the records of one answer.
#[derive(Default)]
pub(super) struct Records {
    reader: RecordReader,
    /// Texts on the error stream that make the answer invalid (`fastcgi_catch_stderr`).
    caught: Arc<[Vec<u8>]>,
    keeps_connection: bool,
    /// What has come of a message: at most the content of one record.
    message: Vec<u8>,
    stdout_ended: bool,
    refused_at: Option<usize>,
    surplus: bool,
}

impl Records {
    pub(super) fn new(caught: Arc<[Vec<u8>]>, keeps_connection: bool) -> Self {
        Self {
            reader: RecordReader::new(),
            caught,
            keeps_connection,
            message: Vec::new(),
            stdout_ended: false,
            refused_at: None,
            surplus: false,
        }
    }

    /// Writes what the application says to the error log. `at` is how much of its answer has come.
    fn log(&mut self, exchange: &Exchange, at: usize) {
        let message = std::mem::take(&mut self.message);
        let is_in = |text: &Vec<u8>| memchr::memmem::find(&message, text).is_some();
        if self.refused_at.is_none() && self.caught.iter().any(is_in) {
            self.refused_at = Some(at);
        }
        let text = message.trim_ascii_end();
        if text.is_empty() {
            return;
        }
        let (text, dots) = match text.get(..LOGGED_BYTES_MAX) {
            Some(head) => (head, "..."),
            None => (text, ""),
        };
        exchange.log(
            Level::Error,
            format_args!("FastCGI sent in stderr: \"{}{dots}\"", Quoted(text)),
        );
    }
}

impl RecordLayer for Records {
    fn take_off(
        &mut self,
        exchange: &Exchange,
        bytes: &mut Vec<u8>,
        from: usize,
    ) -> Result<(), String> {
        let (mut at, mut kept) = (from, from);
        while let Some(input) = bytes.get(at..).filter(|input| !input.is_empty()) {
            if self.reader.has_ended() {
                self.surplus = true;
                break;
            }
            let (part, taken) = self.reader.step(input).map_err(|error| error.to_string())?;
            match part {
                Part::None | Part::End => {}
                Part::Stdout(text) => {
                    bytes.copy_within(at + text.start()..at + text.end(), kept);
                    kept += text.len();
                }
                Part::StdoutEnd => self.stdout_ended = true,
                Part::Stderr { text, last } => {
                    self.message.extend_from_slice(text.of(input));
                    if last {
                        self.log(exchange, kept);
                    }
                }
            }
            at += taken;
        }
        bytes.truncate(kept);
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.reader.has_ended()
    }

    fn is_complete(&self) -> bool {
        self.stdout_ended || self.reader.has_ended()
    }

    fn early_end(&self) -> &'static str {
        if self.stdout_ended {
            "upstream prematurely closed FastCGI stdout"
        } else {
            "upstream prematurely closed FastCGI request"
        }
    }

    fn is_reusable(&self) -> bool {
        self.keeps_connection && self.reader.has_ended() && !self.surplus
    }

    fn left_bytes(&self) -> usize {
        self.reader.left_bytes()
    }

    fn recycle(mut self: Box<Self>, rooms: &mut Rooms) {
        self.caught = Arc::default();
        let held_bytes = self.message.capacity();
        rooms.keep_spare(self, held_bytes);
    }

    fn refused_at(&self) -> Option<usize> {
        self.refused_at
    }
}

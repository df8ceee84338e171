//! How an exchange takes its request's body, in memory or in a file.

use std::rc::Rc;

use turnpike_lane::log::{Errno, Level};
use turnpike_plan::Quoted;
use turnpike_plan::temporary::{Removal, TemporaryFile};
use turnpike_wire::message::{BodyLength, Version};

use super::{BodyError, Progress, RequestBody};
use crate::exchange::Exchange;
use crate::phase::Verdict;

/// What is done with what has come of a body.
#[derive(Clone, Copy)]
enum Use {
    Keep,
    Drop,
}

impl Exchange {
    /// Whether the client waits for `100 Continue` before it sends the body. Asked once.
    pub fn take_expect(&mut self) -> bool {
        let waits = self.expects_continue();
        self.body.expect_answered = true;
        waits
    }

    /// Whether the client sends its body only when it is asked for it, and was not asked yet.
    pub fn expects_continue(&self) -> bool {
        let head = self.request().head();
        head.expects_continue && head.version >= Version::Http11 && !self.body.expect_answered
    }

    /// The content in memory, for the value of a variable. Of a request with content, the use is
    /// counted in [`RequestBody::uses`].
    pub fn used_content(&self) -> &[u8] {
        if self.may_have_content() {
            self.body.bytes_used();
        }
        self.body.bytes()
    }

    /// The file with the content, for the value of a variable.
    pub(crate) fn used_content_file(&self) -> Option<&TemporaryFile> {
        if self.may_have_content() {
            self.body.place_used();
        }
        self.body.file()
    }

    /// Whether a body that is here stays in memory, by the settings for it.
    pub fn keeps_body_in_memory(&self) -> bool {
        let settings = &self.location().settings;
        let in_file = settings.client_body_in_file.is_some() || self.body.file.is_some();
        !in_file && self.body.bytes.len() <= settings.client_body_buffer_bytes
    }

    /// Whether the request has content, or may turn out to have some: an empty chunked body is
    /// none.
    pub fn may_have_content(&self) -> bool {
        let is_announced = !matches!(self.body_length(), BodyLength::None | BodyLength::Bytes(0));
        is_announced && !(self.body.finished && self.body.length == 0)
    }

    /// Keeps what has come of the body in [`RequestBody::bytes`].
    ///
    /// # Errors
    /// When the coding is broken, or the body too large.
    pub fn keep_buffered_body(&mut self) -> Result<Progress, BodyError> {
        self.take_buffered_body(Use::Keep)
    }

    /// Keeps what has come of the body. A whole one that belongs into a file by the settings is not
    /// complete with that: [`Client::read_body`](crate::client::Client::read_body) puts it there.
    ///
    /// # Errors
    /// As for [`Exchange::keep_buffered_body`].
    pub fn keep_whole_body(&mut self) -> Result<Progress, BodyError> {
        let progress = self.keep_buffered_body()?;
        let is_settled = self.body_length() == BodyLength::None || self.keeps_body_in_memory();
        Ok(if is_settled {
            progress
        } else {
            Progress::Incomplete
        })
    }

    /// Throws away what has come of the body.
    ///
    /// # Errors
    /// When the coding is broken.
    pub(crate) fn drop_buffered_body(&mut self) -> Result<Progress, BodyError> {
        self.take_buffered_body(Use::Drop)
    }

    fn take_buffered_body(&mut self, what_for: Use) -> Result<Progress, BodyError> {
        if self.body.finished {
            return Ok(Progress::Complete);
        }
        self.body.touched = true;
        if self.body_length() == BodyLength::None {
            self.body.finished = true;
            return Ok(Progress::Complete);
        }
        let body_bytes_max = self.location().settings.client_max_body_bytes;
        let RequestBody {
            arrived,
            bytes,
            length,
            finished,
            ..
        } = &mut self.body;
        self.account.received(arrived.take_received_bytes());
        match what_for {
            Use::Drop => arrived.drop_bytes(),
            Use::Keep => {
                *length += arrived.move_to(bytes);
                if body_bytes_max > 0 && *length > body_bytes_max {
                    return Err(BodyError::TooLarge);
                }
            }
        }
        if arrived.is_malformed() {
            return Err(BodyError::Malformed);
        }
        *finished = arrived.is_whole();
        if *finished {
            Ok(Progress::Complete)
        } else {
            Ok(Progress::Incomplete)
        }
    }

    /// Moves the kept part of the body to a file where it is too much for memory.
    ///
    /// # Errors
    /// The verdict that answers a body which cannot be kept: 500.
    pub(crate) fn spill_body(&mut self) -> Result<(), Verdict> {
        let plan = self.plan.clone();
        let settings = &plan.location(self.walk.location()).settings;
        let fits = self.body.bytes.len() <= settings.client_body_buffer_bytes;
        if fits && self.body.overflow.is_empty() {
            return Ok(());
        }
        self.move_body_to_file()
    }

    /// The body is whole: what belongs into a file is there.
    ///
    /// # Errors
    /// As [`Exchange::spill_body`].
    pub(crate) fn settle_body(&mut self) -> Result<(), Verdict> {
        let in_file = self.location().settings.client_body_in_file.is_some();
        let is_there = self.request().head().body != BodyLength::None;
        if self.body.file.is_some() || (in_file && is_there) {
            return self.move_body_to_file();
        }
        self.spill_body()
    }

    fn move_body_to_file(&mut self) -> Result<(), Verdict> {
        if self.body.file.is_none() {
            let file = self.new_body_file()?;
            let path = Quoted(file.path_bytes());
            self.log(
                Level::Warn,
                format_args!("a client request body is buffered to a temporary file {path}"),
            );
            self.body.file = Some(Rc::new(file));
        }
        // A subrequest has the file too only once the body is whole, and nothing is left for it.
        let Some(file) = self.body.file.as_mut().and_then(Rc::get_mut) else {
            return Ok(());
        };
        let overflow = std::mem::take(&mut self.body.overflow);
        let written = file.append(&self.body.bytes);
        let written = written.and_then(|()| file.append(&overflow));
        self.body.bytes.clear();
        self.lane.keep_scratch(overflow);
        let Err(error) = written else { return Ok(()) };
        if let Some(file) = self.body.file.take() {
            let path = Quoted(file.path_bytes());
            self.log(
                Level::Crit,
                format_args!("pwrite() \"{path}\" failed {}", Errno(&error)),
            );
        }
        Err(Verdict::Status(500))
    }

    fn new_body_file(&self) -> Result<TemporaryFile, Verdict> {
        let settings = &self.location().settings;
        let removal = settings.client_body_in_file.unwrap_or(Removal::AtOnce);
        settings
            .client_body_folder
            .create(removal)
            .map_err(|(path, error)| {
                let path = path.display();
                self.log(
                    Level::Crit,
                    format_args!("open() \"{path}\" failed {}", Errno(&error)),
                );
                Verdict::Status(500)
            })
    }

    /// Says in the log why a body cannot be read, and gives the verdict that answers it.
    pub fn body_refused(&self, error: BodyError) -> Verdict {
        match error {
            BodyError::Malformed => {
                self.log(
                    Level::Error,
                    format_args!("client sent invalid chunked body"),
                );
                Verdict::Status(400)
            }
            BodyError::TooLarge => {
                let length = self.body.length();
                self.log(
                    Level::Error,
                    format_args!("client intended to send too large chunked body: {length} bytes"),
                );
                Verdict::Status(413)
            }
        }
    }
}

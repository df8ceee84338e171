//! Sizes of the buffers between a server that is asked and the client, which must fit one another:
//! the same rules for every module that passes requests on.

use turnpike_conf::ConfError;

use crate::pass::view::PassView;

/// nginx's numbers: a page, and eight of them.
const PAGE_BYTES: u64 = 4096;
const BUFFERS: (u64, u64) = (8, PAGE_BYTES);
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// What the directives in force say, in bytes.
pub(crate) struct BufferSizes {
    /// For the first part of a response.
    pub(crate) first: u64,
    /// All others together.
    pub(crate) all: u64,
    /// What may be on its way to the client.
    pub(crate) busy: u64,
    /// What is written to a temporary file at one time.
    pub(crate) file_write: u64,
    /// What a temporary file may hold.
    pub(crate) file_max: u64,
}

impl BufferSizes {
    /// Reads the directives of a module.
    ///
    /// # Errors
    /// Sizes that do not fit one another, in nginx's words.
    pub(crate) fn read(pass: PassView<'_>) -> Result<Self, ConfError> {
        let (view, module) = (pass.view, pass.prefix);
        let size_of = |end: &str| pass.look_up(end, |view, name| view.try_size(name));
        let refused = |end: &str, words: &str| {
            let words = words.replace('@', module);
            let message = format!("\"{module}_{end}\" must be {words}");
            Err(view.error(view.end(), message))
        };
        let first = size_of("buffer_size").unwrap_or(PAGE_BYTES);
        let buffers = pass.look_up("buffers", |view, name| view.try_buffers(name));
        let (count, size) = buffers.unwrap_or(BUFFERS);
        if count < 2 {
            let message = format!("there must be at least 2 \"{module}_buffers\"");
            return Err(view.error(view.end(), message));
        }
        let largest = first.max(size);
        let twice = largest.saturating_mul(2);
        let busy = size_of("busy_buffers_size").unwrap_or(twice);
        if busy < largest {
            return refused("busy_buffers_size", AT_LEAST);
        }
        if busy > (count - 1).saturating_mul(size) {
            let words = "less than the size of all \"@_buffers\" minus one buffer";
            return refused("busy_buffers_size", words);
        }
        let file_write = size_of("temp_file_write_size").unwrap_or(twice);
        if file_write < largest {
            return refused("temp_file_write_size", AT_LEAST);
        }
        let file_max = size_of("max_temp_file_size").unwrap_or(FILE_BYTES_MAX);
        if file_max != 0 && file_max < largest {
            let words =
                format!("equal to zero to disable temporary files usage or must be {AT_LEAST}");
            return refused("max_temp_file_size", &words);
        }
        Ok(Self {
            first,
            all: count.saturating_mul(size),
            busy,
            file_write,
            file_max,
        })
    }

    /// Reads them where one of them is written, whether or not anything is passed on there.
    ///
    /// # Errors
    /// As [`BufferSizes::read`].
    pub(crate) fn check(pass: PassView<'_>) -> Result<(), ConfError> {
        let written = [
            "buffer_size",
            "buffers",
            "busy_buffers_size",
            "temp_file_write_size",
            "max_temp_file_size",
        ];
        // Each location asks, and most configurations have none of them.
        let is_written = |end: &&str| pass.is_written(end) && pass.own(end).is_some();
        if written.iter().any(is_written) {
            Self::read(pass).map(|_| ())
        } else {
            Ok(())
        }
    }
}

const AT_LEAST: &str = "equal to or greater than the maximum of the value of \"@_buffer_size\" \
                        and one of the \"@_buffers\"";

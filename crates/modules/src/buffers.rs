//! Sizes of the buffers between a server that is asked and the client, which must fit one another:
//! the same rules for every module that passes requests on.

use turnpike_conf::{ConfError, View};

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
    /// Reads the directives whose names begin with `module`.
    ///
    /// # Errors
    /// Sizes that do not fit one another, in nginx's words.
    pub(crate) fn read(view: View<'_>, module: &str) -> Result<Self, ConfError> {
        let name = |end: &str| format!("{module}_{end}");
        let size_of = |end: &str| view.try_size(&name(end));
        let refused = |end: &str, words: &str| {
            let words = words.replace('@', module);
            let message = format!("\"{module}_{end}\" must be {words}");
            Err(view.error(view.end(), message))
        };
        let first = size_of("buffer_size").unwrap_or(PAGE_BYTES);
        let (count, size) = view.try_buffers(&name("buffers")).unwrap_or(BUFFERS);
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
    pub(crate) fn check(view: View<'_>, module: &str) -> Result<(), ConfError> {
        let written = [
            "buffer_size",
            "buffers",
            "busy_buffers_size",
            "temp_file_write_size",
            "max_temp_file_size",
        ];
        let is_written = |end: &&str| view.own(&format!("{module}_{end}")).is_some();
        if written.iter().any(is_written) {
            Self::read(view, module).map(|_| ())
        } else {
            Ok(())
        }
    }
}

const AT_LEAST: &str = "equal to or greater than the maximum of the value of \"@_buffer_size\" \
                        and one of the \"@_buffers\"";

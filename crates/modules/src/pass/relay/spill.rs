//! What of a body does not fit in memory: it waits for the client in a temporary file.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::{Errno, Level};
use turnpike_plan::temporary::{Removal, TemporaryFile};

use super::Relay;

/// What did not fit in memory.
pub(super) struct Spill {
    pub(super) file: TemporaryFile,
    pub(super) read_bytes: u64,
}

impl Relay {
    /// Moves what was decoded to the file. A file that takes no more is no failure: the server
    /// waits then.
    pub(super) fn spill(&mut self, exchange: &Exchange) {
        let buffers = &self.passing.buffers;
        if self.spill_failed || buffers.file_bytes_max == 0 {
            return;
        }
        if self.spill.is_none() {
            match buffers.folder.create(Removal::AtOnce) {
                Ok(file) => {
                    let path = Quoted(file.path_bytes()).to_string();
                    exchange.log(
                        Level::Warn,
                        format_args!("an upstream response is buffered to a temporary file {path}"),
                    );
                    self.spill = Some(Spill {
                        file,
                        read_bytes: 0,
                    });
                }
                Err((path, error)) => {
                    self.spill_failed = true;
                    let (path, errno) = (path.display(), Errno(&error));
                    exchange.log(
                        Level::Crit,
                        format_args!("open() \"{path}\" failed {errno}"),
                    );
                    return;
                }
            }
        }
        let Some(spill) = &mut self.spill else { return };
        if spill.file.size_bytes() + self.late.len() as u64 > buffers.file_bytes_max {
            return;
        }
        match spill.file.append(&self.late) {
            Ok(()) => self.late.clear(),
            Err(error) => {
                self.spill_failed = true;
                let path = Quoted(spill.file.path_bytes()).to_string();
                let errno = Errno(&error);
                exchange.log(
                    Level::Crit,
                    format_args!("pwrite() \"{path}\" failed {errno}"),
                );
            }
        }
    }
}

//! The link between two masters: a word a line.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Bytes of lines that are taken at most: words and an error message.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// One end.
#[derive(Debug)]
pub(super) struct Link {
    /// The number in the master's event queue.
    pub(super) token: u64,
    stream: UnixStream,
    input: Vec<u8>,
}

impl Link {
    /// Over a non-blocking stream.
    pub(super) fn new(stream: UnixStream, token: u64) -> Link {
        Link {
            token,
            stream,
            input: Vec::new(),
        }
    }

    /// Says a line. Who is gone is noticed by reading; who does not read misses its time.
    pub(super) fn say(&mut self, line: &str) {
        let line = line.replace('\n', "; ");
        let _ = self.stream.write_all(format!("{line}\n").as_bytes());
    }

    /// The lines that have come, and whether nothing more will.
    pub(super) fn read(&mut self) -> (Vec<String>, bool) {
        let mut ended = false;
        let mut buffer = [0; 4096];
        while self.input.len() < INPUT_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => ended = true,
                Ok(count) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => ended = error.kind() != io::ErrorKind::WouldBlock,
            }
            break;
        }
        ended |= self.input.len() >= INPUT_BYTES_MAX;
        let whole = self.input.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.input.drain(..whole.map_or(0, |end| end + 1)).collect();
        let text = String::from_utf8_lossy(&whole);
        (text.lines().map(str::to_owned).collect(), ended)
    }

    /// For the event queue.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

//! HTTP/2 on a connection. Its header tables, windows and streams are kept with the connection,
//! because they have the same lifetime.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use turnpike_wire::h2::ClientConnection;

use super::Connection;

impl Connection {
    /// The client's side of HTTP/2, if the connection was opened for it.
    pub fn http2(&self) -> Option<&Rc<RefCell<ClientConnection>>> {
        self.http2.as_ref()
    }

    /// Sends as much of HTTP/2's output as the socket takes, without waiting. Returns the number of
    /// bytes.
    ///
    /// # Errors
    /// As [`Connection::try_write`]; `WouldBlock` only if there is output.
    pub fn try_write_http2(&self) -> io::Result<usize> {
        let Some(http2) = &self.http2 else {
            return Ok(0);
        };
        let mut http2 = http2.borrow_mut();
        let output = http2.output();
        if output.is_empty() {
            return Ok(0);
        }
        let sent = self.try_write(&[IoSlice::new(output)])?;
        output.drain(..sent);
        Ok(sent)
    }

    /// As [`Connection::try_write_http2`], but waits while the socket takes nothing.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn write_http2(&self, timeout_ms: u64) -> io::Result<usize> {
        self.waited
            .when_writable(timeout_ms, || self.try_write_http2())
            .await
    }
}

//! HTTP/2 on a connection. Its header tables, windows and streams live as long as the connection
//! does, so they are kept with it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use turnpike_wire::h2::ClientConnection;

use super::Connection;

impl Connection {
    /// The client's side of HTTP/2, where the connection was opened for that.
    pub fn http2(&self) -> Option<&Rc<RefCell<ClientConnection>>> {
        self.http2.as_ref()
    }

    /// Sends what the socket takes of HTTP/2's output, without waiting. Returns how many bytes that
    /// was.
    ///
    /// # Errors
    /// As [`Connection::try_write`]; `WouldBlock` only where there is something to send.
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
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn write_http2(&self, timeout_ms: u64) -> io::Result<usize> {
        self.waited
            .when_writable(timeout_ms, || self.try_write_http2())
            .await
    }
}

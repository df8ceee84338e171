//! HTTP/2 on a connection to a server. Its header tables, windows and streams are kept with the
//! connection, because they have the same lifetime.

use std::any::Any;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use turnpike_upstream::Connection;
use turnpike_wire::h2::ClientConnection;
use turnpike_wire::message::HeadRules;

/// The client's side of HTTP/2 on a connection, which whoever sends and whoever reads share.
pub(crate) type Shared = Rc<RefCell<ClientConnection>>;

/// HTTP/2 for a new connection.
pub(crate) fn begin() -> Rc<dyn Any> {
    Rc::new(RefCell::new(ClientConnection::new(HeadRules::default())))
}

/// HTTP/2 of a connection, if it was opened for that.
pub(crate) fn of(connection: &Connection) -> Option<Shared> {
    connection.protocol_state()
}

/// Sends as much of the output as the socket takes, without waiting. Returns the number of bytes.
///
/// # Errors
/// As [`Connection::try_write`]; `WouldBlock` only if there is output.
pub(crate) fn try_write(http2: &Shared, connection: &Connection) -> io::Result<usize> {
    let mut http2 = http2.borrow_mut();
    let output = http2.output();
    if output.is_empty() {
        return Ok(0);
    }
    let sent = connection.try_write(&[IoSlice::new(output)])?;
    output.drain(..sent);
    Ok(sent)
}

/// As [`try_write`], but waits while the socket takes nothing.
///
/// # Errors
/// The socket's error; `TimedOut` after `timeout_ms` (0 waits without limit).
pub(crate) async fn write(
    http2: &Shared,
    connection: &Connection,
    timeout_ms: u64,
) -> io::Result<usize> {
    let try_write = || try_write(http2, connection);
    connection.when_writable(timeout_ms, try_write).await
}

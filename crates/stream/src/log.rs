//! Lines of the error log that belong to a session, in nginx's order and words.

use std::fmt;

use turnpike_lane::log::{Level, Member, Subject};
use turnpike_lane::sys::socket::PeerAddress;

use crate::session::Session;

/// Writes a line to the error log of the session's server.
pub(crate) fn write(session: &Session, level: Level, message: fmt::Arguments<'_>) {
    let log = &session.server().error_log;
    if log.enabled(level) {
        let context = Context(session);
        log.write_about(level, Some(session.serial), message, Some(&context));
    }
}

/// What stands after the message.
struct Context<'a>(&'a Session);

impl fmt::Display for Context<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.0;
        let action = session.action.get();
        if !action.is_empty() {
            write!(out, " while {action}")?;
        }
        match session.peer {
            PeerAddress::Inet(address) => write!(out, ", client: {}", address.ip())?,
            PeerAddress::Unix => out.write_str(", client: unix:")?,
        }
        write!(out, ", server: {}", session.listen().address)?;
        let Some(last) = session.tries.last() else {
            return Ok(());
        };
        write!(
            out,
            ", upstream: \"{}\", bytes from/to client:{}/{}, bytes from/to upstream:{}/{}",
            last.address,
            session.bytes_received.get(),
            session.bytes_sent.get(),
            last.bytes_received.get(),
            last.bytes_sent.get()
        )
    }
}

impl Subject for Context<'_> {
    fn members(&self, add: &mut dyn FnMut(Member, fmt::Arguments<'_>)) {
        let session = self.0;
        let action = session.action.get();
        if !action.is_empty() {
            add(Member::Action, format_args!("{action}"));
        }
        match session.peer {
            PeerAddress::Inet(address) => add(Member::Client, format_args!("{}", address.ip())),
            PeerAddress::Unix => add(Member::Client, format_args!("unix:")),
        }
        add(Member::Server, format_args!("{}", session.listen().address));
        if let Some(last) = session.tries.last() {
            add(Member::Upstream, format_args!("{}", last.address));
        }
    }
}

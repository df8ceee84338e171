//! One check of one peer, on an idle connection or a new one.

use std::pin::Pin;
use std::sync::Arc;

use turnpike_lane::sys::process::monotonic_ns;

use super::Check;
use crate::address::Address;
use crate::connection::{ConnectOptions, Connection, DatagramConnection, Tls};
use crate::tls::TlsConnector;

/// TLS for a check.
#[derive(Clone, Debug)]
pub struct CheckTls {
    /// The connector of the session.
    pub connector: Arc<TlsConnector>,
    /// The name that the peer's certificate must have.
    pub name: String,
}

/// A check by a connection or by datagrams.
#[derive(Clone)]
pub enum Asks {
    /// A question on a connection.
    Connection(Arc<dyn Question>),
    /// A question by datagrams.
    Datagrams(Arc<dyn DatagramQuestion>),
}

/// A check by datagrams.
pub trait DatagramQuestion: Send + Sync {
    /// Sends a datagram through `socket`, and checks what comes back. Every wait has a time-out.
    /// The error is as in [`CheckOutcome::found`].
    fn ask<'a>(
        &'a self,
        socket: &'a DatagramConnection,
    ) -> Pin<Box<dyn Future<Output = Result<(), &'static str>> + 'a>>;
}

/// A check request in the peer's protocol.
pub trait Question: Send + Sync {
    /// Sends the request on `connection`, and checks the response. Every wait has a time-out.
    fn ask<'a>(
        &'a self,
        connection: &'a Connection,
    ) -> Pin<Box<dyn Future<Output = CheckOutcome> + 'a>>;
}

/// The end of a check.
pub struct CheckOutcome {
    /// The error is the failed action, or the fault of the response, as the log shows it after
    /// `while`.
    pub found: Result<(), &'static str>,
    /// Whether another check can use the same connection.
    pub is_reusable: bool,
}

/// Runs a check on the idle connection or a new one. The error is the action that failed. A
/// reusable connection is left in `idle`.
pub(super) async fn ask(
    check: &Check,
    address: &Address,
    idle: &mut Option<Connection>,
) -> Result<(), &'static str> {
    let question = match &check.question {
        Asks::Connection(question) => question,
        Asks::Datagrams(question) => {
            let socket = DatagramConnection::open_to(address, &ConnectOptions::default());
            let socket = socket.map_err(|error| error.action())?;
            return question.ask(&socket).await;
        }
    };
    let now_ms = monotonic_ns() / 1_000_000;
    let young = |one: &Connection| {
        now_ms.saturating_sub(one.opened_ms()) < check.rules.keepalive_time_ms
            && one.looks_idle(true)
    };
    if let Some(connection) = idle.take().filter(young) {
        connection.used_again();
        let asked = question.ask(&connection).await;
        // A kept connection that is closed before a response shows nothing about the peer.
        if asked.found.is_ok() || connection.bytes_received() > 0 {
            return keep(check, connection, asked, idle);
        }
    }
    let options = ConnectOptions {
        timeout_ms: check.connect_timeout_ms,
        proxy_header: &check.proxy_header,
        tls: check.tls.as_ref().map(|tls| Tls {
            connector: &tls.connector,
            name: &tls.name,
            protocols: &[],
            timeout_ms: check.connect_timeout_ms,
        }),
        ..ConnectOptions::default()
    };
    let connection = Connection::open_to(address, &options, now_ms).await;
    let connection = connection.map_err(|error| error.action())?;
    let asked = question.ask(&connection).await;
    keep(check, connection, asked, idle)
}

fn keep(
    check: &Check,
    connection: Connection,
    asked: CheckOutcome,
    idle: &mut Option<Connection>,
) -> Result<(), &'static str> {
    if check.rules.keepalive_time_ms > 0 && asked.is_reusable {
        *idle = Some(connection);
    }
    asked.found
}

//! From a head to a request that can be run: the server is chosen, the path brought into its
//! normal form. The protocol that the head came by makes no difference.

use turnpike_lane::log::Level;
use turnpike_wire::target;

use crate::base64;
use crate::client_certificate::MISDIRECTED;
use crate::exchange::{Action, Exchange};
use crate::plan::ServerIndex;
use crate::request::Request;
use turnpike_plan::Quoted;

/// Brings what the whole head says into its normal form: path and query.
///
/// # Errors
/// The status of a request that cannot be run.
pub(crate) fn settle(exchange: &mut Exchange) -> Result<(), u16> {
    exchange.account.set_action(Action::ReadingHeaders);
    exchange.take_query();
    normal_path(exchange)?;
    if exchange.requester.is_plain_on_tls_port() {
        exchange.log(
            Level::Info,
            format_args!("client sent plain HTTP request to HTTPS port"),
        );
        return Err(497);
    }
    if asks_for_tls(exchange) {
        exchange.log(
            Level::Info,
            format_args!("client sent an https URI on a connection without TLS"),
        );
        return Err(421);
    }
    refuse_client(exchange)?;
    log_ignored(exchange);
    Ok(())
}

/// Adds what HTTP/1 asks for a WebSocket with and an extended CONNECT does not have: the key of
/// the handshake (RFC 6455 section 4.1), whose answer shows that the server has understood it.
pub(crate) fn complete_tunnel_request(exchange: &mut Exchange) {
    let is_websocket = exchange
        .field(b"Upgrade")
        .is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"));
    if !is_websocket || exchange.field(b"Sec-WebSocket-Key").is_some() {
        return;
    }
    let random = [exchange.lane.random(), exchange.lane.random()];
    let key = base64::encode(random.map(u64::to_ne_bytes).as_flattened());
    exchange.read_request(|request| {
        let fields = &mut request.head_mut().fields;
        fields.add(b"Sec-WebSocket-Key", key.as_bytes());
    });
}

/// Takes path and query of a request that is refused, for logs and the page of its status. A path
/// without a normal form stays empty.
pub(crate) fn note_target(exchange: &mut Exchange) {
    if exchange.request().head().has_line {
        exchange.take_query();
        let _ = write_normal_path(exchange);
    }
}

/// Refuses a client whose certificate the server does not take.
fn refuse_client(exchange: &mut Exchange) -> Result<(), u16> {
    let Some(status) = exchange.client_refusal() else {
        return Ok(());
    };
    if status == MISDIRECTED {
        return_to_server_of_connection(exchange);
    }
    Err(status)
}

/// An https URI on a connection that is not secured is refused (RFC 9110 section 7.4).
fn asks_for_tls(exchange: &Exchange) -> bool {
    if exchange.requester.tls().is_some() {
        return false;
    }
    let scheme = exchange.request().head().scheme();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"))
}

/// Chooses the server that the request names.
pub(crate) fn choose_server(exchange: &mut Exchange) {
    exchange.read_request(Request::read_host);
    choose_named_server(exchange);
}

/// Goes back to the server that the connection belongs to: it answers requests that cannot be read,
/// and those for servers that the handshake was not with.
pub(crate) fn return_to_server_of_connection(exchange: &mut Exchange) {
    let server = server_by_tls(exchange);
    exchange.walk.set_server(server);
    exchange.walk.set_location(exchange.server().root);
}

fn server_by_tls(exchange: &Exchange) -> ServerIndex {
    let plan = exchange.plan.clone();
    let listen = plan.listen(exchange.requester.listen());
    let name: Box<[u8]> = match exchange.requester.tls() {
        Some(tls) if !listen.names.is_empty() => tls.negotiated_host().into(),
        _ => Box::default(),
    };
    if name.is_empty() {
        return listen.default_server;
    }
    // A pattern without a verdict matches nothing here, where nothing can wait.
    let found = listen.names.find(&name, exchange).ok().flatten();
    exchange.settle_matching();
    found.unwrap_or(listen.default_server)
}

/// Chooses it by the host that was read.
fn choose_named_server(exchange: &mut Exchange) {
    let plan = exchange.plan.clone();
    let listen = plan.listen(exchange.requester.listen());
    let server = if listen.names.is_empty() {
        listen.default_server
    } else {
        exchange.begin_matching();
        // Without a verdict the engine has it chosen again, or answers 500.
        let found = listen.names.find(exchange.request().host(), exchange);
        found.ok().flatten().unwrap_or(listen.default_server)
    };
    exchange.walk.set_server(server);
    exchange.walk.set_location(plan.server(server).root);
}

impl Exchange {
    /// Chooses the server anew, when more is known of its regular expressions, and all that hangs
    /// on it.
    ///
    /// # Errors
    /// The status of a request that this server refuses.
    pub(crate) fn choose_server_again(&mut self) -> Result<(), u16> {
        choose_named_server(self);
        refuse_client(self)?;
        normal_path(self)
    }
}

fn normal_path(exchange: &mut Exchange) -> Result<(), u16> {
    let Err(Unwalkable) = write_normal_path(exchange) else {
        return Ok(());
    };
    return_to_server_of_connection(exchange);
    exchange.account.set_action(Action::ReadingRequestLine);
    exchange.log(Level::Info, format_args!("client sent invalid request"));
    Err(400)
}

/// A path that has no normal form, so that nothing can be found by it.
struct Unwalkable;

/// Writes the normal form of the request's path.
fn write_normal_path(exchange: &mut Exchange) -> Result<(), Unwalkable> {
    let merge_slashes = exchange.server().settings.merge_slashes;
    let mut path = std::mem::take(exchange.walk.path_mut());
    path.clear();
    let raw = exchange.request().head().path();
    let normal = if raw.is_empty() {
        path.push(b'/');
        exchange.walk.target_changed();
        Ok(target::Normal::Rewritten)
    } else if exchange.request().head().path_is_clean {
        path.extend_from_slice(raw);
        Ok(target::Normal::Clean)
    } else {
        let normal = target::normalise(raw, merge_slashes, &mut path);
        if normal == Ok(target::Normal::Clean) {
            path.extend_from_slice(raw);
        }
        normal
    };
    if normal.is_err() {
        path.clear();
    }
    *exchange.walk.path_mut() = path;
    normal.map(|_| ()).map_err(|_| Unwalkable)
}

fn log_ignored(exchange: &Exchange) {
    for line in exchange.request().head().ignored() {
        let line = Quoted(line);
        exchange.log(
            Level::Info,
            format_args!("client sent invalid header line: \"{line}\""),
        );
    }
}

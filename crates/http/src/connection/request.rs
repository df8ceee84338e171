//! From bytes to a request: the head is parsed, the server chosen, the path brought into its
//! normal form.

use turnpike_lane::log::Level;
use turnpike_wire::h1::{self, HeadError, HeadStep};
use turnpike_wire::message::{HeadRules, Strictness, TargetForm, Version};
use turnpike_wire::{host, target};

use crate::exchange::{Action, Exchange};
use turnpike_plan::Quoted;

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// A request that can be run.
    Complete,
    /// More bytes are needed.
    Incomplete,
    /// The request cannot be run: this status is the answer.
    Refused(u16),
}

/// Reads the head that stands at the exchange's `head_start`.
pub(super) fn read(exchange: &mut Exchange) -> Head {
    let plan = exchange.plan.clone();
    let listen = plan.listen(exchange.client.listen);
    exchange.server = listen.default_server;
    let server = plan.server(listen.default_server);
    exchange.location = server.root;
    let bytes = exchange.input.get(exchange.head_start..);
    let parsed = h1::parse_request(
        bytes.unwrap_or_default(),
        0,
        &server.settings.head_rules,
        &mut exchange.head,
    );
    match parsed {
        Ok(HeadStep::Complete) => {
            exchange.head_complete = true;
            exchange
                .account
                .head_received(exchange.head.head_len as u64);
            choose_server(exchange);
            match read_strictly(exchange, &server.settings.head_rules) {
                Ok(()) => settle(exchange),
                Err(error) => refuse(exchange, error),
            }
        }
        Ok(HeadStep::Incomplete { .. }) => Head::Incomplete,
        Err(error) => {
            let bytes = exchange.head_bytes().len() as u64;
            exchange.account.head_received(bytes);
            refuse(exchange, error)
        }
    }
}

/// Reads the head once more by the RFC, where the server that it names wants that and the default
/// one, by whose rules it was read, does not (`http_strictness`).
fn read_strictly(exchange: &mut Exchange, read_by: &HeadRules) -> Result<(), HeadError> {
    let strictness = exchange.server().settings.head_rules.strictness;
    if strictness == read_by.strictness || strictness == Strictness::Nginx {
        return Ok(());
    }
    let rules = HeadRules {
        strictness,
        ..*read_by
    };
    let bytes = exchange.input.get(exchange.head_start..);
    let bytes = bytes.unwrap_or_default();
    h1::parse_request(bytes, 0, &rules, &mut exchange.head).map(|_| ())
}

fn refuse(exchange: &mut Exchange, error: HeadError) -> Head {
    // A request line that cannot be read names no host: the default server answers.
    let action = if exchange.head.target.is_empty() {
        Action::ReadingRequestLine
    } else {
        choose_server(exchange);
        Action::ReadingHeaders
    };
    exchange.action.set(action);
    let mut message = Vec::new();
    error.write_log(exchange.head_bytes(), &exchange.head, &mut message);
    exchange.log(Level::Info, format_args!("{}", Quoted(&message)));
    Head::Refused(error.status())
}

/// What the whole head says: path, query, and whether the connection may be kept.
fn settle(exchange: &mut Exchange) -> Head {
    exchange.action.set(Action::ReadingHeaders);
    if exchange.plain_on_tls_port {
        exchange.log(
            Level::Info,
            format_args!("client sent plain HTTP request to HTTPS port"),
        );
        return Head::Refused(497);
    }
    if asks_for_tls(exchange) {
        exchange.log(
            Level::Info,
            format_args!("client sent an https URI on a connection without TLS"),
        );
        return Head::Refused(421);
    }
    if let Some(status) = exchange.client_refusal() {
        return Head::Refused(status);
    }
    if !exchange.head.ignored.is_empty() {
        log_ignored(exchange);
    }
    exchange.keep_alive = exchange.head.keep_alive() && exchange.head.version != Version::Http09;
    let mut query = std::mem::take(&mut exchange.query);
    query.clear();
    if let Some(span) = exchange.head.query {
        query.extend_from_slice(span.of(exchange.head_bytes()));
    }
    exchange.query = query;
    normal_path(exchange)
}

/// An https URI on a connection that is not secured is refused (RFC 9110 section 7.4).
fn asks_for_tls(exchange: &Exchange) -> bool {
    if exchange.tls.is_some() {
        return false;
    }
    let TargetForm::Absolute { scheme, .. } = exchange.head.form else {
        return false;
    };
    let scheme = scheme.of(exchange.head_bytes());
    scheme.eq_ignore_ascii_case(b"https")
}

fn choose_server(exchange: &mut Exchange) {
    let mut name = std::mem::take(&mut exchange.host);
    name.clear();
    let bytes = exchange.head_bytes();
    let authority = match exchange.head.form {
        TargetForm::Absolute { authority, .. } | TargetForm::Authority { authority } => {
            authority.of(bytes)
        }
        TargetForm::Origin | TargetForm::Asterisk => &[],
    };
    match exchange.head.host {
        Some(span) => host::lower_case(span.of(bytes), &mut name),
        None if !authority.is_empty() => host::lower_case(authority, &mut name),
        None => {}
    }
    exchange.host = name;
    let plan = exchange.plan.clone();
    let listen = plan.listen(exchange.client.listen);
    exchange.server = match listen.names.is_empty() {
        true => listen.default_server,
        false => {
            exchange.begin_matching();
            // Without a verdict the engine has it chosen again, or answers 500.
            let by_tls = exchange.tls.as_ref().map(|tls| &*tls.server_name);
            let name = match exchange.host.as_slice() {
                b"" => by_tls.unwrap_or_default(),
                host => host,
            };
            let found = listen.names.find(name, exchange);
            found.ok().flatten().unwrap_or(listen.default_server)
        }
    };
    exchange.location = plan.server(exchange.server).root;
}

impl Exchange {
    /// Chooses the server anew, when more is known of its regular expressions, and all that hangs
    /// on it.
    ///
    /// # Errors
    /// The status of a request that this server refuses.
    pub(crate) fn choose_server_again(&mut self) -> Result<(), u16> {
        choose_server(self);
        if let Some(status) = self.client_refusal() {
            return Err(status);
        }
        match normal_path(self) {
            Head::Complete => Ok(()),
            Head::Incomplete => Err(400),
            Head::Refused(status) => Err(status),
        }
    }
}

fn normal_path(exchange: &mut Exchange) -> Head {
    let merge_slashes = exchange.server().settings.merge_slashes;
    let mut path = std::mem::take(&mut exchange.path);
    path.clear();
    let raw = exchange.head.path.of(exchange.head_bytes());
    let normal = if raw.is_empty() {
        path.push(b'/');
        exchange.walk.target_changed();
        Ok(target::Normal::Rewritten)
    } else if exchange.head.path_clean {
        path.extend_from_slice(raw);
        Ok(target::Normal::Clean)
    } else {
        let normal = target::normalise(raw, merge_slashes, &mut path);
        if normal == Ok(target::Normal::Clean) {
            path.extend_from_slice(raw);
        }
        normal
    };
    exchange.path = path;
    match normal {
        Ok(_) => Head::Complete,
        Err(_) => {
            let plan = exchange.plan.clone();
            exchange.server = plan.listen(exchange.client.listen).default_server;
            exchange.location = plan.server(exchange.server).root;
            exchange.action.set(Action::ReadingRequestLine);
            exchange.log(Level::Info, format_args!("client sent invalid request"));
            Head::Refused(400)
        }
    }
}

fn log_ignored(exchange: &Exchange) {
    let bytes = exchange.head_bytes();
    for span in &exchange.head.ignored {
        let line = Quoted(span.of(bytes));
        exchange.log(
            Level::Info,
            format_args!("client sent invalid header line: \"{line}\""),
        );
    }
}

//! `ssl_preread` of `stream`: what a client's TLS hello says is read before the connection is
//! passed on, and the hello is passed on unchanged.

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, ReferenceText, Row, Value, View};
use turnpike_plan::rooms::Room;
use turnpike_plan::tls::version_name;
use turnpike_stream::phase::{Handler, HandlerPlace, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;
use turnpike_stream::variables::VariableRow;
use turnpike_wire::client_hello::{self, ClientHello};

const ROWS: &[Row] = &[Row {
    name: "ssl_preread",
    contexts: &[Context::Stream, Context::StreamServer],
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    summary: "Reads the client's TLS hello before the connection is passed on. With `listen ... \
        udp`, a QUIC connection stays with its server when the client's address changes.",
    ..Row::PLAIN
}];

const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "ssl_preread_alpn_protocols",
        get: |session, out| {
            append(session, out, |hello, out| {
                out.extend_from_slice(&hello.protocols);
            })
        },
        set: None,
        summary: "The protocols that the client offers by ALPN, separated by commas.",
    },
    VariableRow {
        name: "ssl_preread_protocol",
        get: |session, out| {
            append(session, out, |hello, out| {
                out.extend_from_slice(version_name(hello.version).as_bytes());
            })
        },
        set: None,
        summary: "The highest version of TLS that the client offers, such as `TLSv1.3`.",
    },
    VariableRow {
        name: "ssl_preread_server_name",
        get: |session, out| {
            append(session, out, |hello, out| {
                out.extend_from_slice(&hello.server_name);
            })
        },
        set: None,
        summary: "The server name that the client sent (SNI).",
    },
];

/// Reads hellos.
struct Reader;

/// What a session's hello has said; `None`: the client does not speak TLS.
#[derive(Default)]
struct Read(Option<ClientHello>);

impl Room for Read {
    fn clear(&mut self) {
        self.0 = None;
    }
}

pub(crate) const FAMILY: Family = Family {
    name: "stream ssl_preread",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("ssl_preread/reference.md"))],
    variables: || VARIABLES,
    server,
    ..Family::NONE
};

fn server(view: View<'_>, _: &mut Builder<'_>, draft: &mut ServerDraft) -> Result<(), ConfError> {
    if view.flag("ssl_preread") {
        draft.add_handler(HandlerPlace::ServerName, Arc::new(Reader));
    }
    Ok(())
}

impl Handler for Reader {
    fn handle(&self, session: &mut Session) -> Verdict {
        let Ok(hello) = client_hello::read(&session.preread) else {
            return Verdict::Declined;
        };
        let Some(hello) = hello else {
            return Verdict::Again;
        };
        session.choose_server(&hello.server_name);
        session.rooms.get_mut::<Read>().0 = Some(hello);
        Verdict::Declined
    }
}

fn append(session: &Session, out: &mut Vec<u8>, what: impl Fn(&ClientHello, &mut Vec<u8>)) -> bool {
    let read = session.rooms.get::<Read>();
    let hello = read.and_then(|read| read.0.as_ref());
    hello.inspect(|hello| what(hello, out)).is_some()
}

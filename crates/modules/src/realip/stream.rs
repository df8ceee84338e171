//! The family in `stream`: the address is that of the PROXY protocol header.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_stream::phase::{Handler, HandlerPlace, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;
use turnpike_stream::variables::{self, VariableRow};

use super::forwarded::Trust;
use super::{plan, rows};
use turnpike_plan::cidr::warn_of_low_bits;

const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "realip_remote_addr",
        get: |session, out| variables::address(connection_peer(session), out),
        set: None,
        summary: "The original client address of the connection, before it was replaced.",
    },
    VariableRow {
        name: "realip_remote_port",
        get: |session, out| variables::port(connection_peer(session), out),
        set: None,
        summary: "The original client port of the connection, before it was replaced.",
    },
];

fn connection_peer(session: &Session) -> PeerAddress {
    session.connection_peer.unwrap_or(session.peer)
}

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream realip",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    variables: || VARIABLES,
    stream,
    server,
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["set_real_ip_from"]);
    Ok(())
}

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["set_real_ip_from"]);
    let trust = plan::trust(view)?;
    if !trust.is_empty() {
        draft.add_handler(HandlerPlace::ClientAddress, Arc::new(trust));
    }
    Ok(())
}

impl Handler for Trust {
    fn handle(&self, session: &mut Session) -> Verdict {
        let header = session.proxy_header.as_ref();
        let told = header.and_then(|header| header.addresses.as_ref());
        if let Some(source) = told.map(|addresses| addresses.source)
            && self.contains(session.peer)
        {
            session.replace_peer(PeerAddress::Inet(source));
        }
        Verdict::Declined
    }
}

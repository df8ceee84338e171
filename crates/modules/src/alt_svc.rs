//! `alt_svc`: tells clients that come by TCP that the server is there by HTTP/3 too (RFC 7838), on
//! the port that it listens on for QUIC, and takes that back where it does not.

use std::sync::Arc;

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, FilterPlace};
use turnpike_http::plan::{Builder, Family, LocationDraft, listens};

const ROWS: &[Row] = &[Row {
    name: "alt_svc",
    contexts: &[Context::Http, Context::Server, Context::Location],
    arguments: Arguments::exactly(1),
    value: Value::OneOf(&["auto", "off"]),
    repeat: Repeat::Once,
    merge: Merge::Nearest,
    variables: None,
    syntax: "auto | off",
    default: "off",
    summary: "`auto` adds `Alt-Svc` to each response: `h3` with the first port of `listen ... \
        quic` of the server, for a day, or `clear` where the server has none, so that clients \
        forget it. An `Alt-Svc` of `add_header` is sent in addition.",
}];

/// The value for the server that is being read: its own location is the first of its locations.
#[derive(Default)]
struct OfServer(Arc<[u8]>);

/// The family of `alt_svc`.
pub(crate) const FAMILY: Family = Family {
    name: "alt_svc",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("alt_svc.md"))],
    is_silent_unless_written: true,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if view.context() == Context::Server {
        builder.store::<OfServer>().0 = value(view);
    }
    if view.choice("alt_svc") == "auto" {
        let value = Arc::clone(&builder.store::<OfServer>().0);
        draft.add_filter(FilterPlace::Headers, Arc::new(AddAltSvc(value)));
    }
    Ok(())
}

/// The value for a server block. What is wrong with its addresses is reported where they are read.
fn value(server: View<'_>) -> Arc<[u8]> {
    let requests = listens(server).unwrap_or_default();
    let mut quic = requests.iter().filter(|request| request.quic);
    let port = quic.find_map(|request| request.address.port());
    match port.filter(|_| server.flag("http3")) {
        Some(port) => format!("h3=\":{port}\"; ma=86400").into_bytes().into(),
        None => b"clear".as_slice().into(),
    }
}

/// Adds the field.
struct AddAltSvc(Arc<[u8]>);

impl Filter for AddAltSvc {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let fields = exchange.response.fields_mut();
        fields.add(b"Alt-Svc", &self.0);
        None
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

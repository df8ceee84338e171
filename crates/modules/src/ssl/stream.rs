//! The family in `stream`.

use std::sync::LazyLock;

use turnpike_conf::{ConfError, View, bytes_of};
use turnpike_stream::plan::{Builder, Family, ServerDraft, Tls};
use turnpike_stream::session::Session;
use turnpike_stream::variables::VariableRow;

use super::{client_variables, clients, plan, rows, variables};

/// All variables of the family.
static VARIABLES: LazyLock<Vec<VariableRow>> = LazyLock::new(|| {
    let mut rows = variables::of_sessions::<Session>().to_vec();
    rows.extend(client_variables::rows::<Session>());
    rows
});

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream ssl",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    variables: || &VARIABLES,
    server,
    ..Family::NONE
};

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    draft.no_certificate = super::no_certificate(view);
    let entries = view.nearest_all("ssl_alpn");
    let words = entries.iter().flat_map(|entry| entry.arguments.iter());
    let protocols = words.map(|word| bytes_of(&word.text)).collect();
    draft.tls = plan::server(view, builder, protocols)?.map(|tls| Tls {
        tls,
        verify_client: clients::mode(view),
        handshake_timeout_ms: view.milliseconds("ssl_handshake_timeout"),
    });
    Ok(())
}

//! The family in `stream`.

use std::sync::LazyLock;

use turnpike_conf::{ConfError, ReferenceText, Row, View, bytes_of};
use turnpike_stream::plan::{Builder, Family, ServerDraft, Tls};
use turnpike_stream::session::Session;
use turnpike_stream::variables::VariableRow;

use super::{Ssl, client_variables, clients, plan, rows, variables};

/// All variables of the family.
static VARIABLES: LazyLock<Vec<VariableRow>> = LazyLock::new(|| {
    let mut rows = variables::of_sessions::<Session>().to_vec();
    rows.extend(client_variables::rows::<Session>());
    rows
});

impl Family for Ssl {
    fn name(&self) -> &'static str {
        "stream ssl"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn reference(&self) -> &'static [ReferenceText] {
        super::REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        &VARIABLES
    }

    fn server(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut ServerDraft,
    ) -> Result<(), ConfError> {
        draft.no_certificate = super::no_certificate(view);
        let entries = view.nearest_all("ssl_alpn");
        let words = entries.iter().flat_map(|entry| &entry.arguments);
        let protocols = words.map(|word| bytes_of(&word.text)).collect();
        draft.tls = plan::server(view, builder, protocols)?.map(|tls| Tls {
            tls,
            verify_client: clients::mode(view),
            handshake_timeout_ms: view.milliseconds("ssl_handshake_timeout"),
        });
        Ok(())
    }
}

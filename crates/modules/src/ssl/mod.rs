//! `listen ... ssl`: certificates, protocols and sessions of TLS with clients.
//!
//! What is configured becomes one `ServerConfig` of rustls for each server that has a certificate;
//! the handshake itself is a state of its connection in `http`. What cannot be done is refused by
//! name, with the place of its directive; what only cannot be done as well is a warning.

mod checks;
mod ciphers;
mod client_variables;
mod clients;
mod files;
mod identity;
mod plan;
mod private_key;
mod rows;
mod sessions;
#[cfg(test)]
mod tests;
mod ticket_keys;
mod variables;

use std::sync::LazyLock;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// All variables of the family.
static VARIABLES: LazyLock<Vec<VariableRow>> =
    LazyLock::new(|| [variables::VARIABLES, client_variables::VARIABLES].concat());

/// The family.
pub(crate) struct Ssl;

impl Family for Ssl {
    fn name(&self) -> &'static str {
        "ssl"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn variables(&self) -> &'static [VariableRow] {
        &VARIABLES
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::server(view, builder, draft)
    }
}

//! The engine of every family that passes requests to upstream servers: it makes tries, sends the
//! request, and makes the client's response of the answer.
//!
//! ```text
//!  settings
//!  request (writer) ─► upload ─►┐                       ┌─► response (head) ─► relay (body)
//!                               ├─ attempt ◄─ upstream ─┤
//!  conditions (who is next) ◄───┘                       └─► tunnel (101)
//!  response_store: where a cache joins in
//! ```

pub(crate) mod attempt;
pub(crate) mod awaited_body;
pub(crate) mod awaited_head;
pub(crate) mod cgi;
pub(crate) mod coding;
pub(crate) mod conditions;
pub(crate) mod early_hints;
pub(crate) mod handler;
pub(crate) mod head;
pub(crate) mod http2;
pub(crate) mod http2_connection;
pub(crate) mod http_origin;
pub(crate) mod ignored;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod params;
pub(crate) mod plan;
pub(crate) mod proxy_header;
pub(crate) mod relay;
pub(crate) mod response;
pub(crate) mod response_store;
pub(crate) mod rows;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod store;
pub(crate) mod target;
pub(crate) mod tls;
pub(crate) mod try_notes;
pub(crate) mod tunnel;
pub(crate) mod upgrade;
pub(crate) mod upload;
pub(crate) mod view;
pub(crate) mod websocket;

pub(crate) use conditions::Failure;

/// What people wrote about the directives that all these families have, with words in place of the
/// prefix, of an address and of a group's address.
pub(crate) const REFERENCE: &str = include_str!("reference.md");

/// What people wrote about TLS to servers.
pub(crate) const TLS_REFERENCE: &str = include_str!("tls_reference.md");

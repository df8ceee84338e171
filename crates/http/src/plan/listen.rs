//! The addresses that HTTP servers listen on.

use std::net::{Ipv4Addr, SocketAddr};

use turnpike_conf::{ConfError, Span, View};
use turnpike_lane::gate::{AcceptMode, ListenAddress, ListenOptions};
pub use turnpike_plan::listen::ListenRequest;
use turnpike_plan::listen::{plain, read};
use turnpike_plan::server_names::NameTable;

use super::index::ServerIndex;

/// A listening address with the servers behind it.
pub struct Listen {
    pub address: ListenAddress,
    /// Socket options.
    pub options: ListenOptions,
    /// How lanes share it.
    pub mode: AcceptMode,
    /// Serves what no name claims.
    pub default_server: ServerIndex,
    /// Names of the servers on this address.
    pub names: NameTable<ServerIndex>,
    /// Connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// Connections are secured by TLS.
    pub tls: bool,
    /// Clients may speak HTTP/2, whatever `http2` says.
    pub http2: bool,
    /// Clients speak HTTP/3, by datagrams.
    pub quic: bool,
}

/// The addresses that a server block listens on; `*:80` (or `*:8000` without root) when it does
/// not say.
///
/// # Errors
/// Every directive that cannot be read, in nginx's words.
pub fn listens(server: View<'_>) -> Result<Vec<ListenRequest>, Vec<ConfError>> {
    placed_listens(server).map(|placed| placed.into_iter().map(|(request, _)| request).collect())
}

/// As [`listens`], each with the place of its directive.
pub(super) fn placed_listens(
    server: View<'_>,
) -> Result<Vec<(ListenRequest, Span)>, Vec<ConfError>> {
    let mut requests = Vec::new();
    let mut errors = Vec::new();
    for entry in server.own_all("listen") {
        match read(&entry.arguments, Some(default_port())) {
            Ok(read) => requests.extend(read.into_iter().map(|request| (request, entry.span))),
            Err(message) => errors.push(server.error(entry.span, message)),
        }
    }
    if requests.is_empty() && errors.is_empty() {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, default_port()));
        requests.push((plain(address), server.span()));
    }
    if errors.is_empty() {
        Ok(requests)
    } else {
        Err(errors)
    }
}

fn default_port() -> u16 {
    if turnpike_lane::sys::process::is_root() {
        80
    } else {
        8000
    }
}

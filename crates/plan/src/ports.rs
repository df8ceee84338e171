//! The addresses that server blocks share: the default server, and the servers by name.

use std::collections::HashMap;
use std::fmt;

use turnpike_conf::{Complaint, ConfError};
use turnpike_lane::gate::ListenAddress;

use crate::environment::Environment;
use crate::listen::ListenRequest;
use crate::server_names::{NameMatch, NameTable};
use crate::tls::ServerTls;

/// A server with its collected names; `T` identifies the server.
struct Member<T> {
    server: T,
    names: Vec<NameMatch>,
}

/// One address: its options and its servers.
pub struct Port<T> {
    /// The address, with the options that any of its servers requests.
    pub request: ListenRequest,
    /// The server for names that no server has.
    pub default_server: T,
    default_given: bool,
    members: Vec<Member<T>>,
}

/// Why two `listen` directives cannot be for one address. The messages are nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortConflict {
    /// A server listens on the address twice.
    Duplicate(ListenAddress),
    /// A second server is to be the default one.
    DefaultServer(ListenAddress),
    /// A second directive has socket options.
    Options(ListenAddress),
}

impl fmt::Display for PortConflict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortConflict::Duplicate(address) => write!(out, "a duplicate listen {address}"),
            PortConflict::DefaultServer(address) => {
                write!(out, "a duplicate default server for {address}")
            }
            PortConflict::Options(address) => {
                write!(out, "duplicate listen options for {address}")
            }
        }
    }
}

impl std::error::Error for PortConflict {}

impl From<PortConflict> for Complaint {
    fn from(error: PortConflict) -> Complaint {
        error.to_string().into()
    }
}

/// All addresses, in the order of their first use.
pub struct Ports<T> {
    order: Vec<Port<T>>,
    by_address: HashMap<ListenAddress, usize>,
}

impl<T> Default for Ports<T> {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            by_address: HashMap::new(),
        }
    }
}

impl<T: Copy + PartialEq> Ports<T> {
    /// Adds a server with its names to an address.
    ///
    /// # Errors
    /// A conflict on the address.
    pub fn add(
        &mut self,
        request: ListenRequest,
        server: T,
        names: &[NameMatch],
    ) -> Result<(), PortConflict> {
        let member = Member {
            server,
            names: names.to_vec(),
        };
        let Some(&index) = self.by_address.get(&request.address) else {
            self.by_address
                .insert(request.address.clone(), self.order.len());
            self.order.push(Port {
                default_given: request.default_server,
                default_server: server,
                members: vec![member],
                request,
            });
            return Ok(());
        };
        let port = &mut self.order[index];
        let address = &request.address;
        // A server adds all its addresses before the next one: it can only be the last.
        let last = port.members.last();
        if last.is_some_and(|other| other.server == server) {
            return Err(PortConflict::Duplicate(address.clone()));
        }
        if request.default_server {
            if port.default_given {
                return Err(PortConflict::DefaultServer(address.clone()));
            }
            port.default_given = true;
            port.default_server = server;
        }
        if request.options_given {
            if port.request.options_given {
                return Err(PortConflict::Options(address.clone()));
            }
            port.request.options = request.options.clone();
            port.request.options_given = true;
        }
        port.request.proxy_protocol |= request.proxy_protocol;
        port.request.tls |= request.tls;
        port.request.http2 |= request.http2;
        port.members.push(member);
        Ok(())
    }

    /// The addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Port<T>> {
        self.order.iter()
    }

    /// The errors of servers that clients may reach by TLS without having a certificate to show
    /// them: `error` gives that of a server, at an address of QUIC or not, or nothing where another
    /// error was reported for it already.
    pub fn without_certificates(
        &self,
        tls: impl Fn(T) -> Option<ServerTls>,
        error: impl Fn(T, bool) -> Option<ConfError>,
    ) -> Vec<ConfError> {
        let errors = self.iter().filter_map(|port| {
            let server = port.without_certificate(&tls)?;
            error(server, port.request.quic)
        });
        errors.collect()
    }

    /// What is said of names that are none, at addresses where names are looked up: nginx does not
    /// look at them elsewhere.
    pub fn invalid_names(&self) -> Vec<String> {
        let looked_up = self.iter().filter(|port| port.is_looked_up());
        let invalid = looked_up.flat_map(|port| {
            let names = port.members.iter().flat_map(|member| &member.names);
            let invalid = names.filter(|name| name.is_invalid());
            invalid.map(|name| {
                let (name, address) = (name.text(), &port.request.address);
                format!("invalid server name or wildcard \"{name}\" on {address}")
            })
        });
        invalid.collect()
    }

    /// The addresses, when they are complete.
    pub fn into_ports(self) -> Vec<Port<T>> {
        self.order
    }
}

impl<T: Copy + PartialEq> Port<T> {
    /// The servers on the address.
    pub fn servers(&self) -> impl Iterator<Item = T> {
        self.members.iter().map(|member| member.server)
    }

    /// Whether the server is looked up by its name: there are others, or a pattern's groups may be
    /// needed.
    fn is_looked_up(&self) -> bool {
        let mut names = self.members.iter().flat_map(|member| &member.names);
        let has_groups = |name: &NameMatch| match name {
            NameMatch::Pattern(pattern) => pattern.regex.group_count() > 0,
            _ => false,
        };
        self.members.len() > 1 || names.any(has_groups)
    }

    /// A server that clients may reach by TLS and that has no certificate: the default one, or any
    /// other if the default refuses all handshakes.
    fn without_certificate(&self, tls: impl Fn(T) -> Option<ServerTls>) -> Option<T> {
        if !self.request.tls {
            return None;
        }
        match tls(self.default_server) {
            Some(ServerTls::Serve(_)) => None,
            None => Some(self.default_server),
            Some(ServerTls::Reject) => self.servers().find(|server| tls(*server).is_none()),
        }
    }

    /// The names on the address. If one server has the address to itself, the table is empty unless
    /// a pattern's groups may be needed, so that no look-up is needed.
    ///
    /// If a second server has a name too, a warning is logged, and the first one keeps the name.
    pub fn names(&self, environment: &mut dyn Environment) -> NameTable<T> {
        let mut names = NameTable::default();
        let alone = self.members.len() == 1;
        for member in &self.members {
            for name in &member.names {
                let is_wanted = !alone || matches!(name, NameMatch::Pattern(_));
                if is_wanted && !names.add(name, member.server) {
                    let (name, address) = (name.text(), &self.request.address);
                    let message =
                        format!("conflicting server name \"{name}\" on {address}, ignored");
                    environment.warn(ConfError::unplaced(message));
                }
            }
        }
        names.finish(environment.purpose());
        names
    }
}

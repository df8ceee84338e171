//! From the checked tree to the plan: servers, their locations, and the addresses they share.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{ConfError, Context, View};
use turnpike_lane::gate::ListenAddress;
use turnpike_plan::builder::PlanError;
use turnpike_plan::pattern::Pattern;

use super::builder::{Builder, Environment, Family};
use super::index::{LocationIndex, ServerIndex};
use super::listen::{Listen, ListenRequest, placed_listens};
use super::location_words::{Kind, location_words};
use super::locations::LocationTree;
use super::names::{NameMatch, NameTable};
use super::resolved::{LimitExcept, Plan, Server};
use crate::settings::server::EventsSettings;
use turnpike_plan::tls::ServerTls;

impl Plan {
    /// Builds the plan of a configuration whose main level is `main`.
    ///
    /// # Errors
    /// Every error that was found, each with its file and line.
    pub fn build(
        main: View<'_>,
        generation: u64,
        families: &[&'static dyn Family],
        environment: &mut dyn Environment,
    ) -> Result<Self, PlanError> {
        let events = main.children("events").next().unwrap_or(main);
        let events = EventsSettings::read(events);
        let mut builder = Builder::new(families, environment);
        let mut ports = Ports::default();
        if let Some(http) = main.children("http").next() {
            builder.http(http, &mut ports);
            builder.check_templates(http);
            builder.check_variables(http);
        }
        let listens = ports.finish(&events, builder.base.environment);
        builder.check_connections(&events, listens.len());
        builder
            .into_plan(generation, events, listens)
            .map_err(PlanError)
    }
}

/// nginx's words.
const DEPRECATED_HTTP2: &str =
    "the \"listen ... http2\" directive is deprecated, use the \"http2\" directive instead";

/// Locations called `@name`.
type Named = HashMap<String, LocationIndex>;

/// A server with its addresses and names, as they are collected.
struct Member {
    server: ServerIndex,
    names: Vec<NameMatch>,
}

/// One address: the options in force and the servers on it.
struct Port {
    request: ListenRequest,
    default_given: bool,
    default_server: ServerIndex,
    members: Vec<Member>,
}

#[derive(Default)]
struct Ports {
    order: Vec<Port>,
    by_address: HashMap<ListenAddress, usize>,
}

impl Builder<'_> {
    fn http(&mut self, http: View<'_>, ports: &mut Ports) {
        for family in self.families {
            if let Err(error) = family.http(http, self) {
                self.report(error);
            }
        }
        // Nothing is served by it: it finds what is wrong with values that every server replaces.
        if let Err(error) = self.unnamed_location(http) {
            self.report(error);
        }
        for view in http.children("server") {
            self.check_head_buffers(http, view);
            if let Err(error) = self.server(view, ports) {
                self.report(error);
            }
        }
        let servers: Vec<View<'_>> = http.children("server").collect();
        self.check_tls(&servers, ports);
        self.offer_http2(ports);
    }

    fn server(&mut self, view: View<'_>, ports: &mut Ports) -> Result<(), ConfError> {
        let index = ServerIndex(self.servers.len() as u32);
        let names = self.names(view)?;
        let root = self.location(view, b"", |location| location.unnamed = true)?;
        let mut named = Named::new();
        let mut tree = LocationTree::default();
        self.locations(view, &mut tree, &mut named);
        tree.finish();
        self.servers.push(Server {
            name: primary_name(view, &self.host_name),
            settings: Self::server_settings(view),
            root,
            tree,
            named,
        });
        match placed_listens(view) {
            Err(errors) => errors.into_iter().for_each(|error| self.report(error)),
            Ok(requests) => {
                for entry in view.own_all("listen") {
                    if entry.arguments.iter().any(|word| word.text == "http2") {
                        self.warn(view, entry, DEPRECATED_HTTP2);
                    }
                }
                for (request, span) in requests {
                    if let Err(message) = ports.add(request, index, &names) {
                        self.report(view.error(span, message));
                    }
                }
            }
        }
        Ok(())
    }

    fn names(&mut self, view: View<'_>) -> Result<Vec<NameMatch>, ConfError> {
        let mut names = Vec::new();
        for entry in view.own_all("server_name") {
            let place = view.place(entry.span);
            for word in &entry.arguments {
                self.name(&word.text, &place, &mut names)
                    .map_err(|message| view.error(entry.span, message))?;
                if word.text.contains('/') && !word.text.starts_with('~') {
                    let name = &word.text;
                    let message = format!("server name \"{name}\" has suspicious symbols");
                    self.warn(view, entry, message);
                }
            }
        }
        if names.is_empty() {
            names.push(NameMatch::Exact(Vec::new()));
        }
        Ok(names)
    }

    fn name(&mut self, text: &str, place: &str, names: &mut Vec<NameMatch>) -> Result<(), String> {
        let invalid = || format!("server name \"{text}\" is invalid");
        if let Some(pattern) = text.strip_prefix('~') {
            if pattern.is_empty() {
                return Err(format!("empty regex in server name \"{text}\""));
            }
            let caseless = pattern.bytes().any(|byte| byte.is_ascii_uppercase());
            let pattern = Pattern::compile(pattern, caseless, place, &mut self.variables)?;
            names.push(NameMatch::Pattern(Arc::new(pattern)));
            return Ok(());
        }
        let lower = text.to_ascii_lowercase();
        if let Some(rest) = lower.strip_prefix("*.") {
            names.push(NameMatch::Leading(wildcard(rest).ok_or_else(invalid)?));
        } else if let Some(rest) = lower.strip_prefix('.') {
            names.push(NameMatch::Both(wildcard(rest).ok_or_else(invalid)?));
        } else if let Some(rest) = lower.strip_suffix(".*") {
            wildcard(rest).ok_or_else(invalid)?;
            names.push(NameMatch::Trailing(format!("{rest}.").into_bytes()));
        } else if lower.contains('*') {
            return Err(invalid());
        } else if lower == "$hostname" {
            names.push(NameMatch::Exact(self.host_name.clone().into_bytes()));
        } else {
            names.push(NameMatch::Exact(lower.into_bytes()));
        }
        Ok(())
    }

    fn locations(&mut self, view: View<'_>, tree: &mut LocationTree, named: &mut Named) {
        for child in view.children("location") {
            if let Err(error) = self.one_location(view, child, tree, named) {
                self.report(error);
            }
        }
    }

    fn one_location(
        &mut self,
        parent: View<'_>,
        view: View<'_>,
        tree: &mut LocationTree,
        named: &mut Named,
    ) -> Result<(), ConfError> {
        let error = |message: String| view.error(view.span(), message);
        let (kind, text) = location_words(view.arguments()).map_err(error)?;
        if parent.context() == Context::Location {
            nesting(parent, kind, text).map_err(error)?;
        }
        let name = turnpike_conf::bytes_of(text);
        let index = self.location(view, &name, |location| {
            location.regex = kind.is_pattern();
            location.named = kind == Kind::Named;
        })?;
        let mut inner = LocationTree::default();
        self.locations(view, &mut inner, named);
        inner.finish();
        let limit = self.limit_except(view)?;
        if let Some(location) = &mut self.locations[index.0 as usize] {
            location.tree = inner;
            location.limit_except = limit;
        }
        let redirects = self.locations[index.0 as usize]
            .as_ref()
            .is_some_and(|location| location.auto_redirect);
        if redirects && matches!(kind, Kind::Exact | Kind::Prefix | Kind::FinalPrefix) {
            tree.add_redirect(&name, index);
        }
        let fresh = match kind {
            Kind::Exact => tree.add_exact(&name, index),
            Kind::Prefix => tree.add_prefix(&name, index, false),
            Kind::FinalPrefix => tree.add_prefix(&name, index, true),
            Kind::Named => named.insert(text.to_owned(), index).is_none(),
            Kind::Pattern | Kind::PatternCaseless => {
                let caseless = kind == Kind::PatternCaseless;
                let place = view.place(view.span());
                let pattern =
                    Pattern::compile(text, caseless, &place, &mut self.variables).map_err(error)?;
                tree.add_pattern(pattern, index);
                true
            }
        };
        if fresh {
            Ok(())
        } else {
            Err(error(format!("duplicate location \"{text}\"")))
        }
    }

    fn limit_except(&mut self, view: View<'_>) -> Result<Option<LimitExcept>, ConfError> {
        let Some(inner) = view.children("limit_except").next() else {
            return Ok(None);
        };
        let mut methods = Vec::new();
        for word in inner.arguments() {
            let method = word.text.to_ascii_uppercase().into_bytes();
            if !METHODS.contains(&method.as_slice()) {
                let message = format!("invalid method \"{}\"", word.text);
                return Err(inner.error(inner.span(), message));
            }
            if method == b"GET" {
                methods.push(b"HEAD".to_vec());
            }
            methods.push(method);
        }
        let location = self.unnamed_location(inner)?;
        Ok(Some(LimitExcept { methods, location }))
    }

    /// Listening sockets are connections too for nginx, which keeps one more for a client.
    fn check_connections(&mut self, events: &EventsSettings, listens: usize) {
        let connections = events.connections_max;
        if listens > 0 && connections <= listens {
            self.report(ConfError {
                message: format!(
                    "{connections} worker_connections are not enough for {listens} listening \
                     sockets"
                ),
                place: None,
            });
        }
    }

    /// What one server of an address says of HTTP/2 holds for all of them.
    fn offer_http2(&mut self, ports: &Ports) {
        for port in ports.order.iter().filter(|port| port.request.http2) {
            for member in &port.members {
                let Some(server) = self.servers.get(member.server.0 as usize) else {
                    continue;
                };
                let location = self.locations.get_mut(server.root.0 as usize);
                if let Some(Some(location)) = location
                    && let Some(ServerTls::Serve(identity)) = &mut location.tls
                {
                    *identity = Arc::new(identity.with_http2());
                }
            }
        }
    }

    /// Whoever connects to a TLS listener needs a certificate to be shown, or to be refused: the
    /// default server's, where the server that it asks for has none.
    fn check_tls(&mut self, views: &[View<'_>], ports: &Ports) {
        if views.len() != self.servers.len() {
            // A server could not be read: that is reported already.
            return;
        }
        for port in ports.order.iter().filter(|port| port.request.tls) {
            let tls = |server: ServerIndex| {
                let root = self.servers[server.0 as usize].root;
                let location = self.locations[root.0 as usize].as_ref();
                location.and_then(|location| location.tls.clone())
            };
            let without = match tls(port.default_server) {
                Some(ServerTls::Serve(_)) => None,
                None => Some(port.default_server),
                Some(ServerTls::Reject) => {
                    let mut members = port.members.iter().map(|member| member.server);
                    members.find(|server| tls(*server).is_none())
                }
            };
            if let Some(server) = without {
                let view = views[server.0 as usize];
                if view.nearest("ssl_certificate").is_some() {
                    // It cannot be used, which is reported already.
                    continue;
                }
                let message = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" \
                               directive";
                self.report(view.error(view.span(), message));
            }
        }
    }

    /// nginx allocates a buffer for a request head out of its connection's pool.
    fn check_head_buffers(&mut self, http: View<'_>, server: View<'_>) {
        let (_, bytes) = server.buffers("large_client_header_buffers");
        if bytes < server.size("connection_pool_size") {
            let message = "the \"large_client_header_buffers\" size must be equal to or greater \
                           than \"connection_pool_size\"";
            self.report(http.error(http.end(), message));
        }
    }
}

/// Methods that `limit_except` knows; nginx's list.
const METHODS: &[&[u8]] = &[
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"OPTIONS",
    b"PROPFIND",
    b"PROPPATCH",
    b"LOCK",
    b"UNLOCK",
    b"PATCH",
];

/// nginx's rules for a location inside another.
fn nesting(parent: View<'_>, kind: Kind, text: &str) -> Result<(), String> {
    let (parent_kind, parent_text) = location_words(parent.arguments())?;
    match parent_kind {
        Kind::Exact => {
            return Err(format!(
                "location \"{text}\" cannot be inside the exact location \"{parent_text}\""
            ));
        }
        Kind::Named => {
            return Err(format!(
                "location \"{text}\" cannot be inside the named location \"{parent_text}\""
            ));
        }
        _ => {}
    }
    match kind {
        Kind::Named => Err(format!(
            "named location \"{text}\" can be on the server level only"
        )),
        Kind::Exact | Kind::Prefix | Kind::FinalPrefix if !text.starts_with(parent_text) => Err(
            format!("location \"{text}\" is outside location \"{parent_text}\""),
        ),
        _ => Ok(()),
    }
}

/// The first name of a server block, as redirects and `$server_name` use it.
fn primary_name(view: View<'_>, host_name: &str) -> Vec<u8> {
    let word = view
        .own("server_name")
        .and_then(|entry| entry.arguments.first());
    let text = match word.map(|word| word.text.as_str()) {
        Some(text) if text.starts_with('~') => text.to_owned(),
        Some(text) => text.to_ascii_lowercase(),
        None => String::new(),
    };
    match text.as_str() {
        "$hostname" => host_name.as_bytes().to_vec(),
        _ => text.strip_prefix('.').unwrap_or(&text).as_bytes().to_vec(),
    }
}

fn wildcard(rest: &str) -> Option<Vec<u8>> {
    let valid = !rest.is_empty() && !rest.contains('*') && !rest.starts_with('.');
    valid.then(|| format!(".{rest}").into_bytes())
}

impl Ports {
    fn add(
        &mut self,
        request: ListenRequest,
        server: ServerIndex,
        names: &[NameMatch],
    ) -> Result<(), String> {
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
        if port.members.iter().any(|other| other.server == server) {
            return Err(format!("a duplicate listen {address}"));
        }
        if request.default_server {
            if port.default_given {
                return Err(format!("a duplicate default server for {address}"));
            }
            port.default_given = true;
            port.default_server = server;
        }
        if request.options_given {
            if port.request.options_given {
                return Err(format!("duplicate listen options for {address}"));
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

    fn finish(self, events: &EventsSettings, environment: &mut dyn Environment) -> Vec<Listen> {
        self.order
            .into_iter()
            .map(|port| {
                let (names, conflicting) = names_of(&port);
                for name in conflicting {
                    let address = &port.request.address;
                    environment.warn(ConfError {
                        message: format!(
                            "conflicting server name \"{name}\" on {address}, ignored"
                        ),
                        place: None,
                    });
                }
                Listen {
                    mode: port.request.mode(events.accept_mutex, events.reuse_port),
                    address: port.request.address,
                    options: port.request.options,
                    default_server: port.default_server,
                    names,
                    proxy_protocol: port.request.proxy_protocol,
                    tls: port.request.tls,
                    http2: port.request.http2,
                }
            })
            .collect()
    }
}

/// The names on an address. Where one server has it to itself, names choose nothing (only a
/// pattern's groups may be asked for), so that no request has to look its host up.
///
/// Names that a second server asks for too are told apart: the first one keeps them.
fn names_of(port: &Port) -> (NameTable, Vec<String>) {
    let mut names = NameTable::default();
    let mut conflicting = Vec::new();
    let alone = port.members.len() == 1;
    for member in &port.members {
        for name in &member.names {
            let is_wanted = !alone || matches!(name, NameMatch::Pattern(_));
            if is_wanted && !names.add(name, member.server) {
                conflicting.push(name.text());
            }
        }
    }
    names.finish();
    (names, conflicting)
}

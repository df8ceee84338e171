//! From the checked tree to the plan: servers, their locations, and the addresses they share.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, View};
use turnpike_plan::builder::PlanError;
use turnpike_plan::pattern::Pattern;
use turnpike_plan::regex::Case;

use super::builder::{Builder, Environment, Family};
use super::index::{LocationIndex, ServerIndex};
use super::listen::{Listen, placed_listens};
use super::location_words::{Kind, location_words};
use super::locations::LocationTree;
use super::quic;
use super::resolved::{LimitExcept, Plan, Server};
use crate::difference::Difference;
use crate::settings;
use crate::settings::server::EventsSettings;
use turnpike_plan::server_names::{primary_name, server_names};
use turnpike_plan::tls::ServerTls;

/// The addresses with their servers.
pub(super) type Ports = turnpike_plan::ports::Ports<ServerIndex>;

impl Plan {
    /// Builds the plan of a configuration whose main level is `main`.
    ///
    /// # Errors
    /// Every error that was found, each with its file and line.
    pub fn build(
        main: View<'_>,
        generation: u64,
        families: &[Family],
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
        let listens = listens(ports, &events, builder.base.environment);
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

impl Builder<'_> {
    fn http(&mut self, http: View<'_>, ports: &mut Ports) {
        let names = settings::location_names();
        self.settings_names = names.filter(|name| http.is_written(name)).collect();
        for family in self.families {
            if let Err(error) = (family.http)(http, self) {
                self.report(error);
            }
        }
        // Nothing is served by it: it finds what is wrong with values that every server replaces.
        if let Err(error) = self.unnamed_location(http) {
            self.report(error);
        }
        let is_asked = |family: &Family| {
            let mut rows = family.rows.iter();
            !family.is_silent_unless_written || rows.any(|row| http.is_written(row.name))
        };
        self.families_inside = self.families.iter().copied().filter(is_asked).collect();
        for view in http.children("server") {
            self.check_head_buffers(http, view);
            if let Err(error) = self.server(view, ports) {
                self.report(error);
            }
        }
        self.allow_connect();
        let servers: Vec<View<'_>> = http.children("server").collect();
        self.check_certificates(&servers, ports);
        self.check_quic(&servers, ports);
        for message in ports.invalid_names() {
            self.report(http.error(http.end(), message));
        }
        self.offer_http2(ports);
        self.offer_http3(ports);
    }

    fn server(&mut self, view: View<'_>, ports: &mut Ports) -> Result<(), ConfError> {
        let index = ServerIndex(self.servers.len() as u32);
        let names = server_names(view, self)?;
        let root = self.location(view, b"", |location| location.unnamed = true)?;
        let mut named = Named::new();
        let mut tree = LocationTree::default();
        let predicates = self.predicates;
        self.locations(view, &mut tree, &mut named);
        if self.predicates > predicates
            && let Some(location) = &mut self.locations[root.0 as usize]
        {
            location.difference = location.difference.or(Some(Difference::Predicate));
        }
        tree.finish(self.environment.purpose());
        self.servers.push(Server {
            name: primary_name(view, &self.host_name).into(),
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
                    let mut words = entry.arguments.iter().map(|word| &word.text);
                    if let Some(word) = words.find(|text| text.starts_with("accept_filter=")) {
                        let message = format!(
                            "accept filters \"{word}\" are not supported on this platform, ignored"
                        );
                        self.warn(view, entry, message);
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

    /// Lets `CONNECT` through to the locations that answer it. A head is read by the rules of an
    /// address's default server, so those of all servers allow it.
    fn allow_connect(&mut self) {
        let mut locations = self.locations.iter().flatten();
        if locations.any(|location| location.allows_connect) {
            for server in &mut self.servers {
                server.settings.head_rules.connect = true;
            }
        }
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
        let error = |message: Complaint| view.error(view.span(), message);
        let (kind, text) = location_words(view.arguments()).map_err(error)?;
        if parent.context() == Context::Location {
            nesting(parent, kind, text).map_err(error)?;
        }
        let name = turnpike_conf::bytes_of(text);
        let index = self.location(view, &name, |location| {
            location.regex = kind.is_apart_from_paths();
            location.named = kind == Kind::Named;
        })?;
        let inner = self.locations_inside(view, named);
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
            // The first of a name is found, as in nginx.
            Kind::Named => {
                named.entry(text.to_owned()).or_insert(index);
                true
            }
            Kind::Pattern | Kind::PatternCaseless => {
                let case = match kind {
                    Kind::PatternCaseless => Case::Ignored,
                    _ => Case::Sensitive,
                };
                let place = view.place(view.span());
                let pattern = Pattern::compile(text, case, &place, &mut self.variables);
                let pattern = pattern.map_err(|refusal| error(refusal.into()))?;
                tree.add_pattern(pattern, index);
                true
            }
            Kind::Predicate => {
                let variable = predicate(text).map_err(error)?;
                self.predicates += 1;
                tree.add_predicate(self.variables.reference(variable), index);
                true
            }
        };
        if fresh {
            Ok(())
        } else {
            Err(error(format!("duplicate location \"{text}\"").into()))
        }
    }

    /// The locations inside a location, where there are any.
    fn locations_inside(&mut self, view: View<'_>, named: &mut Named) -> Option<Box<LocationTree>> {
        view.children("location").next()?;
        let mut tree = LocationTree::default();
        self.locations(view, &mut tree, named);
        tree.finish(self.environment.purpose());
        Some(Box::new(tree))
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
            self.report(ConfError::unplaced(format!(
                "{connections} worker_connections are not enough for {listens} listening sockets"
            )));
        }
    }

    /// What one server of an address says of HTTP/2 holds for all of them.
    fn offer_http2(&mut self, ports: &Ports) {
        for port in ports.iter().filter(|port| port.request.http2) {
            for server in port.servers() {
                let Some(server) = self.servers.get(server.0 as usize) else {
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

    fn check_certificates(&mut self, views: &[View<'_>], ports: &Ports) {
        if views.len() != self.servers.len() {
            // A server could not be read: that is reported already.
            return;
        }
        let root = |server: ServerIndex| self.servers[server.0 as usize].root;
        let tls = |server| {
            let location = self.locations[root(server).0 as usize].as_ref();
            location.and_then(|location| location.tls.clone())
        };
        let error = |server: ServerIndex, is_quic: bool| {
            let message = self.no_certificates.get(&root(server))?;
            let message = if is_quic {
                message.replace("\"listen ... ssl\"", "\"listen ... quic\"")
            } else {
                (*message).to_owned()
            };
            let view = views[server.0 as usize];
            Some(view.error(view.span(), message))
        };
        for error in ports.without_certificates(tls, error) {
            self.report(error);
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

/// The variable's name in `$NAME`: a predicate is one variable.
fn predicate(text: &str) -> Result<&str, Complaint> {
    let name = text.strip_prefix('$').unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_name) {
        Ok(name)
    } else {
        Err(format!("invalid variable name \"{text}\"").into())
    }
}

/// nginx's rules for a location inside another.
fn nesting(parent: View<'_>, kind: Kind, text: &str) -> Result<(), Complaint> {
    let (parent_kind, parent_text) = location_words(parent.arguments())?;
    match parent_kind {
        Kind::Exact => {
            return Err(format!(
                "location \"{text}\" cannot be inside the exact location \"{parent_text}\""
            )
            .into());
        }
        Kind::Named => {
            return Err(format!(
                "location \"{text}\" cannot be inside the named location \"{parent_text}\""
            )
            .into());
        }
        _ => {}
    }
    match kind {
        Kind::Named => {
            Err(format!("named location \"{text}\" can be on the server level only").into())
        }
        // A predicate says nothing of the paths.
        Kind::Exact | Kind::Prefix | Kind::FinalPrefix
            if parent_kind != Kind::Predicate && !text.starts_with(parent_text) =>
        {
            Err(format!("location \"{text}\" is outside location \"{parent_text}\"").into())
        }
        _ => Ok(()),
    }
}

fn listens(
    ports: Ports,
    events: &EventsSettings,
    environment: &mut dyn Environment,
) -> Vec<Listen> {
    let ports = ports.into_ports().into_iter();
    ports
        .map(|port| Listen {
            names: port.names(environment),
            mode: quic::mode(&port.request, events),
            address: port.request.address,
            options: port.request.options,
            default_server: port.default_server,
            proxy_protocol: port.request.proxy_protocol,
            tls: port.request.tls,
            http2: port.request.http2,
            quic: port.request.quic,
        })
        .collect()
}

//! From the checked tree to the plan: servers and their addresses.

use std::collections::HashMap;
use turnpike_conf::{Complaint, ConfError, Entry, View, Word};
use turnpike_lane::gate::{AcceptMode, ListenAddress};
use turnpike_lane::sys::socket::Kind;
use turnpike_plan::builder::PlanError;
use turnpike_plan::environment::Environment;
use turnpike_plan::listen::{self, ListenRequest};
use turnpike_plan::phases::ByPhase;
use turnpike_plan::ports::{Port, Ports};
use turnpike_plan::server_names::{NameMatch, primary_name, server_names};

use super::{Accept, Builder, Family, Listen, Plan, Server, ServerDraft, ServerSettings};
use crate::phase::HandlerPlace;
use crate::variables::table;

/// A plan in the making, with what is stream's own of it.
struct Draft<'e> {
    builder: Builder<'e>,
    families: &'e [Family],
    accept: Accept,
    servers: Vec<Server>,
    /// The error of a TLS listener with each server, where the server names no certificate.
    no_certificates: Vec<Option<&'static str>>,
    ports: Ports<usize>,
}

impl Plan {
    /// Builds the plan of a configuration whose main level is `main`. Without a `stream` block it
    /// is empty.
    ///
    /// # Errors
    /// Every error that was found, each with its file and line.
    pub fn build(
        main: View<'_>,
        generation: u64,
        families: &[Family],
        environment: &mut dyn Environment,
        accept: Accept,
    ) -> Result<Self, PlanError> {
        let rows = families.iter().flat_map(|family| (family.variables)());
        let mut draft = Draft {
            builder: Builder::new(table(rows.copied()), environment),
            families,
            accept,
            servers: Vec::new(),
            no_certificates: Vec::new(),
            ports: Ports::default(),
        };
        if let Some(stream) = main.children("stream").next() {
            draft.stream(stream);
            draft.builder.check_templates(stream);
            draft.builder.check_variables(stream);
        }
        let listens = draft.listens();
        let mut by_port: HashMap<u16, Vec<usize>> = HashMap::new();
        for (place, listen) in listens.iter().enumerate() {
            if let Some(port) = listen.address.port() {
                by_port.entry(port).or_default().push(place);
            }
        }
        let shared = draft.builder.finish().map_err(PlanError)?;
        Ok(Self {
            generation,
            listens,
            by_port,
            destinations: Vec::new(),
            servers: draft.servers,
            shared,
            kept: Vec::new(),
        })
    }
}

impl Draft<'_> {
    fn stream(&mut self, view: View<'_>) {
        for family in self.families {
            if let Err(error) = (family.stream)(view, &mut self.builder) {
                self.builder.report(error);
            }
        }
        let mut all_read = true;
        for server in view.children("server") {
            if let Err(error) = self.server(server) {
                self.builder.report(error);
                all_read = false;
            }
        }
        if all_read {
            let servers: Vec<View<'_>> = view.children("server").collect();
            self.check_certificates(&servers);
        }
        for message in self.ports.invalid_names() {
            self.builder.report(view.error(view.end(), message));
        }
    }

    fn check_certificates(&mut self, views: &[View<'_>]) {
        let tls = |server: usize| {
            let server = self.servers.get(server)?;
            server.tls.as_ref().map(|tls| tls.tls.clone())
        };
        let error = |server: usize, _: bool| {
            let message = self.no_certificates.get(server).copied().flatten()?;
            let view = views.get(server)?;
            Some(view.error(view.span(), message))
        };
        for error in self.ports.without_certificates(tls, error) {
            self.builder.report(error);
        }
    }

    fn server(&mut self, view: View<'_>) -> Result<(), ConfError> {
        let index = self.servers.len();
        let mut draft = ServerDraft::default();
        for family in self.families {
            if let Err(error) = (family.server)(view, &mut self.builder, &mut draft) {
                self.builder.report(error);
            }
        }
        let error_log = self.builder.error_log(view)?;
        if view.own("listen").is_none() {
            let message = "no \"listen\" is defined for server";
            return Err(view.error(view.span(), message));
        }
        if draft.content.is_none() {
            let message = "no handler for server: its connections are closed";
            self.builder
                .environment
                .warn(view.error(view.span(), message));
        }
        let names = server_names(view, &mut self.builder)?;
        self.no_certificates.push(draft.no_certificate);
        self.servers.push(Server {
            name: primary_name(view, &self.builder.host_name),
            settings: settings(view),
            error_log,
            tls: draft.tls,
            content: draft.content,
            loggers: draft.loggers,
            handlers: ByPhase::new(draft.handlers, |place: HandlerPlace| place.phase() as usize),
        });
        for entry in view.own_all("listen") {
            if let Err(message) = self.listen(entry, index, &names) {
                self.builder.report(view.error(entry.span, message));
            }
        }
        Ok(())
    }

    fn listen(
        &mut self,
        entry: &Entry,
        server: usize,
        names: &[NameMatch],
    ) -> Result<(), Complaint> {
        for word in &entry.arguments[1..] {
            let text = word.text.as_str();
            let is_of_http = matches!(text, "default" | "http2" | "quic");
            if is_of_http || text.starts_with("accept_filter=") {
                return Err(format!("invalid parameter \"{text}\"").into());
            }
        }
        let is_udp = |word: &&Word| word.text == "udp";
        let has_udp = entry.arguments[1..].iter().any(|word| is_udp(&word));
        let words: Vec<Word> = entry
            .arguments
            .iter()
            .filter(|word| !is_udp(word))
            .cloned()
            .collect();
        for request in listen::read(&words, None)? {
            let request = if has_udp {
                datagrams(request, &words[1..])?
            } else {
                request
            };
            self.ports.add(request, server, names)?;
        }
        Ok(())
    }

    fn listens(&mut self) -> Vec<Listen> {
        let ports = std::mem::take(&mut self.ports).into_ports();
        let ports = ports.into_iter();
        ports.map(|port| self.placed(port)).collect()
    }

    fn placed(&mut self, port: Port<usize>) -> Listen {
        let names = port.names(self.builder.environment);
        let request = port.request;
        let mode = request.mode(self.accept.mutex, self.accept.reuse_port);
        Listen {
            mode: match (request.address.kind(), mode.has_gate_per_lane()) {
                (Kind::Stream, _) => mode,
                // By the kernel's hash, which keeps a flow with its lane, or all at one lane.
                (Kind::Datagram, true) => AcceptMode::Reuseport,
                (Kind::Datagram, false) => AcceptMode::Shared,
            },
            address: request.address,
            options: request.options,
            default_server: port.default_server,
            names,
            proxy_protocol: request.proxy_protocol,
            ssl: request.tls,
        }
    }
}

/// The request for UDP, which has no connections that options could be about.
fn datagrams(request: ListenRequest, parameters: &[Word]) -> Result<ListenRequest, Complaint> {
    const CONNECTIONS: [&str; 7] = [
        "ssl",
        "backlog",
        "so_keepalive",
        "proxy_protocol",
        "fastopen",
        "deferred",
        "multipath",
    ];
    for name in CONNECTIONS {
        let is_it = |word: &Word| word.text.split('=').next() == Some(name);
        if parameters.iter().any(is_it) {
            return Err(format!("\"{name}\" parameter is incompatible with \"udp\"").into());
        }
    }
    let ListenAddress::Tcp(address) = request.address else {
        return Err("\"udp\" is not supported for unix domain sockets".into());
    };
    Ok(ListenRequest {
        address: ListenAddress::Udp(address),
        ..request
    })
}

fn settings(view: View<'_>) -> ServerSettings {
    let bytes = view.size("preread_buffer_size");
    ServerSettings {
        preread_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        preread_timeout_ms: view.milliseconds("preread_timeout"),
        proxy_protocol_timeout_ms: view.milliseconds("proxy_protocol_timeout"),
        no_delay: view.flag("tcp_nodelay"),
    }
}

//! From the checked tree to the plan: servers and their addresses.

use turnpike_conf::{ConfError, Entry, View, Word};
use turnpike_lane::gate::{AcceptMode, ListenAddress};
use turnpike_lane::sys::socket::Kind;
use turnpike_plan::builder::PlanError;
use turnpike_plan::environment::Environment;
use turnpike_plan::listen::{self, ListenRequest};

use super::{Accept, Builder, Family, Listen, Plan, Server, ServerDraft, ServerSettings};
use crate::variables::table;

/// A plan in the making, with what is stream's own of it.
struct Draft<'e> {
    builder: Builder<'e>,
    families: &'e [&'static dyn Family],
    accept: Accept,
    servers: Vec<Server>,
    listens: Vec<Listen>,
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
        families: &[&'static dyn Family],
        environment: &mut dyn Environment,
        accept: Accept,
    ) -> Result<Self, PlanError> {
        let rows = families.iter().flat_map(|family| family.variables());
        let mut draft = Draft {
            builder: Builder::new(table(rows.copied()), environment),
            families,
            accept,
            servers: Vec::new(),
            listens: Vec::new(),
        };
        if let Some(stream) = main.children("stream").next() {
            draft.stream(stream);
            draft.builder.check_templates(stream);
            draft.builder.check_variables(stream);
        }
        let shared = draft.builder.finish().map_err(PlanError)?;
        Ok(Self {
            generation,
            listens: draft.listens,
            servers: draft.servers,
            shared,
            kept: None,
        })
    }
}

impl Draft<'_> {
    fn stream(&mut self, view: View<'_>) {
        for family in self.families {
            if let Err(error) = family.stream(view, &mut self.builder) {
                self.builder.report(error);
            }
        }
        for server in view.children("server") {
            if let Err(error) = self.server(server) {
                self.builder.report(error);
            }
        }
    }

    fn server(&mut self, view: View<'_>) -> Result<(), ConfError> {
        let index = self.servers.len();
        let mut draft = ServerDraft::default();
        for family in self.families {
            if let Err(error) = family.server(view, &mut self.builder, &mut draft) {
                self.builder.report(error);
            }
        }
        let entries = view.nearest_all("error_log");
        let span = entries.first().map_or(view.span(), |entry| entry.span);
        let error_log = self.builder.environment.error_log(&entries);
        let error_log = error_log.map_err(|message| view.error(span, message))?;
        if view.own("listen").is_none() {
            let message = "no \"listen\" is defined for server";
            return Err(view.error(view.span(), message));
        }
        if draft.content.is_none() {
            return Err(view.error(view.span(), "no handler for server"));
        }
        let has_tls = draft.tls.is_some();
        self.servers.push(Server {
            settings: settings(view),
            error_log,
            tls: draft.tls,
            content: draft.content,
            loggers: draft.loggers,
            handlers: draft.handlers,
        });
        for entry in view.own_all("listen") {
            if let Err(message) = self.listen(entry, index) {
                self.builder.report(view.error(entry.span, message));
            }
        }
        let uses_tls = self
            .listens
            .iter()
            .any(|listen| listen.server == index && listen.ssl);
        // One that cannot be used is reported already.
        if uses_tls && !has_tls && view.nearest("ssl_certificate").is_none() {
            let message = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
            return Err(view.error(view.span(), message));
        }
        Ok(())
    }

    fn listen(&mut self, entry: &Entry, server: usize) -> Result<(), String> {
        for word in &entry.arguments[1..] {
            let text = word.text.as_str();
            if matches!(text, "default" | "default_server" | "http2" | "quic") {
                return Err(format!("invalid parameter \"{text}\""));
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
            let request = match has_udp {
                true => datagrams(request, &words[1..])?,
                false => request,
            };
            if self
                .listens
                .iter()
                .any(|known| known.address == request.address)
            {
                let address = request.address;
                return Err(format!("duplicate \"{address}\" address and port pair"));
            }
            self.listens.push(self.placed(request, server));
        }
        Ok(())
    }

    fn placed(&self, request: ListenRequest, server: usize) -> Listen {
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
            server,
            proxy_protocol: request.proxy_protocol,
            ssl: request.tls,
        }
    }
}

/// The request for UDP, which has no connections that options could be about.
fn datagrams(request: ListenRequest, parameters: &[Word]) -> Result<ListenRequest, String> {
    const CONNECTIONS: [&str; 6] = [
        "ssl",
        "backlog",
        "so_keepalive",
        "proxy_protocol",
        "fastopen",
        "deferred",
    ];
    for name in CONNECTIONS {
        let is_it = |word: &Word| word.text.split('=').next() == Some(name);
        if parameters.iter().any(is_it) {
            return Err(format!("\"{name}\" parameter is incompatible with \"udp\""));
        }
    }
    let ListenAddress::Tcp(address) = request.address else {
        return Err("\"udp\" is not supported for unix domain sockets".to_owned());
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

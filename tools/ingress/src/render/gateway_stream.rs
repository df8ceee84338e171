//! `stream` for Gateways: TLS by the name of its hello, passed through or terminated, TCP and UDP.

use std::collections::BTreeSet;

use super::{Level, Renderer};
use crate::endpoints::Port;
use crate::findings::Subject;
use crate::gateway::{
    Analysis, Attached, GatewayState, ListenerState, backend, container_port, hosts, subject,
};
use crate::text::{Text, quoted};

/// The group for backends that are not there: it has no server that takes a connection.
const NO_BACKEND: &str = "ingress_own_no_backend";

impl Renderer<'_> {
    /// Writes the servers of all listeners of TLS, TCP and UDP; says whether there is one.
    pub(super) fn gateway_streams(&mut self, text: &mut Text, analysis: &Analysis<'_>) -> bool {
        let mut ports = BTreeSet::new();
        for (index, state) in analysis.gateways.iter().enumerate() {
            for (at, listener) in state.listeners.iter().enumerate() {
                let is_ours = matches!(listener.listener.protocol.as_str(), "TLS" | "TCP" | "UDP");
                if !is_ours || state.refused.is_some() || !listener.is_served() {
                    continue;
                }
                let said = listener.listener;
                let own = container_port(self.objects, self.options, state.gateway, said);
                let Some(port) = own else {
                    continue;
                };
                let is_udp = said.protocol == "UDP";
                let is_first = ports.insert((port, is_udp));
                if said.protocol == "TLS" {
                    self.tls_listener(text, state, listener, port, is_first);
                }
                for (host, matches) in hosts(analysis, index, at) {
                    self.stream_host(text, (state, listener), port, &host, &matches);
                }
            }
        }
        !ports.is_empty()
    }

    /// Writes the server for hellos with no name of a listener.
    fn tls_listener(
        &mut self,
        text: &mut Text,
        state: &GatewayState<'_>,
        listener: &ListenerState<'_>,
        port: u16,
        is_first: bool,
    ) {
        if !is_first {
            return;
        }
        let (ssl, certificates) = self.stream_tls(state, listener);
        let listen = self.listen_at(port);
        text.block("server", |text| {
            text.directive(format!("listen {listen}{ssl} default_server"));
            for line in &certificates {
                text.directive(line);
            }
            refuse(text, false);
        });
    }

    /// Writes the server of a host of a listener; the oldest route has it.
    fn stream_host(
        &mut self,
        text: &mut Text,
        (state, listener): (&GatewayState<'_>, &ListenerState<'_>),
        port: u16,
        host: &str,
        matches: &[Attached<'_>],
    ) {
        let is_tls = listener.listener.protocol == "TLS";
        let is_udp = listener.listener.protocol == "UDP";
        let first = matches
            .iter()
            .find(|attached| !self.without.objects.contains(&subject(attached.route)));
        let Some(first) = first else {
            return; // a hello for it comes to the server for all others
        };
        let owner = subject(first.route);
        let target = self.stream_target(text, first, is_udp, &owner);
        let mut inside = Text::inside_of(2);
        let (ssl, certificates) = self.stream_tls(state, listener);
        let udp = if is_udp { " udp" } else { "" };
        let listen = self.listen_at(port);
        inside.directive(format!("listen {listen}{udp}{ssl}"));
        if is_tls {
            let name = if host.is_empty() { "~^" } else { host };
            inside.directive(format!("server_name {}", quoted(name)));
        }
        for line in &certificates {
            inside.directive(line);
        }
        match target {
            Some(target) => inside.directive(format!("proxy_pass {target}")),
            None => refuse(&mut inside, is_udp),
        }
        let mut whole = Text::inside();
        whole.around("server", inside);
        text.owned(&owner, |text| text.append(whole));
    }

    /// What `listen` and the server have for the TLS of a listener.
    fn stream_tls(
        &mut self,
        state: &GatewayState<'_>,
        listener: &ListenerState<'_>,
    ) -> (&'static str, Vec<String>) {
        if listener.listener.protocol != "TLS" {
            return ("", Vec::new());
        }
        if !listener.terminates {
            return ("", vec!["ssl_preread on".to_owned()]);
        }
        let mut lines = Vec::new();
        for certificate in self.gateway_certificates(state.gateway, listener) {
            let certificate = quoted(&certificate);
            lines.push(format!("ssl_certificate {certificate}"));
            lines.push(format!("ssl_certificate_key {certificate}"));
        }
        (" ssl", lines)
    }

    /// The group of a rule's backends, or a variable that names one by their weights.
    fn stream_target(
        &mut self,
        text: &mut Text,
        attached: &Attached<'_>,
        is_udp: bool,
        owner: &Subject,
    ) -> Option<String> {
        let mut weighed = Vec::new();
        for named in &attached.rule.backend_refs {
            let weight = named.weight.unwrap_or(1);
            if weight > 0 {
                let port = backend(self.objects, attached.route, &named.reference);
                let port = port.map_err(|reason| reason.text);
                let prefix = if is_udp { "udp" } else { "tcp" };
                let group = port.and_then(|port| self.stream_group(text, prefix, &port));
                let group = group.map_err(|missing| {
                    self.find_other(owner, Level::Closed, format!("{missing}: it is refused"));
                });
                weighed.push((group.ok(), weight));
            }
        }
        match weighed.as_slice() {
            [] => None,
            [(group, _)] => group.clone(),
            [first, ..] => {
                let total: u64 = weighed.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let number = self.number();
                let variable = format!("$ingress_own_backend_{number}");
                if weighed.iter().any(|(group, _)| group.is_none()) {
                    self.no_stream_backend(text);
                }
                let name =
                    |group: &Option<String>| group.clone().unwrap_or_else(|| NO_BACKEND.to_owned());
                let key = format!("$connection-$remote_port-$msec-{number}");
                text.block(format!("split_clients \"{key}\" {variable}"), |text| {
                    let (last, others) = weighed.split_last().unwrap_or((first, &[]));
                    for (group, weight) in others {
                        let share = f64::from(*weight) * 100.0 / total as f64;
                        let share = share.clamp(0.01, 99.99);
                        text.directive(format!("{share:.2}% {}", name(group)));
                    }
                    text.directive(format!("* {}", name(&last.0)));
                });
                Some(variable)
            }
        }
    }

    fn no_stream_backend(&mut self, text: &mut Text) {
        if self.zones.insert(format!("stream:{NO_BACKEND}")) {
            text.block(format!("upstream {NO_BACKEND}"), |text| {
                text.directive("server 127.0.0.1:9 down");
            });
        }
    }

    /// The name of a group of `stream`, which is written if it was not; its servers change without
    /// a reload where groups have files of state.
    ///
    /// # Errors
    /// It has no server.
    pub(super) fn stream_group(
        &mut self,
        text: &mut Text,
        prefix: &str,
        port: &Port,
    ) -> Result<String, String> {
        let servers = self.servers(port);
        let mut lines: Vec<String> = match &servers.external_name {
            Some(name) if !self.options.resolvers.is_empty() => vec![format!("{name} resolve")],
            Some(_) => Vec::new(),
            None => servers.addresses.clone(),
        };
        for line in &mut lines {
            line.push_str(" max_fails=0"); // readiness is Kubernetes' to judge
        }
        let state = self.options.state.as_ref();
        let state = state.filter(|_| servers.external_name.is_none());
        if lines.is_empty() && state.is_none() {
            let missing = servers.missing.clone();
            return Err(missing.unwrap_or_else(|| {
                "a Service of type ExternalName needs a DNS server: give --resolver".to_owned()
            }));
        }
        let name = format!("{prefix}_{}", port.group());
        if !self.zones.insert(format!("stream:{name}")) {
            return Ok(name);
        }
        let state = state.map(|folder| {
            let file = turnpike_agent::state_file(folder, &format!("stream:{name}"));
            quoted(&file.display().to_string())
        });
        text.block(format!("upstream {name}"), |text| {
            text.directive(format!("zone {name} 64k"));
            match &state {
                Some(file) => text.directive(format!("state {file}")),
                None => {
                    for line in &lines {
                        text.directive(format!("server {line}"));
                    }
                }
            }
        });
        if state.is_some() {
            self.stream_states.insert(format!("stream:{name}"), lines);
        }
        Ok(name)
    }
}

/// Ends what comes to a server. Datagrams get no answer; rules of access would come before the name
/// of a hello is known, so they are not for connections.
fn refuse(text: &mut Text, is_udp: bool) {
    if is_udp {
        text.directive("deny all");
    }
    text.directive("return \"\"");
}

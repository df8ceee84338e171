//! `stream`: Services of TCP and UDP, hosts whose TLS is passed through, and snippets.

use std::collections::BTreeMap;

use super::{Level, Renderer};
use crate::endpoints::Port;
use crate::findings::Subject;
use crate::gateway::Analysis;
use crate::rules::{CATCH_ALL, Rules};
use crate::text::{Text, quoted};

/// A port of ours and what is behind it.
struct Entry {
    port: u16,
    target: Port,
    decodes: bool,
    encodes: bool,
}

impl Renderer<'_> {
    /// Writes `stream`, if anything is in it.
    pub(super) fn stream(&mut self, text: &mut Text, rules: &Rules, analysis: &Analysis<'_>) {
        let mut inside = Text::inside();
        let mut has_any = false;
        if self.options.has_passthrough {
            self.passthrough(&mut inside, rules);
            has_any = true;
        }
        for is_udp in [false, true] {
            for (subject, entry) in self.entries_of_ports(is_udp) {
                has_any |= self.relay(&mut inside, &subject, &entry, is_udp);
            }
        }
        has_any |= self.gateway_streams(&mut inside, analysis);
        for tenant in &rules.tenants {
            if let Some(snippet) = tenant.annotations.text("stream-snippet") {
                inside.owned(&tenant.subject, |text| text.verbatim(snippet));
                has_any = true;
            }
        }
        has_any |= self.settings.some("stream-snippet").is_some();
        self.administrators(&mut inside, "stream-snippet");
        if !has_any {
            return;
        }
        let mut whole = Text::inside();
        self.stream_general(&mut whole);
        whole.append(inside);
        text.around("stream", whole);
    }

    fn stream_general(&self, text: &mut Text) {
        let settings = self.settings;
        let format = quoted(settings.text("log-format-stream"));
        text.directive(format!("log_format log_stream {format}"));
        if settings.flag("disable-access-log") || settings.flag("disable-stream-access-log") {
            text.directive("access_log off");
        } else {
            let path = settings.some("stream-access-log-path");
            let path = path.unwrap_or_else(|| settings.text("access-log-path"));
            text.directive(format!("access_log {} log_stream", quoted(path)));
        }
        if !self.options.resolvers.is_empty() {
            let resolvers = self.options.resolvers.join(" ");
            text.directive(format!("resolver {resolvers} valid=30s"));
        }
        text.directive(format!(
            "proxy_timeout {}",
            settings.text("proxy-stream-timeout")
        ));
        let preface = settings.text("proxy-protocol-header-timeout");
        text.directive(format!("proxy_protocol_timeout {preface}"));
        let next = if settings.flag("proxy-stream-next-upstream") {
            "on"
        } else {
            "off"
        };
        text.directive(format!("proxy_next_upstream {next}"));
        let tries = settings.text("proxy-stream-next-upstream-tries");
        text.directive(format!("proxy_next_upstream_tries {tries}"));
        let timeout = settings.text("proxy-stream-next-upstream-timeout");
        text.directive(format!("proxy_next_upstream_timeout {timeout}"));
    }

    /// The ports of the ConfigMaps that the flags name.
    fn entries_of_ports(&mut self, is_udp: bool) -> Vec<(Subject, Entry)> {
        let named = if is_udp {
            self.options.udp_services.clone()
        } else {
            self.options.tcp_services.clone()
        };
        let Some((namespace, name)) = named.as_deref().and_then(|text| text.split_once('/')) else {
            return Vec::new();
        };
        let subject = Subject::new("ConfigMap", namespace, name);
        let key = (namespace.to_owned(), name.to_owned());
        let data = self
            .objects
            .config_maps
            .get(&key)
            .and_then(|map| map.data.clone());
        let Some(data) = data else {
            self.find(&subject, Level::LeftOut, "it is missing or empty");
            return Vec::new();
        };
        let mut entries = Vec::new();
        for (port, target) in data {
            match entry(&port, &target) {
                Some(entry) => entries.push((subject.clone(), entry)),
                None => {
                    let error = format!(
                        "{}: \"{}\" is not PORT: NAMESPACE/SERVICE:PORT[:PROXY[:PROXY]]",
                        port.escape_debug(),
                        target.escape_debug()
                    );
                    self.find(&subject, Level::LeftOut, error);
                }
            }
        }
        entries
    }

    fn relay(&mut self, text: &mut Text, subject: &Subject, entry: &Entry, is_udp: bool) -> bool {
        let reserved = [
            self.options.http_port,
            self.options.https_port,
            self.options.status_port,
        ];
        if !is_udp && reserved.contains(&entry.port) {
            let error = format!("port {} is the controller's own", entry.port);
            self.find(subject, Level::LeftOut, error);
            return false;
        }
        let protocol = if is_udp { "udp" } else { "tcp" };
        let group = match self.stream_group(text, protocol, &entry.target) {
            Ok(group) => group,
            Err(missing) => {
                let error = format!("port {}: {missing}", entry.port);
                self.find_other(subject, Level::LeftOut, error);
                return false;
            }
        };
        let mut addresses: Vec<String> = self
            .settings
            .list("bind-address")
            .iter()
            .map(|address| format!("{address}:"))
            .collect();
        if addresses.is_empty() {
            addresses.push(String::new());
        }
        text.block("server", |text| {
            for address in addresses {
                let decode = if entry.decodes && !is_udp {
                    " proxy_protocol"
                } else {
                    ""
                };
                let udp = if is_udp { " udp" } else { "" };
                text.directive(format!("listen {address}{}{udp}{decode}", entry.port));
            }
            if is_udp {
                let responses = self.settings.text("proxy-stream-responses");
                text.directive(format!("proxy_responses {responses}"));
            }
            if entry.encodes && !is_udp {
                text.directive("proxy_protocol on");
            }
            text.directive(format!("proxy_pass {group}"));
        });
        true
    }

    /// Hosts whose connections go to their servers as they are; all others come back to `http`.
    fn passthrough(&mut self, text: &mut Text, rules: &Rules) {
        let own = format!("127.0.0.1:{}", self.options.passthrough_port);
        let chosen = self.passthrough_groups(text, rules);
        // The first server says whose connection it is; the second takes the preface off again for
        // servers that do not know it.
        let second = format!(
            "unix:{}/turnpike-passthrough.sock",
            self.options.temporary.display()
        );
        text.block("map $ssl_preread_server_name $ingress_own_tls", |text| {
            text.directive("hostnames");
            for host in chosen.keys() {
                text.directive(format!("{} {}", quoted(host), quoted(&second)));
            }
            text.directive(format!("default {own}"));
        });
        text.block(
            "map $ssl_preread_server_name $ingress_own_tls_group",
            |text| {
                text.directive("hostnames");
                for (host, group) in &chosen {
                    text.directive(format!("{} {group}", quoted(host)));
                }
                text.directive(format!("default {own}"));
            },
        );
        let addresses = self.settings.list("bind-address");
        let addresses = if addresses.is_empty() {
            vec![""]
        } else {
            addresses
        };
        text.block("server", |text| {
            for address in addresses {
                let colon = if address.is_empty() { "" } else { ":" };
                text.directive(format!(
                    "listen {address}{colon}{}",
                    self.options.https_port
                ));
            }
            text.directive("ssl_preread on");
            text.directive("proxy_protocol on");
            text.directive("proxy_pass $ingress_own_tls");
        });
        text.block("server", |text| {
            text.directive(format!("listen {} proxy_protocol", quoted(&second)));
            text.directive("ssl_preread on");
            text.directive("proxy_pass $ingress_own_tls_group");
        });
    }

    /// Writes the groups of hosts whose TLS is passed through; returns the group of each host.
    fn passthrough_groups(&mut self, text: &mut Text, rules: &Rules) -> BTreeMap<String, String> {
        let mut chosen = BTreeMap::new();
        for server in rules.servers.values() {
            if server.host == CATCH_ALL || !server.has_flag("ssl-passthrough") {
                continue;
            }
            let mut locations = server.locations.iter();
            let root = locations.find(|location| location.written_path == "/");
            let Some(port) = root.and_then(|location| location.port.clone()) else {
                continue;
            };
            if let Ok(group) = self.stream_group(text, "tls", &port) {
                chosen.insert(server.host.clone(), group);
            }
        }
        chosen
    }
}

/// Reads `PORT` and `NAMESPACE/SERVICE:PORT[:PROXY[:PROXY]]`.
fn entry(port: &str, target: &str) -> Option<Entry> {
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let mut parts = target.trim().split(':');
    let (namespace, service) = parts.next()?.split_once('/')?;
    let service_port = parts.next().filter(|port| !port.is_empty())?;
    let decodes = parts.next().unwrap_or_default();
    let encodes = parts.next().unwrap_or_default();
    let is_proxy = |text: &str| text.eq_ignore_ascii_case("proxy");
    let is_good = |text: &str| text.is_empty() || is_proxy(text);
    let are_good = is_good(decodes) && is_good(encodes) && parts.next().is_none();
    let are_names = crate::values::only(namespace, "-") && crate::values::only(service, "-");
    (are_good && are_names).then(|| Entry {
        port,
        target: Port {
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port: service_port.to_owned(),
        },
        decodes: is_proxy(decodes),
        encodes: is_proxy(encodes),
    })
}

//! Groups of servers: one for each port of a Service, and one more for each way to choose among
//! its servers.

use std::collections::BTreeMap;
use std::rc::Rc;

use turnpike_agent::state_file;

use super::Renderer;
use crate::endpoints::{Port, Servers};
use crate::findings::Level;
use crate::rules::{Location, Tenant};
use crate::text::{Text, quoted};

/// The groups by name.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_name: BTreeMap<String, Group>,
    servers: BTreeMap<Port, Rc<Servers>>,
    /// The number and the line of each cookie, by the group and the path that it is for.
    cookies: BTreeMap<(String, String), (usize, String)>,
}

#[derive(Debug)]
struct Group {
    /// Whether the servers are in a file of their own.
    has_state: bool,
    servers: Vec<String>,
    /// The directives that say how a server is chosen.
    method: Vec<String>,
    owner: Option<Rc<Tenant>>,
}

impl Renderer<'_> {
    /// The servers behind a port.
    pub(crate) fn servers(&mut self, port: &Port) -> Rc<Servers> {
        if let Some(known) = self.groups.servers.get(port) {
            return Rc::clone(known);
        }
        let servers = Rc::new(port.servers(self.objects, self.options));
        self.groups
            .servers
            .insert(port.clone(), Rc::clone(&servers));
        servers
    }

    /// The name of the group for a port, chosen among as an Ingress says; none if it has no
    /// server.
    pub(crate) fn group(
        &mut self,
        port: &Port,
        location: &Location,
        tenant: Option<&Rc<Tenant>>,
    ) -> Option<String> {
        let servers = self.servers(port);
        let by_service = tenant
            .and_then(|tenant| tenant.annotations.written_flag("service-upstream"))
            .unwrap_or_else(|| self.settings.flag("service-upstream"));
        let mut lines: Vec<String> = match (&servers.cluster_address, &servers.external_name) {
            (Some(address), _) if by_service => vec![address.clone()],
            (_, Some(_)) if self.options.resolvers.is_empty() => {
                if let Some(tenant) = tenant {
                    let text = "a Service of type ExternalName needs a DNS server: give --resolver";
                    self.find_other(&tenant.subject, Level::Closed, text);
                }
                Vec::new()
            }
            (_, Some(name)) => vec![format!("{name} resolve")],
            _ => servers.addresses.clone(),
        };
        // A group with a file of state may be empty: commands fill it without a reload.
        let has_state = self.options.state.is_some() && servers.external_name.is_none();
        if lines.is_empty() {
            if let (Some(tenant), Some(missing)) = (tenant, &servers.missing) {
                self.find(
                    &tenant.subject,
                    Level::Note,
                    format!("{missing}: the answer is 503"),
                );
            }
            if !has_state || location.is_default && tenant.is_none() {
                return None;
            }
        }
        for line in &mut lines {
            line.push_str(" max_fails=0"); // readiness is Kubernetes' to judge
        }
        let (mut suffix, method) = self.method(port, location, tenant);
        if by_service && servers.cluster_address.is_some() {
            suffix.push_str("_service");
        }
        let name = format!("{}{suffix}", port.group());
        let groups = &mut self.groups.by_name;
        groups.entry(name.clone()).or_insert_with(|| Group {
            has_state,
            servers: lines,
            method,
            owner: tenant.filter(|_| !suffix.is_empty()).cloned(),
        });
        Some(name)
    }

    /// What a group's name ends with, and how its servers are chosen.
    fn method(
        &mut self,
        port: &Port,
        location: &Location,
        tenant: Option<&Rc<Tenant>>,
    ) -> (String, Vec<String>) {
        let general = self.settings.text("load-balance").to_owned();
        let hash = self.settings.some("upstream-hash-by").map(str::to_owned);
        let Some(tenant) = tenant else {
            return (String::new(), by_name(&general));
        };
        let annotations = &tenant.annotations;
        let suffix = |kind: &str| format!("_{kind}_{}", tenant.name);
        if annotations.text("affinity") == Some("cookie") {
            let key = (
                format!("{} {}", port.group(), tenant.name),
                location.written_path.clone(),
            );
            if !self.groups.cookies.contains_key(&key) {
                let number = self.number();
                let line = self.sticky(location, tenant, number);
                self.groups.cookies.insert(key.clone(), (number, line));
            }
            let (number, line) = &self.groups.cookies[&key];
            return (format!("{}_{number}", suffix("sticky")), vec![line.clone()]);
        }
        let own_hash = annotations.text("upstream-hash-by").map(str::to_owned);
        if let Some(key) = own_hash.or(hash) {
            return (
                suffix("hash"),
                vec![format!("hash {} consistent", quoted(&key))],
            );
        }
        match annotations.text("load-balance") {
            Some(name) if name != general => (suffix("balance"), by_name(name)),
            _ => (String::new(), by_name(&general)),
        }
    }

    /// The cookie that keeps a session at its server.
    fn sticky(&mut self, location: &Location, tenant: &Tenant, number: usize) -> String {
        let annotations = &tenant.annotations;
        let name = annotations
            .text("session-cookie-name")
            .unwrap_or("INGRESSCOOKIE");
        let own_path = annotations.text("session-cookie-path");
        let path = own_path.unwrap_or(if annotations.flag("use-regex") {
            "/"
        } else {
            &location.written_path
        });
        let mut line = format!(
            "sticky cookie {name} {} httponly",
            quoted(&format!("path={path}"))
        );
        let seconds = annotations.number("session-cookie-max-age");
        let seconds = seconds.or_else(|| annotations.number("session-cookie-expires"));
        if let Some(seconds) = seconds {
            line.push_str(&format!(" expires={seconds}s"));
        }
        if let Some(domain) = annotations.text("session-cookie-domain") {
            line.push_str(&format!(" domain={domain}"));
        }
        if annotations.flag("session-cookie-secure") {
            line.push_str(" secure");
        }
        if let Some(same_site) = annotations.text("session-cookie-samesite") {
            let same_site = same_site.to_ascii_lowercase();
            let is_conditional = annotations.flag("session-cookie-conditional-samesite-none");
            if is_conditional && same_site == "none" {
                self.same_site_map(number);
                line.push_str(&format!(" samesite=$ingress_own_same_site_{number}"));
            } else {
                line.push_str(&format!(" samesite={same_site}"));
            }
        }
        line
    }

    /// The attribute is left out for browsers that read it as another one: Chrome from 51 to 66,
    /// and those of iOS 12 and macOS 10.14.
    fn same_site_map(&mut self, number: usize) {
        let head = format!("map $http_user_agent $ingress_own_same_site_{number}");
        self.shared.block(head, |text| {
            text.directive("default none");
            text.directive(r#""~Chrom(e|ium)/(5[1-9]|6[0-6])\." """#);
            text.directive(r#""~\(iP.+; CPU .*OS 12[_\d]*.*\) AppleWebKit/" """#);
            text.directive(r#""~\(Macintosh;.*Mac OS X 10_14[_\d]*.*\) AppleWebKit/" """#);
        });
    }

    /// Writes a group's servers, or where they are.
    fn write_servers(&self, text: &mut Text, name: &str, group: &Group) {
        if let (Some(folder), true) = (&self.options.state, group.has_state) {
            let file = state_file(folder, name).display().to_string();
            text.directive(format!("state {}", quoted(&file)));
            return;
        }
        for server in &group.servers {
            text.directive(format!("server {server}"));
        }
    }

    /// The servers of the groups that have files of state.
    pub(super) fn states(&self) -> BTreeMap<String, Vec<String>> {
        let groups = self
            .groups
            .by_name
            .iter()
            .filter(|(_, group)| group.has_state);
        let of_http = groups.map(|(name, group)| (name.clone(), group.servers.clone()));
        of_http.chain(self.stream_states.clone()).collect()
    }

    /// Writes the groups.
    pub(crate) fn write_groups(&self, text: &mut Text) {
        let setting = |name: &str| self.settings.text(name);
        for (name, group) in &self.groups.by_name {
            let write = |text: &mut Text| {
                text.block(format!("upstream {name}"), |text| {
                    text.directive(format!("zone {name} 64k"));
                    for line in &group.method {
                        text.directive(line);
                    }
                    self.write_servers(text, name, group);
                    if self.settings.number("upstream-keepalive-connections") > 0 {
                        text.directive(format!(
                            "keepalive {}",
                            setting("upstream-keepalive-connections")
                        ));
                        text.directive(format!(
                            "keepalive_time {}",
                            setting("upstream-keepalive-time")
                        ));
                        text.directive(format!(
                            "keepalive_timeout {}s",
                            setting("upstream-keepalive-timeout")
                        ));
                        text.directive(format!(
                            "keepalive_requests {}",
                            setting("upstream-keepalive-requests")
                        ));
                    }
                });
            };
            match &group.owner {
                Some(tenant) => text.owned(&tenant.subject, write),
                None => write(text),
            }
        }
    }
}

/// How servers are chosen by the name of a way.
fn by_name(name: &str) -> Vec<String> {
    let line = match name {
        "ewma" => "random two least_time=header",
        "least_conn" => "least_conn",
        "ip_hash" => "ip_hash",
        _ => return Vec::new(),
    };
    vec![line.to_owned()]
}

//! A load balancer as clouds have it: it gives Services addresses, and passes what comes there on
//! to the ports of the pods.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::cluster::{ADDRESS, Cluster};
use crate::workspace::{elements, text};

/// The network of the addresses; it is routed to the bridge, and nobody there has them.
pub(super) const NETWORK: &str = "10.100.0.0/16";

/// The load balancer.
#[derive(Default)]
pub(super) struct Balancer {
    /// The numbers of the addresses, by the paths of Services.
    given: BTreeMap<String, u32>,
    count: u32,
    rules: String,
}

impl Balancer {
    /// Gives addresses to Services that are new, and passes on what all of them say.
    ///
    /// # Errors
    /// nft fails, or the API server does not answer.
    pub(super) fn turn(&mut self, cluster: &Cluster) -> Result<(), String> {
        let listed = cluster.read("/api/v1/services")?;
        let mut rules = Vec::new();
        for service in elements(&listed, "items") {
            if text(&service["spec"], "type") != "LoadBalancer" {
                continue;
            }
            let metadata = &service["metadata"];
            let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
            let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
            let count = &mut self.count;
            let number = *self.given.entry(path.clone()).or_insert_with(|| {
                *count += 1;
                *count
            });
            let address = format!("10.100.{}.{}", number / 250, 1 + number % 250);
            let now = &service["status"]["loadBalancer"]["ingress"][0]["ip"];
            if *now != address.as_str() {
                let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
                cluster.merge(&format!("{path}/status"), &status)?;
            }
            rules.extend(elements(&service["spec"], "ports").iter().map(|port| {
                let protocol = text(port, "protocol").to_ascii_lowercase();
                let (from, to) = (&port["port"], &port["targetPort"]);
                format!("ip daddr {address} {protocol} dport {from} dnat to {ADDRESS}:{to}\n")
            }));
        }
        let rules = rules.concat();
        if rules != self.rules {
            load(&rules)?;
            self.rules = rules;
        }
        Ok(())
    }
}

/// Puts rules in the place of those before, all at once.
fn load(rules: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("nft: {error}");
    let chain =
        |name: &str| format!("chain {name} {{\ntype nat hook {name} priority -100;\n{rules}}}\n");
    let (output, prerouting) = (chain("output"), chain("prerouting"));
    let text = format!(
        "table ip balancer {{}}\ndelete table ip balancer\ntable ip balancer {{\n\
         {output}{prerouting}}}\n"
    );
    let mut nft = Command::new("nft");
    let mut child = nft
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("nft ended with {status}\n{text}"))
    }
}

//! What the cluster is told: the addresses of the Ingresses that are served, and events about
//! what does not work.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter as Source};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use super::Cluster;
use super::apply::Report;
use crate::findings::{Finding, Level};
use crate::objects::{Key, Objects};

/// The name under which events are written.
const CONTROLLER: &str = "turnpike-ingress";

/// The most events of one report: a mistake in the ConfigMap concerns every Ingress.
const EVENTS_MAX: usize = 100;

/// What writes to the cluster.
pub(super) struct Reporter {
    client: Client,
    recorder: Option<Recorder>,
    writes_status: bool,
    addresses: Vec<String>,
    service: Option<Key>,
    served: Vec<Key>,
    /// The findings that were told already.
    told: BTreeSet<Finding>,
    last_error: Option<String>,
    /// What was applied last.
    objects: Arc<Objects>,
}

impl Reporter {
    pub(super) fn new(client: Client, cluster: &Cluster) -> Reporter {
        let source = Source {
            controller: CONTROLLER.to_owned(),
            instance: Some(cluster.identity.clone()),
        };
        let service = cluster
            .status_service
            .as_deref()
            .and_then(|text| text.split_once('/'));
        Reporter {
            recorder: cluster
                .writes_events
                .then(|| Recorder::new(client.clone(), source)),
            client,
            writes_status: cluster.writes_status,
            addresses: cluster.status_addresses.clone(),
            service: service.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
            served: Vec::new(),
            told: BTreeSet::new(),
            last_error: None,
            objects: Arc::default(),
        }
    }

    /// Takes what came of a snapshot; only the leader writes to the cluster.
    pub(super) async fn take(&mut self, report: Report, is_leader: bool) {
        let Report::Tried {
            objects,
            findings,
            served,
            error,
        } = report
        else {
            return;
        };
        if error != self.last_error {
            if let Some(error) = &error {
                eprintln!("the last good configuration serves on: {error}");
            }
            self.last_error.clone_from(&error);
        }
        if error.is_some() {
            return;
        }
        self.served = served;
        self.objects = objects;
        let new: Vec<Finding> = findings
            .iter()
            .filter(|finding| !self.told.contains(finding))
            .cloned()
            .collect();
        for finding in &new {
            eprintln!("{finding}");
        }
        self.told = findings.into_iter().collect();
        if is_leader {
            self.write_events(&new).await;
            self.write_status().await;
        }
    }

    async fn write_events(&self, findings: &[Finding]) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let told = findings
            .iter()
            .filter(|finding| finding.level > Level::Note);
        for finding in told.take(EVENTS_MAX) {
            let key = (
                finding.subject.namespace.clone(),
                finding.subject.name.clone(),
            );
            let Some(ingress) = self.objects.ingresses.get(&key) else {
                continue;
            };
            let event = Event {
                type_: EventType::Warning,
                reason: "Rejected".to_owned(),
                note: Some(finding.text.clone()),
                action: "Render".to_owned(),
                secondary: None,
            };
            if let Err(error) = recorder.publish(&event, &ingress.object_ref(&())).await {
                eprintln!("event about {}: {error}", finding.subject);
            }
        }
    }

    /// Writes the addresses to the Ingresses that are served and have others.
    pub(super) async fn write_status(&mut self) {
        let objects = Arc::clone(&self.objects);
        let wanted = self.wanted(&objects);
        if !self.writes_status || wanted.is_empty() {
            return;
        }
        for (namespace, name) in &self.served {
            let Some(ingress) = objects.ingresses.get(&(namespace.clone(), name.clone())) else {
                continue;
            };
            let status = ingress.status.as_ref();
            let balancer = status.and_then(|status| status.load_balancer.as_ref());
            let now = balancer.and_then(|balancer| balancer.ingress.as_ref());
            let now: Vec<Value> = now
                .iter()
                .flat_map(|entries| entries.iter())
                .map(|entry| match (&entry.ip, &entry.hostname) {
                    (Some(ip), _) => json!({"ip": ip}),
                    (None, hostname) => json!({"hostname": hostname}),
                })
                .collect();
            if now == wanted {
                continue;
            }
            let api: Api<Ingress> = Api::namespaced(self.client.clone(), namespace);
            let patch = json!({"status": {"loadBalancer": {"ingress": wanted}}});
            let parameters = PatchParams::default();
            if let Err(error) = api
                .patch_status(name, &parameters, &Patch::Merge(patch))
                .await
            {
                eprintln!("status of Ingress {namespace}/{name}: {error}");
            }
        }
    }

    /// The addresses under which the controller is reached.
    fn wanted(&self, objects: &Objects) -> Vec<Value> {
        let address = |text: &String| match text.parse::<std::net::IpAddr>() {
            Ok(_) => json!({"ip": text}),
            Err(_) => json!({"hostname": text}),
        };
        if !self.addresses.is_empty() {
            return self.addresses.iter().map(address).collect();
        }
        let Some(service) = self
            .service
            .as_ref()
            .and_then(|key| objects.services.get(key))
        else {
            return Vec::new();
        };
        let balancer = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref());
        let entries = balancer.and_then(|balancer| balancer.ingress.as_ref());
        let own: Vec<Value> = entries
            .iter()
            .flat_map(|entries| entries.iter())
            .filter_map(|entry| entry.ip.as_ref().or(entry.hostname.as_ref()))
            .map(address)
            .collect();
        if !own.is_empty() {
            return own;
        }
        let spec = service.spec.as_ref();
        let external = spec
            .and_then(|spec| spec.external_ips.clone())
            .unwrap_or_default();
        external.iter().map(address).collect()
    }
}

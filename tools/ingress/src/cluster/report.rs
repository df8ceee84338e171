//! What the cluster is told: the addresses of the Ingresses that are served, events about what
//! does not work, and what Gateways need.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use super::Cluster;
use super::apply::Report;
use super::gateways::Gateways;
use crate::findings::{Finding, Level, Subject};
use crate::objects::{Key, Objects};

/// The name under which events are written.
const CONTROLLER: &str = "turnpike-ingress";

/// The most events at once: a mistake in the ConfigMap concerns every Ingress. The others follow at
/// the next renewal of the Lease.
const EVENTS_MAX: usize = 100;

/// The longest note of an event, and the longest beginning of its name: the API server adds 5
/// letters, and takes 253.
const EVENT_NOTE_BYTES_MAX: usize = 1024;
const EVENT_NAME_BYTES_MAX: usize = 240;

/// What writes to the cluster.
pub(super) struct Reporter {
    client: Client,
    /// The name of this pod, in events.
    identity: String,
    writes_events: bool,
    writes_status: bool,
    addresses: Vec<String>,
    service: Option<Key>,
    served: Vec<Key>,
    /// What was found last.
    findings: BTreeSet<Finding>,
    /// The findings that events have told.
    told: BTreeSet<Finding>,
    last_error: Option<String>,
    /// What was applied last.
    objects: Arc<Objects>,
    gateways: Gateways,
    /// Objects that the server has refused.
    refused: BTreeSet<Subject>,
}

impl Reporter {
    pub(super) fn new(client: Client, cluster: &Cluster) -> Reporter {
        let service = cluster
            .status_service
            .as_deref()
            .and_then(|text| text.split_once('/'));
        Reporter {
            identity: cluster.identity.clone(),
            writes_events: cluster.writes_events,
            gateways: Gateways::new(
                client.clone(),
                cluster.options.clone(),
                cluster.writes_status,
            ),
            refused: BTreeSet::new(),
            client,
            writes_status: cluster.writes_status,
            addresses: cluster.status_addresses.clone(),
            service: service.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
            served: Vec::new(),
            findings: BTreeSet::new(),
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
            refused,
            served,
            error,
        } = report
        else {
            return;
        };
        if error != self.last_error {
            if let Some(error) = &error {
                eprintln!("the last good configuration stays in use: {error}");
            }
            self.last_error.clone_from(&error);
        }
        if error.is_some() {
            return;
        }
        self.served = served;
        self.refused = refused;
        self.objects = objects;
        let findings: BTreeSet<Finding> = findings.into_iter().collect();
        for finding in findings.difference(&self.findings) {
            eprintln!("{finding}");
        }
        self.findings = findings;
        if is_leader {
            self.write().await;
        }
    }

    /// Writes what objects should have and do not have yet, and events that were not told.
    pub(super) async fn write(&mut self) {
        self.write_events().await;
        self.write_status().await;
        let objects = Arc::clone(&self.objects);
        self.gateways.write(&objects, &self.refused).await;
    }

    async fn write_events(&mut self) {
        if !self.writes_events {
            return;
        }
        self.told.retain(|finding| self.findings.contains(finding));
        let findings = self.findings.difference(&self.told);
        let new = findings.filter(|finding| finding.level > Level::Note);
        let mut told = Vec::new();
        for finding in new.take(EVENTS_MAX) {
            let Some(about) = self.reference(&finding.subject) else {
                told.push(finding.clone()); // there is no object to tell
                continue;
            };
            let event = self.event(about, &finding.text);
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
            match api.create(&PostParams::default(), &event).await {
                Ok(_) => told.push(finding.clone()),
                Err(error) => eprintln!("event about {}: {error}", finding.subject),
            }
        }
        self.told.extend(told);
    }

    /// An event of its own for each finding: a count of those before would hide the new text.
    fn event(&self, about: ObjectReference, text: &str) -> Event {
        let name = about.name.clone().unwrap_or_default();
        let length = name.floor_char_boundary(EVENT_NAME_BYTES_MAX);
        let text = &text[..text.floor_char_boundary(EVENT_NOTE_BYTES_MAX)];
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}.", &name[..length])),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(Timestamp::now())),
            type_: Some("Warning".to_owned()),
            reason: Some("Rejected".to_owned()),
            note: Some(text.to_owned()),
            action: Some("Render".to_owned()),
            regarding: Some(about),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.identity.clone()),
            ..Event::default()
        }
    }

    /// How an event names its object; none if the object has gone.
    fn reference(&self, subject: &Subject) -> Option<ObjectReference> {
        let key = (subject.namespace.clone(), subject.name.clone());
        if subject.kind == "Ingress" {
            return Some(self.objects.ingresses.get(&key)?.object_ref(&()));
        }
        self.gateways.reference(&self.objects, subject)
    }

    /// Writes the addresses to the Ingresses that are served and have others.
    async fn write_status(&mut self) {
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

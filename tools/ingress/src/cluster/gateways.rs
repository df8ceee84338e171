//! What the cluster is told about Gateways: their Services, and the status of each object.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ObjectReference, Service};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::findings::Subject;
use crate::gateway::{Status, analyse, statuses, wanted_services};
use crate::gateway_objects::{GROUP, Metadata};
use crate::objects::Objects;
use crate::options::Options;

/// The owner of fields that the controller writes.
const MANAGER: &str = "turnpike-ingress";

/// The versions and collections of the kinds, and whether their objects have namespaces.
pub(super) const KINDS: &[(&str, &str, &str, bool)] = &[
    ("GatewayClass", "v1", "gatewayclasses", false),
    ("Gateway", "v1", "gateways", true),
    ("HTTPRoute", "v1", "httproutes", true),
    ("GRPCRoute", "v1", "grpcroutes", true),
    ("TLSRoute", "v1", "tlsroutes", true),
    ("TCPRoute", "v1", "tcproutes", true),
    ("UDPRoute", "v1", "udproutes", true),
    ("ReferenceGrant", "v1beta1", "referencegrants", true),
    ("BackendTLSPolicy", "v1", "backendtlspolicies", true),
];

/// What writes about Gateways.
pub(super) struct Gateways {
    client: Client,
    options: Options,
    writes_status: bool,
    /// The port of the container that was given away last.
    last_port: u16,
}

/// The API's resource of a kind.
pub(super) fn resource(kind: &str) -> Option<(ApiResource, bool)> {
    let (kind, version, collection, is_namespaced) =
        KINDS.iter().find(|(known, ..)| *known == kind)?;
    let named = GroupVersionKind::gvk(GROUP, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&named, collection);
    Some((resource, *is_namespaced))
}

impl Gateways {
    pub(super) fn new(client: Client, options: Options, writes_status: bool) -> Gateways {
        Gateways {
            client,
            options,
            writes_status,
            last_port: 0,
        }
    }

    /// Writes the Services and statuses that are missing or differ.
    pub(super) async fn write(&mut self, objects: &Objects, refused: &BTreeSet<Subject>) {
        if !self.writes_status || objects.gateway_classes.is_empty() {
            return;
        }
        let analysis = analyse(objects, &self.options);
        let services = wanted_services(objects, &self.options, &analysis, &mut self.last_port);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let statuses = statuses(objects, &self.options, &analysis, refused, &now);
        for service in services.applied {
            self.apply_service(&service).await;
        }
        for name in services.removed {
            self.remove_service(&name).await;
        }
        for status in statuses {
            self.write_status(&status).await;
        }
    }

    fn services(&self) -> Option<Api<Service>> {
        let services = self.options.gateway_services.as_ref()?;
        Some(Api::namespaced(self.client.clone(), &services.namespace))
    }

    async fn apply_service(&self, service: &Service) {
        let (Some(api), Some(name)) = (self.services(), &service.metadata.name) else {
            return;
        };
        let mut patch = json!(service);
        patch["apiVersion"] = "v1".into();
        patch["kind"] = "Service".into();
        let parameters = PatchParams::apply(MANAGER).force();
        if let Err(error) = api.patch(name, &parameters, &Patch::Apply(patch)).await {
            eprintln!("Service {name}: {error}");
        }
    }

    async fn remove_service(&self, name: &str) {
        let Some(api) = self.services() else {
            return;
        };
        if let Err(error) = api.delete(name, &DeleteParams::default()).await {
            eprintln!("Service {name}: {error}");
        }
    }

    async fn write_status(&self, status: &Status) {
        let Some((resource, is_namespaced)) = resource(status.kind) else {
            return;
        };
        let api: Api<DynamicObject> = if is_namespaced {
            Api::namespaced_with(self.client.clone(), &status.namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        let mut patch = json!({"status": status.status});
        // The status is about this version: if there is a newer one, a newer status follows.
        patch["metadata"] = json!({"resourceVersion": status.resource_version});
        let parameters = PatchParams::default();
        let written = api
            .patch_status(&status.name, &parameters, &Patch::Merge(patch))
            .await;
        match written {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => {}
            Err(error) => {
                let Status {
                    kind,
                    namespace,
                    name,
                    ..
                } = status;
                eprintln!("status of {kind} {namespace}/{name}: {error}");
            }
        }
    }

    /// How an event names an object of Gateway API; none if it has gone.
    pub(super) fn reference(
        &self,
        objects: &Objects,
        subject: &Subject,
    ) -> Option<ObjectReference> {
        let (resource, _) = resource(subject.kind)?;
        let metadata = metadata(objects, subject)?;
        Some(ObjectReference {
            api_version: Some(resource.api_version),
            kind: Some(resource.kind),
            namespace: Some(metadata.namespace.clone()),
            name: Some(metadata.name.clone()),
            uid: Some(metadata.uid.clone()),
            ..ObjectReference::default()
        })
    }
}

fn metadata<'a>(objects: &'a Objects, subject: &Subject) -> Option<&'a Metadata> {
    let key = (subject.namespace.clone(), subject.name.clone());
    if subject.kind == "Gateway" {
        return Some(&objects.gateways.get(&key)?.metadata);
    }
    let route = objects.route(subject.kind, &key)?;
    Some(&route.metadata)
}

/// An object as the watches tell it, without what is never read.
pub(super) fn value_of(object: &DynamicObject) -> Option<Value> {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    serde_json::to_value(object).ok()
}

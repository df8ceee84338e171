//! The objects of the cluster as the watches tell them.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Error, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::gateways;
use crate::objects::{Key, Objects};

/// The kinds that every cluster has, apart from those of Gateway API.
const KINDS: usize = 7;

/// A change of the store.
pub(super) type Change = Box<dyn FnOnce(&mut Store) + Send>;

/// The objects, and which kinds are known as a whole.
#[derive(Default)]
pub(super) struct Store {
    pub(super) objects: Objects,
    known: BTreeSet<String>,
}

impl Store {
    pub(super) fn apply(&mut self, change: Change) {
        change(self);
    }

    /// Whether every kind was listed once: before that, a rendering would lack what is there.
    pub(super) fn is_complete(&self) -> bool {
        self.known.len() == KINDS + gateways::KINDS.len()
    }
}

/// What puts objects of a kind into the store.
trait Keeper<K>: Copy + Send + 'static {
    fn put(self, object: K, objects: &mut Objects);
    fn remove(self, object: &K, objects: &mut Objects);
    fn clear(self, objects: &mut Objects);
}

/// The keeper of Kubernetes' own kinds.
#[derive(Clone, Copy)]
struct Own;

/// The keeper of a kind of Gateway API.
#[derive(Clone, Copy)]
struct OfGateways(&'static str);

/// The keeper of the labels of namespaces.
#[derive(Clone, Copy)]
struct Labels;

/// Starts the watches of all kinds.
pub(super) fn watch_all(client: &Client, namespace: Option<&str>, changes: &mpsc::Sender<Change>) {
    // Releases of Helm are large Secrets that no rule names.
    let secrets = Config::default().fields("type!=helm.sh/release.v1");
    let all = Config::default;
    spawn(api::<Ingress>(client, namespace), all(), Own, changes);
    spawn(api::<Service>(client, namespace), all(), Own, changes);
    spawn(api::<EndpointSlice>(client, namespace), all(), Own, changes);
    spawn(api::<Secret>(client, namespace), secrets, Own, changes);
    spawn(api::<ConfigMap>(client, namespace), all(), Own, changes);
    let classes = Api::<IngressClass>::all(client.clone());
    spawn(classes, all(), Own, changes);
    let namespaces = Api::<Namespace>::all(client.clone());
    spawn(namespaces, all(), Labels, changes);
    for (kind, ..) in gateways::KINDS {
        let Some((resource, is_namespaced)) = gateways::resource(kind) else {
            continue;
        };
        let api: Api<DynamicObject> = match namespace.filter(|_| is_namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let changes = changes.clone();
        let kept = OfGateways(kind);
        tokio::spawn(watch(api, all(), (*kind).to_owned(), kept, changes));
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn spawn<K>(api: Api<K>, config: Config, keeper: impl Keeper<K>, changes: &mpsc::Sender<Change>)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    K::DynamicType: Default,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    tokio::spawn(watch(api, config, kind, keeper, changes.clone()));
}

/// Follows a kind for ever: a watch that fails or is too old is begun again, later and later.
async fn watch<K>(
    api: Api<K>,
    config: Config,
    kind: String,
    keeper: impl Keeper<K>,
    changes: mpsc::Sender<Change>,
) where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut events = watcher(api, config).default_backoff().into_stream().boxed();
    let mut listed = Vec::new();
    let mut is_told = false;
    while let Some(event) = events.next().await {
        let change: Change = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed.push(object);
                continue;
            }
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut listed);
                let kind = kind.clone();
                Box::new(move |store: &mut Store| {
                    keeper.clear(&mut store.objects);
                    for object in listed {
                        keeper.put(object, &mut store.objects);
                    }
                    store.known.insert(kind);
                })
            }
            Ok(Event::Apply(object)) => {
                Box::new(move |store: &mut Store| keeper.put(object, &mut store.objects))
            }
            Ok(Event::Delete(object)) => {
                Box::new(move |store: &mut Store| keeper.remove(&object, &mut store.objects))
            }
            // Gateway API may not be installed, and a role may not have all of it: the rest is
            // served, and the watch begins when it comes.
            Err(error) if is_optional(&kind) && is_absent(&error) => {
                if !std::mem::replace(&mut is_told, true) {
                    eprintln!("watch of {kind}: {error}: none is served");
                }
                let kind = kind.clone();
                Box::new(move |store: &mut Store| {
                    store.known.insert(kind);
                })
            }
            Err(error) => {
                eprintln!("watch of {kind}: {error}");
                continue;
            }
        };
        if changes.send(change).await.is_err() {
            return; // the controller ends
        }
    }
}

/// Whether Ingresses are served without this kind.
fn is_optional(kind: &str) -> bool {
    kind == "Namespace" || gateways::resource(kind).is_some()
}

/// Whether the API server does not have a kind, or does not show it to us.
fn is_absent(error: &Error) -> bool {
    let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 404))
}

fn key(metadata: &ObjectMeta) -> Key {
    let namespace = metadata.namespace.clone().unwrap_or_default();
    (namespace, metadata.name.clone().unwrap_or_default())
}

/// The kinds that are kept by namespace and name.
macro_rules! kept {
    ($kind:ty, $map:ident) => {
        impl Keeper<$kind> for Own {
            fn put(self, mut object: $kind, objects: &mut Objects) {
                object.metadata.managed_fields = None; // as long as the rest, and never read
                objects.$map.insert(key(&object.metadata), object);
            }

            fn remove(self, object: &$kind, objects: &mut Objects) {
                objects.$map.remove(&key(&object.metadata));
            }

            fn clear(self, objects: &mut Objects) {
                objects.$map.clear();
            }
        }
    };
}

kept!(Ingress, ingresses);
kept!(Service, services);
kept!(Secret, secrets);
kept!(ConfigMap, config_maps);

impl Keeper<IngressClass> for Own {
    fn put(self, object: IngressClass, objects: &mut Objects) {
        objects.classes.insert(key(&object.metadata).1, object);
    }

    fn remove(self, object: &IngressClass, objects: &mut Objects) {
        objects.classes.remove(&key(&object.metadata).1);
    }

    fn clear(self, objects: &mut Objects) {
        objects.classes.clear();
    }
}

impl Keeper<EndpointSlice> for Own {
    fn put(self, object: EndpointSlice, objects: &mut Objects) {
        objects.put_slice(object);
    }

    fn remove(self, object: &EndpointSlice, objects: &mut Objects) {
        let (namespace, name) = key(&object.metadata);
        objects.remove_slice(&namespace, &name);
    }

    fn clear(self, objects: &mut Objects) {
        objects.slices.clear();
    }
}

impl Keeper<Namespace> for Labels {
    fn put(self, object: Namespace, objects: &mut Objects) {
        let labels = object.metadata.labels.unwrap_or_default();
        let name = object.metadata.name.unwrap_or_default();
        objects.namespaces.insert(name, labels);
    }

    fn remove(self, object: &Namespace, objects: &mut Objects) {
        objects.namespaces.remove(&key(&object.metadata).1);
    }

    fn clear(self, objects: &mut Objects) {
        objects.namespaces.clear();
    }
}

impl Keeper<DynamicObject> for OfGateways {
    fn put(self, object: DynamicObject, objects: &mut Objects) {
        if let Some(value) = gateways::value_of(&object) {
            objects.put_of_gateways(self.0, value);
        }
    }

    fn remove(self, object: &DynamicObject, objects: &mut Objects) {
        objects.remove_of_gateways(self.0, key(&object.metadata));
    }

    fn clear(self, objects: &mut Objects) {
        objects.clear_of_gateways(self.0);
    }
}

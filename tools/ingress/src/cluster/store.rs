//! The objects of the cluster as the watches tell them.

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::objects::{Key, Objects};

/// The number of kinds that are watched.
const KINDS: usize = 6;

/// A change of the store.
pub(super) type Change = Box<dyn FnOnce(&mut Store) + Send>;

/// The objects, and which kinds are known as a whole.
#[derive(Default)]
pub(super) struct Store {
    pub(super) objects: Objects,
    known: [bool; KINDS],
}

impl Store {
    pub(super) fn apply(&mut self, change: Change) {
        change(self);
    }

    /// Whether every kind was listed once: before that, a rendering would lack what is there.
    pub(super) fn is_complete(&self) -> bool {
        self.known.iter().all(|known| *known)
    }
}

/// A kind of objects in the store.
trait Kept: Sized + Send + 'static {
    /// The place of the kind in [`Store::known`].
    const INDEX: usize;

    fn put(self, objects: &mut Objects);
    fn remove(&self, objects: &mut Objects);
    fn clear(objects: &mut Objects);
}

/// Starts the watches of all kinds.
pub(super) fn watch_all(client: &Client, namespace: Option<&str>, changes: &mpsc::Sender<Change>) {
    // Releases of Helm are large Secrets that no rule names.
    let secrets = Config::default().fields("type!=helm.sh/release.v1");
    spawn(
        api::<Ingress>(client, namespace),
        Config::default(),
        changes,
    );
    spawn(
        api::<Service>(client, namespace),
        Config::default(),
        changes,
    );
    spawn(
        api::<EndpointSlice>(client, namespace),
        Config::default(),
        changes,
    );
    spawn(api::<Secret>(client, namespace), secrets, changes);
    spawn(
        api::<ConfigMap>(client, namespace),
        Config::default(),
        changes,
    );
    spawn(
        Api::<IngressClass>::all(client.clone()),
        Config::default(),
        changes,
    );
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

fn spawn<K>(api: Api<K>, config: Config, changes: &mpsc::Sender<Change>)
where
    K: Kept + Resource + Clone + DeserializeOwned + std::fmt::Debug,
    K::DynamicType: Default,
{
    tokio::spawn(watch(api, config, changes.clone()));
}

/// Follows a kind for ever: a watch that fails or is too old is begun again, later and later.
async fn watch<K>(api: Api<K>, config: Config, changes: mpsc::Sender<Change>)
where
    K: Kept + Resource + Clone + DeserializeOwned + std::fmt::Debug,
    K::DynamicType: Default,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    let mut events = watcher(api, config).default_backoff().into_stream().boxed();
    let mut listed = Vec::new();
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
                Box::new(move |store: &mut Store| {
                    K::clear(&mut store.objects);
                    for object in listed {
                        object.put(&mut store.objects);
                    }
                    store.known[K::INDEX] = true;
                })
            }
            Ok(Event::Apply(object)) => {
                Box::new(move |store: &mut Store| object.put(&mut store.objects))
            }
            Ok(Event::Delete(object)) => {
                Box::new(move |store: &mut Store| object.remove(&mut store.objects))
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

fn key(metadata: &ObjectMeta) -> Key {
    let namespace = metadata.namespace.clone().unwrap_or_default();
    (namespace, metadata.name.clone().unwrap_or_default())
}

/// The kinds that are kept by namespace and name.
macro_rules! kept {
    ($kind:ty, $index:literal, $map:ident) => {
        impl Kept for $kind {
            const INDEX: usize = $index;

            fn put(mut self, objects: &mut Objects) {
                self.metadata.managed_fields = None; // as long as the rest, and never read
                objects.$map.insert(key(&self.metadata), self);
            }

            fn remove(&self, objects: &mut Objects) {
                objects.$map.remove(&key(&self.metadata));
            }

            fn clear(objects: &mut Objects) {
                objects.$map.clear();
            }
        }
    };
}

kept!(Ingress, 0, ingresses);
kept!(Service, 1, services);
kept!(Secret, 2, secrets);
kept!(ConfigMap, 3, config_maps);

impl Kept for IngressClass {
    const INDEX: usize = 4;

    fn put(self, objects: &mut Objects) {
        objects.classes.insert(key(&self.metadata).1, self);
    }

    fn remove(&self, objects: &mut Objects) {
        objects.classes.remove(&key(&self.metadata).1);
    }

    fn clear(objects: &mut Objects) {
        objects.classes.clear();
    }
}

impl Kept for EndpointSlice {
    const INDEX: usize = 5;

    fn put(self, objects: &mut Objects) {
        objects.put_slice(self);
    }

    fn remove(&self, objects: &mut Objects) {
        let (namespace, name) = key(&self.metadata);
        objects.remove_slice(&namespace, &name);
    }

    fn clear(objects: &mut Objects) {
        objects.slices.clear();
    }
}

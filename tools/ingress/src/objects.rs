//! The objects that rules are made of, and how they are read from YAML.
//!
//! Kinds that no rule needs are skipped. An object that cannot be read is a finding about itself
//! and never hides another.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::findings::{Finding, Level, Subject};
use crate::gateway_objects::{BackendTlsPolicy, Gateway, GatewayClass, ReferenceGrant, Route};

/// The longest file of manifests that is read: a dump of 5,000 Ingresses with their endpoints has
/// about 20 MB.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The most files of a folder and its sub-folders: a limit for a folder given by mistake.
const FILES_MAX: usize = 100_000;

/// The deepest sub-folder that is looked into.
const FOLDER_DEPTH_MAX: usize = 16;

/// The kinds of Gateway API that are read.
pub(crate) const GATEWAY_KINDS: &[&str] = &[
    "GatewayClass",
    "Gateway",
    "HTTPRoute",
    "GRPCRoute",
    "TLSRoute",
    "TCPRoute",
    "UDPRoute",
    "ReferenceGrant",
    "BackendTLSPolicy",
];

/// The label that every namespace has.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A namespace and a name.
pub(crate) type Key = (String, String);

/// The objects of a cluster that an ingress controller reads, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub ingresses: BTreeMap<(String, String), Ingress>,
    pub classes: BTreeMap<String, IngressClass>,
    pub services: BTreeMap<(String, String), Service>,
    /// By the namespace and the name of the Service that they belong to.
    pub slices: BTreeMap<(String, String), Vec<EndpointSlice>>,
    pub secrets: BTreeMap<(String, String), Secret>,
    pub config_maps: BTreeMap<(String, String), ConfigMap>,
    pub gateway_classes: BTreeMap<String, GatewayClass>,
    pub gateways: BTreeMap<(String, String), Gateway>,
    /// Routes by namespace, and by kind and name.
    pub routes: BTreeMap<(String, String), Route>,
    pub grants: BTreeMap<(String, String), ReferenceGrant>,
    pub backend_tls: BTreeMap<(String, String), BackendTlsPolicy>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// What could not be read.
    pub findings: Vec<Finding>,
}

/// Why manifests could not be read at all.
#[derive(Debug)]
pub enum ReadError {
    /// A file or folder, and the system's error.
    File(PathBuf, std::io::Error),
    /// A file that is not YAML, and where.
    Yaml(PathBuf, String),
    /// More files, deeper folders or longer files than a limit allows.
    TooMuch(PathBuf, &'static str),
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::File(path, error) => write!(formatter, "{}: {error}", path.display()),
            ReadError::Yaml(path, text) => {
                write!(formatter, "{}: this is not YAML: {text}", path.display())
            }
            ReadError::TooMuch(path, text) => write!(formatter, "{}: {text}", path.display()),
        }
    }
}

impl std::error::Error for ReadError {}

impl Objects {
    /// Reads every `.yaml`, `.yml` and `.json` file below a folder, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read or is not YAML, or a limit is reached.
    pub fn read_folder(folder: &Path) -> Result<Objects, ReadError> {
        let mut files = Vec::new();
        find_files(folder, 0, &mut files)?;
        files.sort();
        let mut objects = Objects::default();
        for file in files {
            let failed = |error| ReadError::File(file.clone(), error);
            let length = std::fs::metadata(&file).map_err(failed)?.len();
            if length > FILE_BYTES_MAX {
                return Err(ReadError::TooMuch(file, "the file is longer than 256 MiB"));
            }
            let text = std::fs::read_to_string(&file).map_err(failed)?;
            let read = objects.read_text(&text);
            read.map_err(|error| ReadError::Yaml(file.clone(), error))?;
        }
        Ok(objects)
    }

    /// Adds the objects of a text of YAML documents. A later object replaces an earlier one of the
    /// same name.
    ///
    /// # Errors
    /// The text is not YAML: where and why.
    pub fn read_text(&mut self, text: &str) -> Result<(), String> {
        for document in documents(text) {
            let value: Option<Value> =
                serde_saphyr::from_str(document).map_err(|error| error.to_string())?;
            if let Some(value) = value {
                self.add(value);
            }
        }
        Ok(())
    }

    /// Adds one object, or each of a `List`.
    pub fn add(&mut self, mut value: Value) {
        let kind = value["kind"].as_str().unwrap_or_default().to_owned();
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take)
        {
            let kind = kind.trim_end_matches("List");
            for mut item in items {
                if let Some(fields) = item.as_object_mut()
                    && !kind.is_empty()
                {
                    fields.entry("kind").or_insert_with(|| kind.into());
                }
                self.add(item);
            }
            return;
        }
        if let Some(fields) = value.as_object_mut() {
            fields.remove("status");
        }
        match kind.as_str() {
            "Ingress" => insert(self, "Ingress", value, |objects| &mut objects.ingresses),
            "Service" => insert(self, "Service", value, |objects| &mut objects.services),
            "Secret" => insert(self, "Secret", value, |objects| &mut objects.secrets),
            "ConfigMap" => insert(self, "ConfigMap", value, |objects| &mut objects.config_maps),
            "IngressClass" => {
                let (_, name) = key_of(&value);
                if let Some(class) = typed(self, "IngressClass", value) {
                    self.classes.insert(name, class);
                }
            }
            "EndpointSlice" => self.add_slice(value),
            "Namespace" => {
                let (_, name) = key_of(&value);
                let labels = serde_json::from_value(value["metadata"]["labels"].take());
                self.namespaces.insert(name, labels.unwrap_or_default());
            }
            kind if GATEWAY_KINDS.contains(&kind) => self.put_of_gateways(kind, value),
            _ => {}
        }
    }

    /// Adds an object of Gateway API, or replaces the one of its kind and name.
    pub(crate) fn put_of_gateways(&mut self, kind: &str, mut value: Value) {
        let (namespace, name) = key_of(&value);
        value["metadata"]["namespace"] = namespace.clone().into();
        let key = (namespace, name);
        match kind {
            "GatewayClass" => {
                if let Some(class) = typed(self, "GatewayClass", value) {
                    self.gateway_classes.insert(key.1, class);
                }
            }
            "Gateway" => insert(self, "Gateway", value, |objects| &mut objects.gateways),
            "ReferenceGrant" => {
                insert(self, "ReferenceGrant", value, |objects| &mut objects.grants);
            }
            "BackendTLSPolicy" => insert(self, "BackendTLSPolicy", value, |objects| {
                &mut objects.backend_tls
            }),
            _ => {
                let known = GATEWAY_KINDS.iter().find(|known| **known == kind);
                if let Some(kind) = known
                    && let Some(route) = typed::<Route>(self, kind, value)
                {
                    let name = route_name(kind, &key.1);
                    let kind = (*kind).to_owned();
                    self.routes.insert((key.0, name), Route { kind, ..route });
                }
            }
        }
    }

    /// Takes an object of Gateway API out.
    pub(crate) fn remove_of_gateways(&mut self, kind: &str, (namespace, name): Key) {
        match kind {
            "GatewayClass" => drop(self.gateway_classes.remove(&name)),
            "Gateway" => drop(self.gateways.remove(&(namespace, name))),
            "ReferenceGrant" => drop(self.grants.remove(&(namespace, name))),
            "BackendTLSPolicy" => drop(self.backend_tls.remove(&(namespace, name))),
            kind => drop(self.routes.remove(&(namespace, route_name(kind, &name)))),
        }
    }

    /// A route of a kind, by its namespace and name.
    pub(crate) fn route(&self, kind: &str, key: &Key) -> Option<&Route> {
        self.routes.get(&(key.0.clone(), route_name(kind, &key.1)))
    }

    /// Takes all objects of a kind of Gateway API out.
    pub(crate) fn clear_of_gateways(&mut self, kind: &str) {
        match kind {
            "GatewayClass" => self.gateway_classes.clear(),
            "Gateway" => self.gateways.clear(),
            "ReferenceGrant" => self.grants.clear(),
            "BackendTLSPolicy" => self.backend_tls.clear(),
            kind => self.routes.retain(|_, route| route.kind != kind),
        }
    }

    /// The labels of a namespace, with the one that each has.
    pub(crate) fn labels_of_namespace(&self, namespace: &str) -> BTreeMap<String, String> {
        let mut labels = self.namespaces.get(namespace).cloned().unwrap_or_default();
        labels.insert(NAME_LABEL.to_owned(), namespace.to_owned());
        labels
    }

    fn add_slice(&mut self, value: Value) {
        if let Some(slice) = typed::<EndpointSlice>(self, "EndpointSlice", value) {
            self.put_slice(slice);
        }
    }

    /// Adds a slice, or replaces the one of its name.
    pub(crate) fn put_slice(&mut self, slice: EndpointSlice) {
        let metadata = &slice.metadata;
        let namespace = metadata
            .namespace
            .as_deref()
            .unwrap_or("default")
            .to_owned();
        let name = metadata.name.clone().unwrap_or_default();
        let labels = metadata.labels.as_ref();
        let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
        let service = service.cloned();
        self.remove_slice(&namespace, &name);
        if let Some(service) = service {
            self.slices
                .entry((namespace, service))
                .or_default()
                .push(slice);
        }
    }

    /// Takes a slice out.
    pub(crate) fn remove_slice(&mut self, namespace: &str, name: &str) {
        let first = (namespace.to_owned(), String::new());
        for (_, slices) in self
            .slices
            .range_mut(first..)
            .take_while(|(key, _)| key.0 == namespace)
        {
            slices.retain(|slice| slice.metadata.name.as_deref() != Some(name));
        }
    }
}

/// Puts a typed object into its map.
fn insert<T: DeserializeOwned>(
    objects: &mut Objects,
    kind: &'static str,
    value: Value,
    map: impl Fn(&mut Objects) -> &mut BTreeMap<Key, T>,
) {
    let key = key_of(&value);
    if let Some(object) = typed(objects, kind, value) {
        map(objects).insert(key, object);
    }
}

fn typed<T: DeserializeOwned>(
    objects: &mut Objects,
    kind: &'static str,
    value: Value,
) -> Option<T> {
    let (namespace, name) = key_of(&value);
    let subject = Subject::new(kind, &namespace, &name);
    // What was said about an earlier version of the object is over.
    objects
        .findings
        .retain(|finding| finding.subject != subject);
    match serde_json::from_value(value) {
        Ok(object) => Some(object),
        Err(error) => {
            let text = format!("the object cannot be read: {error}");
            objects.findings.push(Finding {
                subject,
                level: Level::LeftOut,
                text,
                awaits_other: false,
            });
            None
        }
    }
}

/// The name of a route among those of all kinds.
fn route_name(kind: &str, name: &str) -> String {
    format!("{kind} {name}")
}

/// The namespace and the name of an object; the namespace is `default` if it has none.
fn key_of(value: &Value) -> Key {
    let field = |name: &str| value["metadata"][name].as_str().unwrap_or_default();
    let namespace = match field("namespace") {
        "" => "default",
        namespace => namespace,
    };
    (namespace.to_owned(), field("name").to_owned())
}

/// The documents of a text: YAML's marker is `---` at the start of a line.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let is_marker = line.trim_end() == "---" || line.starts_with("--- ");
            if is_marker && at > 0 {
                rest = Some(&text[at..]);
                return Some(&text[..at]);
            }
            at += line.len();
        }
        rest = None;
        Some(text)
    })
}

fn find_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let failed = |error| ReadError::File(folder.to_path_buf(), error);
    if depth > FOLDER_DEPTH_MAX {
        let text = "the folders are nested deeper than 16";
        return Err(ReadError::TooMuch(folder.to_path_buf(), text));
    }
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            find_files(&path, depth + 1, files)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            let text = "the folder has more than 100000 files";
            return Err(ReadError::TooMuch(folder.to_path_buf(), text));
        }
    }
    Ok(())
}

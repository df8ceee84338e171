//! A small API server: lists, watches, and what is written to it. It can end watches, and forget
//! the past so that watches must begin again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a watch sleeps at most before it looks whether it should end.
const LOOK: Duration = Duration::from_millis(100);

/// The collections of objects of the cluster.
const COLLECTIONS: &[(&str, &str, &str)] = &[
    ("Ingress", "networking.k8s.io/v1", "ingresses"),
    ("IngressClass", "networking.k8s.io/v1", "ingressclasses"),
    ("Service", "v1", "services"),
    ("Secret", "v1", "secrets"),
    ("ConfigMap", "v1", "configmaps"),
    ("EndpointSlice", "discovery.k8s.io/v1", "endpointslices"),
    (
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
    ),
    ("Lease", "coordination.k8s.io/v1", "leases"),
    ("Namespace", "v1", "namespaces"),
    (
        "GatewayClass",
        "gateway.networking.k8s.io/v1",
        "gatewayclasses",
    ),
    ("Gateway", "gateway.networking.k8s.io/v1", "gateways"),
    ("HTTPRoute", "gateway.networking.k8s.io/v1", "httproutes"),
    ("GRPCRoute", "gateway.networking.k8s.io/v1", "grpcroutes"),
    (
        "ReferenceGrant",
        "gateway.networking.k8s.io/v1beta1",
        "referencegrants",
    ),
];

/// The collections whose objects have no namespace.
const CLUSTER_WIDE: &[&str] = &[
    "ingressclasses",
    "validatingwebhookconfigurations",
    "namespaces",
    "gatewayclasses",
];

/// A running API server; it ends with the test.
#[derive(Clone)]
pub(crate) struct ApiServer {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    version: u64,
    /// By collection, namespace and name.
    objects: BTreeMap<(String, String), Value>,
    /// Version, collection, type and object of each change.
    changes: Vec<(u64, String, &'static str, Value)>,
    /// Changes of this version and before are forgotten.
    forgotten: u64,
    /// Raised to end all watches.
    era: u64,
    is_away: bool,
    /// Whether what is written to objects is never answered.
    is_stuck: bool,
    events: Vec<Value>,
}

impl ApiServer {
    pub(crate) fn start() -> ApiServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&own);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        ApiServer { port, shared }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Adds or replaces the objects of a text of YAML documents.
    pub(crate) fn put(&self, text: &str) {
        for document in text
            .split("---\n")
            .filter(|document| !document.trim().is_empty())
        {
            let object: Value = serde_saphyr::from_str(document).unwrap();
            let kind = object["kind"].as_str().unwrap();
            let row = COLLECTIONS.iter().find(|(name, ..)| *name == kind).unwrap();
            self.state().put(row.2, object.clone(), row.1);
        }
        self.shared.changed.notify_all();
    }

    /// Takes an object out.
    pub(crate) fn remove(&self, collection: &str, name: &str) {
        let mut state = self.state();
        let key = (collection.to_owned(), format!("default/{name}"));
        let object = state.objects.remove(&key).unwrap();
        state.change(collection, "DELETED", object);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Ends all watches; what happened before is forgotten.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.era += 1;
        state.forgotten = state.version;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Goes away, or comes back.
    pub(crate) fn set_away(&self, is_away: bool) {
        let mut state = self.state();
        state.is_away = is_away;
        state.era += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Answers no patch any more.
    pub(crate) fn get_stuck(&self) {
        self.state().is_stuck = true;
    }

    /// An object; null if it is not there.
    pub(crate) fn object(&self, collection: &str, name: &str) -> Value {
        let is_wide = CLUSTER_WIDE.contains(&collection);
        let namespace = if is_wide { "" } else { "default" };
        let key = (collection.to_owned(), format!("{namespace}/{name}"));
        self.state().objects.get(&key).cloned().unwrap_or_default()
    }

    /// The objects of a collection.
    pub(crate) fn objects(&self, collection: &str) -> Vec<Value> {
        let state = self.state();
        let own = state.objects.iter().filter(|((of, _), _)| of == collection);
        own.map(|(_, object)| object.clone()).collect()
    }

    /// Gives an object a status, as others than the controller do.
    pub(crate) fn set_status(&self, collection: &str, object: &Value, status: Value) {
        let mut object = object.clone();
        object["status"] = status;
        let row = COLLECTIONS.iter().find(|row| row.2 == collection).unwrap();
        self.state().put(collection, object, row.1);
        self.shared.changed.notify_all();
    }

    /// The events that were written: the names of their objects, and their notes.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let state = self.state();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = state.events.iter();
        let told = events.map(|event| (text(&event["regarding"]["name"]), text(&event["note"])));
        told.collect()
    }

    /// The notes of the events that were written.
    pub(crate) fn notes(&self) -> Vec<String> {
        let state = self.state();
        let notes = state
            .events
            .iter()
            .filter_map(|event| event["note"].as_str());
        notes.map(str::to_owned).collect()
    }
}

impl State {
    fn put(&mut self, collection: &str, mut object: Value, api: &str) -> Value {
        let metadata = &mut object["metadata"];
        let is_namespaced = !CLUSTER_WIDE.contains(&collection);
        if is_namespaced && metadata["namespace"].is_null() {
            metadata["namespace"] = "default".into();
        }
        metadata["uid"] = metadata["name"].clone();
        let place = |name: &str| {
            object["metadata"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let key = (
            collection.to_owned(),
            format!("{}/{}", place("namespace"), place("name")),
        );
        object["apiVersion"] = api.into();
        let kind = if self.objects.contains_key(&key) {
            "MODIFIED"
        } else {
            "ADDED"
        };
        object["metadata"]["resourceVersion"] = (self.version + 1).to_string().into();
        self.objects.insert(key, object.clone());
        self.change(collection, kind, object.clone());
        object
    }

    fn change(&mut self, collection: &str, kind: &'static str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.changes
            .push((self.version, collection.to_owned(), kind, object));
    }
}

/// A request: method, path, query, body.
struct Request {
    method: String,
    path: Vec<String>,
    query: String,
    body: Value,
}

impl Request {
    fn is_of_status(&self) -> bool {
        self.path.last().is_some_and(|last| last == "status")
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream
        .read_line(&mut line)
        .ok()
        .filter(|count| *count > 0)?;
    let mut length = 0;
    loop {
        let mut field = String::new();
        stream.read_line(&mut field).ok()?;
        let field = field.trim().to_ascii_lowercase();
        if field.is_empty() {
            break;
        }
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request {
        method,
        path: path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
        query: query.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn serve(stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        if shared.state.lock().unwrap().is_away {
            return None;
        }
        let parts: Vec<&str> = request.path.iter().map(String::as_str).collect();
        // The version of the API has one part or two.
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let (collection, name) = match rest {
            [collection] => (*collection, ""),
            [collection, name, ..] => (*collection, *name),
            [] => return None,
        };
        if request.method == "PATCH" && shared.state.lock().unwrap().is_stuck {
            continue; // the client waits for an answer
        }
        if request.query.contains("watch=true") {
            return follow(stream.get_mut(), shared, collection, &request.query);
        }
        let (status, answer) = handle(shared, &request, collection, namespace, name);
        let text = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            text.len()
        );
        stream.get_mut().write_all((head + &text).as_bytes()).ok()?;
    }
    Some(())
}

fn handle(
    shared: &Shared,
    request: &Request,
    collection: &str,
    namespace: &str,
    name: &str,
) -> (u16, Value) {
    let mut state = shared.state.lock().unwrap();
    let row = COLLECTIONS
        .iter()
        .find(|(_, _, known)| *known == collection);
    let (kind, api) = row.map_or(("Event", "events.k8s.io/v1"), |(kind, api, _)| {
        (*kind, *api)
    });
    let key = (collection.to_owned(), format!("{namespace}/{name}"));
    let old = state.objects.get(&key).cloned();
    let answer = match (request.method.as_str(), old) {
        ("POST", _) if kind == "Event" => {
            state.events.push(request.body.clone());
            (201, request.body.clone())
        }
        ("GET", _) if name.is_empty() => {
            let range = (collection.to_owned(), String::new())..;
            let objects = state.objects.range(range);
            let own = objects.take_while(|((other, _), _)| other == collection);
            let items: Vec<&Value> = own.map(|(_, object)| object).collect();
            let metadata = json!({"resourceVersion": state.version.to_string()});
            let list = json!({
                "kind": format!("{kind}List"),
                "apiVersion": api,
                "items": items,
                "metadata": metadata,
            });
            (200, list)
        }
        ("GET", Some(object)) => (200, object),
        ("POST", _) => (201, state.put(collection, request.body.clone(), api)),
        ("PUT", Some(_)) => (200, state.put(collection, request.body.clone(), api)),
        // Only Services are applied as a whole.
        ("PATCH", old) if collection == "services" && !request.is_of_status() => {
            let mut object = request.body.clone();
            object["status"] = old.unwrap_or_default()["status"].clone();
            (200, state.put(collection, object, api))
        }
        ("PATCH", Some(mut object)) => {
            object["status"] = request.body["status"].clone();
            (200, state.put(collection, object, api))
        }
        ("DELETE", Some(object)) => {
            state.objects.remove(&key);
            state.change(collection, "DELETED", object.clone());
            (200, object)
        }
        _ => (404, status(404, "NotFound")),
    };
    drop(state);
    shared.changed.notify_all();
    answer
}

/// Tells the changes of a collection, line by line.
fn follow(stream: &mut TcpStream, shared: &Shared, collection: &str, query: &str) -> Option<()> {
    let mut parameters = query.split('&').filter_map(|part| part.split_once('='));
    let from = parameters.find(|(name, _)| *name == "resourceVersion");
    let mut from: u64 = from.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let mut state = shared.state.lock().unwrap();
    let era = state.era;
    if from < state.forgotten {
        let gone = json!({"type": "ERROR", "object": status(410, "Expired")});
        return stream.write_all(format!("{gone}\n").as_bytes()).ok();
    }
    while state.era == era {
        let new: Vec<_> = state
            .changes
            .iter()
            .filter(|(version, ..)| *version > from)
            .cloned()
            .collect();
        for (version, of, kind, object) in new {
            from = version;
            if of == collection {
                let line = json!({"type": kind, "object": object});
                stream.write_all(format!("{line}\n").as_bytes()).ok()?;
            }
        }
        state = shared.changed.wait_timeout(state, LOOK).unwrap().0;
    }
    Some(())
}

/// An answer of the API server about a request that fails.
fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": reason,
    })
}

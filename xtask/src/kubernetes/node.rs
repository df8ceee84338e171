//! A test kubelet: one node, whose pods are processes in network and mount namespaces of their own,
//! joined by a bridge. It knows the few programs that tests run, by the names of their images.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::cluster::Cluster;
use crate::workspace::{elements, must, output, text};

/// The name of the node.
const NODE: &str = "node";

/// The bridge that joins the pods, the controller and the API server.
pub(super) const BRIDGE: &str = "cluster0";

/// The port on which the API server asks for logs of pods.
const LOG_PORT: u16 = 10250;

/// The most pods that have run: each has an address that no other had, below 10.99.0.0/16.
const PODS_MAX: u32 = 60_000;

/// The server of logs: the paths that the API server asks for are files.
const LOG_SERVER: &str = "\
error_log stderr;
pid logs.pid;
control off;
events {}
http {
    access_log off;
    server {
        listen 10250 ssl;
        ssl_certificate node.pem;
        ssl_certificate_key node.key;
        root pods;
        default_type text/plain;
    }
}
";

/// The node with its pods.
pub(super) struct Node {
    /// The programs by a part of their images' names.
    programs: Vec<(&'static str, PathBuf)>,
    folder: PathBuf,
    /// By their numbers in the cluster.
    pods: BTreeMap<String, Pod>,
    count: u32,
}

/// A file of a volume.
struct VolumeFile {
    /// Where the volume is in the pod.
    folder: String,
    name: String,
    content: Vec<u8>,
}

/// A pod that runs; it ends with its value.
struct Pod {
    child: Child,
    address: String,
    is_ready: bool,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

impl Node {
    /// A node without pods, which the cluster knows.
    ///
    /// # Errors
    /// The API server's words, or the server of logs does not start.
    pub(super) fn join(
        cluster: &mut Cluster,
        programs: Vec<(&'static str, PathBuf)>,
    ) -> Result<Node, String> {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
        cluster.apply(&node, false)?;
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": super::cluster::ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": LOG_PORT}},
        }});
        cluster.merge(&format!("/api/v1/nodes/{NODE}/status"), &status)?;
        serve_logs(cluster)?;
        Ok(Node {
            programs,
            folder: cluster.folder().join("pods"),
            pods: BTreeMap::new(),
            count: 0,
        })
    }

    /// Starts pods that are new, tells of those that serve, and ends those that are to go.
    ///
    /// # Errors
    /// A program does not start, or the API server does not answer.
    pub(super) fn turn(&mut self, cluster: &Cluster) -> Result<(), String> {
        let listed = cluster.read("/api/v1/pods")?;
        let pods = elements(&listed, "items");
        let known = |uid: &String| pods.iter().any(|pod| text(&pod["metadata"], "uid") == uid);
        self.pods.retain(|uid, _| known(uid));
        for pod in pods {
            let uid = text(&pod["metadata"], "uid").to_owned();
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                self.pods.remove(&uid);
                cluster.delete(&format!("{}?gracePeriodSeconds=0", path(pod)))?;
            } else if let Some(running) = self.pods.get_mut(&uid) {
                if !running.is_ready && is_listening(running.child.id()) {
                    running.is_ready = true;
                    let status = json!({"status": status(pod, &running.address)});
                    cluster.merge(&format!("{}/status", path(pod)), &status)?;
                }
            } else if let Some(volumes) = volumes(cluster, pod)? {
                let started = self.start(pod, &volumes)?;
                self.pods.insert(uid, started);
                if text(&pod["spec"], "nodeName").is_empty() {
                    bind(cluster, pod)?;
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, pod: &Value, volumes: &[VolumeFile]) -> Result<Pod, String> {
        self.count += 1;
        let count = self.count;
        if count > PODS_MAX {
            return Err("more pods than addresses".to_owned());
        }
        let metadata = &pod["metadata"];
        let name = format!("{}_{}", text(metadata, "namespace"), text(metadata, "name"));
        let container = &pod["spec"]["containers"][0];
        let image = text(container, "image");
        let mut programs = self.programs.iter();
        let program = programs.find(|(part, _)| image.contains(part));
        let (_, program) = program.ok_or_else(|| format!("no program is known for {image}"))?;
        let layers = layers(&self.folder.join(&name), volumes)?;
        let log = log_of(&self.folder, metadata, text(container, "name"))?;
        let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = log.try_clone().map_err(|error| error.to_string())?;
        let arguments = elements(container, "args").iter().filter_map(Value::as_str);
        let child = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-e", "-c"])
            // The program starts once its address is there.
            .arg(format!(
                "{layers}until ip -4 addr show eth0 2>&1 | grep -q inet; do sleep 0.02; done; \
                 exec \"$@\""
            ))
            .arg("pod")
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(variables(container, metadata))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(copy)
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let address = format!("10.99.{}.{}", 1 + count / 250, 1 + count % 250);
        let started = Pod {
            child,
            address,
            is_ready: false,
        };
        connect(&started, count)?;
        Ok(started)
    }
}

/// Starts the server of logs, for whose certificate the API server does not ask.
fn serve_logs(cluster: &mut Cluster) -> Result<(), String> {
    let folder = cluster.folder().to_path_buf();
    let pods = folder.join("pods");
    std::fs::create_dir_all(&pods).map_err(|error| format!("{}: {error}", pods.display()))?;
    must(
        Command::new("openssl")
            .current_dir(&folder)
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=node",
            ])
            .args(["-keyout", "node.key", "-out", "node.pem"])
            .stderr(Stdio::null()),
    )?;
    let file = folder.join("logs.conf");
    std::fs::write(&file, LOG_SERVER).map_err(|error| format!("{}: {error}", file.display()))?;
    let program = crate::workspace::target().join("debug/turnpike");
    let mut server = Command::new(program);
    server.arg("-p").arg(&folder).arg("-c").arg(&file);
    cluster.spawn(server.args(["-g", "daemon off; user root;"]), "logs")
}

/// The file of a container's log, which is where the API server asks for it.
fn log_of(folder: &Path, metadata: &Value, container: &str) -> Result<PathBuf, String> {
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    let folder = folder.join("containerLogs").join(namespace).join(name);
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.join(container))
}

/// Gives a pod its address on the bridge.
fn connect(pod: &Pod, count: u32) -> Result<(), String> {
    let pid = pod.child.id();
    // `unshare` enters the namespace before it is the shell, so look until it has.
    let own = std::fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
    let entered = turnpike_testkit::wait_for(|| {
        let theirs = std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        (theirs != own).then_some(())
    });
    entered.ok_or_else(|| format!("pod {count} has no network namespace"))?;
    let outer = format!("pod{count}");
    let pid = pid.to_string();
    ip(&[
        "link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", &pid,
    ])?;
    ip(&["link", "set", &outer, "master", BRIDGE, "up"])?;
    let inside = |words: &[&str]| {
        let mut enter = Command::new("nsenter");
        must(enter.args(["-t", &pid, "-n", "ip"]).args(words))
    };
    inside(&["link", "set", "lo", "up"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["addr", "add", &format!("{}/16", pod.address), "dev", "eth0"])?;
    inside(&["route", "add", "default", "via", super::cluster::ADDRESS])
}

/// Runs `ip`.
///
/// # Errors
/// It fails.
pub(super) fn ip(words: &[&str]) -> Result<(), String> {
    must(Command::new("ip").args(words))
}

/// The variables of a container. Fields of the pod are its name and its namespace.
fn variables(container: &Value, metadata: &Value) -> Vec<(String, String)> {
    let rows = elements(container, "env").iter();
    rows.map(|row| {
        let field = text(&row["valueFrom"]["fieldRef"], "fieldPath");
        let value = match field.strip_prefix("metadata.") {
            Some(field) => text(metadata, field),
            None => text(row, "value"),
        };
        (text(row, "name").to_owned(), value.to_owned())
    })
    .collect()
}

/// The files of a pod's volumes. None: an object that they are made of is not there yet.
fn volumes(cluster: &Cluster, pod: &Value) -> Result<Option<Vec<VolumeFile>>, String> {
    let namespace = text(&pod["metadata"], "namespace");
    let mut files = Vec::new();
    for mount in elements(&pod["spec"]["containers"][0], "volumeMounts") {
        let mut volumes = elements(&pod["spec"], "volumes").iter();
        let volume = volumes.find(|volume| volume["name"] == mount["name"]);
        let volume = volume.unwrap_or(&Value::Null);
        let (collection, name, items) = if volume["secret"].is_null() {
            let source = &volume["configMap"];
            ("configmaps", text(source, "name"), &source["items"])
        } else {
            let source = &volume["secret"];
            ("secrets", text(source, "secretName"), &source["items"])
        };
        let path = format!("/api/v1/namespaces/{namespace}/{collection}/{name}");
        let object = cluster.read(&path)?;
        let Some(data) = object["data"].as_object() else {
            return Ok(None);
        };
        let folder = text(mount, "mountPath");
        for (key, value) in data {
            let mut items = items.as_array().into_iter().flatten();
            let item = items.find(|item| text(item, "key") == key);
            let file = item.map_or(key.as_str(), |item| text(item, "path"));
            let value = value.as_str().unwrap_or_default();
            let content = if collection == "secrets" {
                decoded(value)?
            } else {
                value.as_bytes().to_vec()
            };
            files.push(VolumeFile {
                folder: folder.to_owned(),
                name: file.to_owned(),
                content,
            });
        }
    }
    Ok(Some(files))
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut decoder = Command::new("base64");
    let decoder = decoder
        .arg("-d")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = decoder
        .spawn()
        .map_err(|error| format!("base64: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        let written = std::io::Write::write_all(&mut input, text.as_bytes());
        written.map_err(|error| format!("base64: {error}"))?;
    }
    let done = child.wait_with_output();
    done.map(|done| done.stdout)
        .map_err(|error| format!("base64: {error}"))
}

/// Writes the files of volumes, and returns the commands that lay them over the machine's folders
/// in the pod's mount namespace.
fn layers(folder: &Path, volumes: &[VolumeFile]) -> Result<String, String> {
    let mut commands: Vec<String> = Vec::new();
    for volume in volumes {
        let mut parts = volume.folder.trim_start_matches('/').splitn(2, '/');
        let top = parts.next().unwrap_or_default();
        let upper = folder.join(top).join("upper");
        let target = upper.join(parts.next().unwrap_or_default());
        let work = folder.join(top).join("work");
        for made in [&target, &work] {
            let created = std::fs::create_dir_all(made);
            created.map_err(|error| format!("{}: {error}", made.display()))?;
        }
        let file = target.join(&volume.name);
        let written = std::fs::write(&file, &volume.content);
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        let (upper, work) = (upper.display(), work.display());
        let command = format!(
            "mount -t overlay overlay -o lowerdir=/{top},upperdir={upper},workdir={work} /{top}; "
        );
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    Ok(commands.concat())
}

/// Whether a process listens on a port of TCP, or has one of UDP.
fn is_listening(pid: u32) -> bool {
    let rows = |table: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"));
        text.unwrap_or_default()
    };
    let listens = |table: &str| rows(table).lines().any(|row| row.contains(" 0A "));
    let has = |table: &str| rows(table).lines().count() > 1;
    ["tcp", "tcp6"].into_iter().any(listens) || ["udp", "udp6"].into_iter().any(has)
}

fn path(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// Says that a pod is this node's.
fn bind(cluster: &Cluster, pod: &Value) -> Result<(), String> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod["metadata"]["name"]},
        "target": {"kind": "Node", "name": NODE},
    });
    cluster.create(&format!("{}/binding", path(pod)), &binding)
}

fn status(pod: &Value, address: &str) -> Value {
    let now = output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]));
    let now = now.unwrap_or_default().trim().to_owned();
    let kinds = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let conditions =
        kinds.map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": now}));
    let container = &pod["spec"]["containers"][0];
    json!({
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": super::cluster::ADDRESS,
        "startTime": now,
        "conditions": conditions,
        "containerStatuses": [{
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": true,
            "started": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }],
    })
}

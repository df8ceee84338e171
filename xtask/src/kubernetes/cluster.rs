//! A cluster without nodes: Kubernetes' own API server, with etcd, and curl that speaks to it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use turnpike_testkit::{Folder, Signal, process, wait_for};

use crate::go_program;
use crate::workspace::{must, output};

/// The folder and the packages of the API server, and of what makes pods and endpoints.
const SOURCE: &str = "kubernetes/cluster";
const API_SERVER: &str = "k8s.io/kubernetes/cmd/kube-apiserver";
const MANAGER: &str = "k8s.io/kubernetes/cmd/kube-controller-manager";

/// The parts of the manager that tests need.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,endpointslice-controller,\
    namespace-controller,garbage-collector-controller";

/// The address of the cluster, in a network namespace of its own. The API server refuses endpoints
/// on 127.0.0.0/8.
pub(super) const ADDRESS: &str = "10.99.0.1";

const PORT: u16 = 6443;
const ETCD: &str = "http://127.0.0.1:2379";

/// The administrator's token, and that of the controller's own account.
const ADMINISTRATOR: &str = "token-of-administrator";
const CONTROLLER: &str = "token-of-controller";

/// The tokens, with the account, its number and its groups.
const TOKENS: &str = "\
token-of-administrator,admin,1,system:masters
token-of-controller,system:serviceaccount:turnpike-ingress:turnpike-ingress,2,system:serviceaccounts
";

/// The programs of a cluster.
pub(super) struct Programs {
    api_server: PathBuf,
    manager: PathBuf,
}

/// Builds them, where that was not done.
///
/// # Errors
/// Those of Go.
pub(super) fn build() -> Result<Programs, String> {
    Ok(Programs {
        api_server: go_program::build(SOURCE, API_SERVER)?,
        manager: go_program::build(SOURCE, MANAGER)?,
    })
}

/// A running cluster; it ends with its value.
pub(super) struct Cluster {
    folder: Folder,
    programs: Vec<Child>,
}

impl Cluster {
    /// Starts it.
    ///
    /// # Errors
    /// A program is missing, or the API server does not become ready.
    pub(super) fn start() -> Result<Cluster, String> {
        let built = build()?;
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let write = |name: &str, text: &str| {
            let written = folder.write(name, text);
            written.map_err(|error| format!("{name}: {error}"))
        };
        write("tokens.csv", TOKENS)?;
        write("controller.yaml", &kubeconfig(CONTROLLER))?;
        write("administrator.yaml", &kubeconfig(ADMINISTRATOR))?;
        let key = folder.path().join("accounts.pem");
        must(
            Command::new("openssl")
                .args(["genrsa", "-out"])
                .arg(&key)
                .arg("2048")
                .stderr(Stdio::null()),
        )?;
        let mut cluster = Cluster {
            folder,
            programs: Vec::new(),
        };
        cluster.spawn(
            Command::new("etcd")
                .arg(format!("--listen-client-urls={ETCD}"))
                .arg(format!("--advertise-client-urls={ETCD}"))
                .args(["--data-dir=etcd", "--log-level=error"]),
            "etcd",
        )?;
        cluster.spawn(
            Command::new(built.api_server)
                .arg(format!("--etcd-servers={ETCD}"))
                .arg(format!("--bind-address={ADDRESS}"))
                .arg(format!("--secure-port={PORT}"))
                .args(["--cert-dir=certificates", "--token-auth-file=tokens.csv"])
                .args([
                    "--authorization-mode=RBAC",
                    "--service-cluster-ip-range=10.96.0.0/16",
                ])
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .args(["--service-account-key-file=accounts.pem"])
                .args(["--service-account-signing-key-file=accounts.pem"])
                .arg("--kubelet-preferred-address-types=InternalIP")
                // Nothing here makes accounts for namespaces.
                .arg("--disable-admission-plugins=ServiceAccount")
                // Webhooks are called at their endpoints: nothing here is a Service's address.
                .arg("--enable-aggregator-routing=true"),
            "apiserver",
        )?;
        let ready = wait_for(|| (cluster.get("/readyz").ok()? == "ok").then_some(()));
        ready.ok_or_else(|| {
            let log = cluster.folder.read("apiserver.log");
            format!("the API server does not become ready:\n{log}")
        })?;
        cluster.spawn(
            Command::new(built.manager)
                .args(["--kubeconfig=administrator.yaml", "--leader-elect=false"])
                .arg(format!("--controllers={CONTROLLERS}"))
                .arg("--service-account-private-key-file=accounts.pem"),
            "manager",
        )?;
        Ok(cluster)
    }

    /// Starts a program in the cluster's folder; it ends with the cluster.
    pub(super) fn spawn(&mut self, command: &mut Command, name: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let log = self.create_log(name)?;
        let child = command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        self.programs.push(child);
        Ok(())
    }

    /// Makes the log of a program.
    ///
    /// # Errors
    /// The system's words.
    pub(super) fn create_log(&self, name: &str) -> Result<File, String> {
        let path = self.folder.path().join(format!("{name}.log"));
        File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The folder of the programs, which has the kubeconfigs of the controller and of the
    /// administrator.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log of a program.
    pub(super) fn log(&self, name: &str) -> String {
        self.folder.read(format!("{name}.log"))
    }

    /// What a path of the API server answers.
    ///
    /// # Errors
    /// curl's words.
    pub(super) fn get(&self, path: &str) -> Result<String, String> {
        output(&mut curl(path))
    }

    /// What a path of the API server answers, as an object.
    ///
    /// # Errors
    /// curl's words, or the answer is no JSON.
    pub(super) fn read(&self, path: &str) -> Result<Value, String> {
        let answer = self.get(path)?;
        serde_json::from_str(&answer).map_err(|error| format!("{path}: {error}: {answer}"))
    }

    /// Changes the fields of an object; one that has gone meanwhile stays as it is.
    ///
    /// # Errors
    /// curl's words.
    pub(super) fn merge(&self, path: &str, fields: &Value) -> Result<(), String> {
        let kind = "Content-Type: application/merge-patch+json";
        let mut command = curl(path);
        let command = command.args(["-X", "PATCH", "-H", kind]);
        output(command.args(["--data-binary", &fields.to_string()])).map(drop)
    }

    /// Makes an object at a path.
    ///
    /// # Errors
    /// curl's words.
    pub(super) fn create(&self, path: &str, object: &Value) -> Result<(), String> {
        let mut command = curl(path);
        let command = command.args(["-X", "POST", "-H", "Content-Type: application/json"]);
        output(command.args(["--data-binary", &object.to_string()])).map(drop)
    }

    /// Removes what is at a path, if it is there.
    ///
    /// # Errors
    /// curl's words.
    pub(super) fn delete(&self, path: &str) -> Result<(), String> {
        output(curl(path).args(["-X", "DELETE"])).map(drop)
    }

    /// Applies an object as `kubectl apply --server-side` does, or only asks whether it could be.
    ///
    /// # Errors
    /// What the API server says against it, or the kind is not known here.
    pub(super) fn apply(&self, object: &Value, is_dry: bool) -> Result<(), String> {
        let path = path_of(object)?;
        let dry = if is_dry { "&dryRun=All" } else { "" };
        let mut command = curl(&format!("{path}?fieldManager=xtask&force=true{dry}"));
        let answer = output_of(
            command
                .args([
                    "-X",
                    "PATCH",
                    "-H",
                    "Content-Type: application/apply-patch+yaml",
                ])
                .args(["--data-binary", "@-"]),
            &object.to_string(),
        )?;
        let answer: Value =
            serde_json::from_str(&answer).map_err(|error| format!("{path}: {error}: {answer}"))?;
        if answer["kind"] == "Status" {
            return Err(format!("{path}: {}", answer["message"]));
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            process::signal(program.id(), Signal::SIGTERM);
            let ended = wait_for(|| program.try_wait().ok().flatten());
            if ended.is_none() {
                let _ = program.kill(); // it may have ended meanwhile
            }
        }
    }
}

/// What a program says to an input: a definition is longer than an argument may be.
fn output_of(command: &mut Command, input: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("curl: {error}");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes()).map_err(failed)?;
    }
    let done = child.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        return Err(format!("curl ended with {}", done.status));
    }
    String::from_utf8(done.stdout).map_err(|error| format!("curl: {error}"))
}

fn curl(path: &str) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-k", "--max-time", "20", "-H"])
        .arg(format!("Authorization: Bearer {ADMINISTRATOR}"))
        .arg(format!("https://{ADDRESS}:{PORT}{path}"));
    curl
}

/// How an account reaches the API server.
fn kubeconfig(token: &str) -> String {
    let server = format!("https://{ADDRESS}:{PORT}");
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{
            "name": "it",
            "cluster": {"server": server, "insecure-skip-tls-verify": true},
        }],
        "users": [{"name": "it", "user": {"token": token}}],
    });
    text.to_string()
}

/// The collections of kinds.
const COLLECTIONS: &[(&str, &str)] = &[
    ("ClusterRole", "clusterroles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("ConfigMap", "configmaps"),
    ("CustomResourceDefinition", "customresourcedefinitions"),
    ("Deployment", "deployments"),
    ("EndpointSlice", "endpointslices"),
    ("GatewayClass", "gatewayclasses"),
    ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("Ingress", "ingresses"),
    ("IngressClass", "ingressclasses"),
    ("Namespace", "namespaces"),
    ("Node", "nodes"),
    ("PodDisruptionBudget", "poddisruptionbudgets"),
    ("Role", "roles"),
    ("RoleBinding", "rolebindings"),
    ("Service", "services"),
    ("ServiceAccount", "serviceaccounts"),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
];

fn path_of(object: &Value) -> Result<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]);
    let row = COLLECTIONS.iter().find(|(known, _)| *known == kind);
    let (_, collection) = row.ok_or_else(|| format!("nobody knows the collection of a {kind}"))?;
    let version = text(&object["apiVersion"]);
    let group = if version.contains('/') { "apis" } else { "api" };
    let namespace = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/namespaces/{namespace}"),
        None => String::new(),
    };
    let name = text(&object["metadata"]["name"]);
    Ok(format!("/{group}/{version}{namespace}/{collection}/{name}"))
}

//! The controller: it watches a cluster, keeps the server beside it at what the objects say, and
//! reports to the cluster.
//!
//! The API server may be slow, away or restarted: what is in force stays in force. Watches and
//! reports live on one thread; rendering, checks and the server's commands on another.

mod apply;
mod gateways;
mod health;
mod latest;
mod lease;
mod report;
mod store;
mod webhook;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use turnpike_agent::{Control, ControlError};

use crate::options::Options;

pub(crate) use apply::Report;

use apply::Applier;
use health::Figures;
use latest::Latest;
use lease::Leadership;
use report::Reporter;
use store::{Change, Store};

/// How long no object must change before a configuration is made: a rollout changes several at
/// once.
const QUIET: Duration = Duration::from_millis(30);

/// How long a server that has begun to serve may be without its control socket.
const SOCKET_PATIENCE: Duration = Duration::from_secs(10);

/// How long changes may wait for quiet.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// The changes that may wait for the loop: watches stop reading beyond that.
const CHANGES_MAX: usize = 1024;

/// How the controller reaches the cluster and the server.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub options: Options,
    /// The address of the API server; none: the pod's own, or that of the kubeconfig.
    pub api_server: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    /// The server's program.
    pub program: PathBuf,
    /// The folder of the main file, the control socket and the groups' states. It should outlive
    /// the container.
    pub folder: PathBuf,
    /// Where probes and metrics are served.
    pub health_address: String,
    /// The name of the Lease; none: every controller writes status.
    pub lease: Option<String>,
    pub lease_s: u32,
    /// The namespace of the Lease and of this pod's own objects.
    pub namespace: String,
    /// The name of this pod.
    pub identity: String,
    /// Addresses for the status of Ingresses; if there are none, those of the Service.
    pub status_addresses: Vec<String>,
    /// `namespace/name` of the Service in front of the controller.
    pub status_service: Option<String>,
    pub writes_status: bool,
    /// Whether events are written.
    pub writes_events: bool,
}

/// Runs the controller; it ends if the server it started ends.
///
/// # Errors
/// The cluster or the server cannot be reached at all, or the server has ended.
pub fn run(cluster: Cluster) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(control(cluster))
}

async fn control(cluster: Cluster) -> Result<(), String> {
    let client = client(&cluster).await?;
    let figures = Figures::default();
    health::serve(&cluster.health_address, figures.clone()).await?;
    let (changes, mut changed) = mpsc::channel::<Change>(CHANGES_MAX);
    store::watch_all(&client, cluster.options.namespace.as_deref(), &changes);
    let snapshots = Arc::new(Latest::new());
    let taken = Arc::clone(&snapshots);
    let (reports, reported) = watch::channel(None);
    let applier = Applier::new(&cluster, figures.clone(), reports)?;
    std::thread::Builder::new()
        .name("apply".to_owned())
        .spawn(move || applier.work(&taken))
        .map_err(|error| format!("no thread: {error}"))?;
    let store = Arc::<Mutex<Store>>::default();
    webhook::serve(&client, &cluster, &figures, &store).await?;
    let mut reporting = tokio::spawn(report(client, cluster.clone(), figures.clone(), reported));
    let mut ending =
        signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    let mut waiting: Option<(Instant, Instant)> = None; // until quiet, and at the latest
    loop {
        let until = waiting.map(|(quiet, latest)| quiet.min(latest));
        tokio::select! {
            change = changed.recv() => {
                let Some(change) = change else { return Err("all watches have ended".to_owned()) };
                locked(&store)?.apply(change);
                let now = Instant::now();
                let latest = waiting.map_or(now + WAIT_MAX, |(_, latest)| latest);
                waiting = Some((now + QUIET, latest));
            }
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                waiting = None;
                let store = locked(&store)?;
                if store.is_complete() {
                    figures.note_synced();
                    snapshots.put(Arc::new(store.objects.clone()));
                }
            }
            ended = &mut reporting => {
                return Err(ended.unwrap_or_else(|error| format!("reports: {error}")));
            }
            _ = ending.recv() => return end(&cluster),
        }
    }
}

/// The objects; a review that failed may have left them in parts, which must not be served.
fn locked(store: &Mutex<Store>) -> Result<MutexGuard<'_, Store>, String> {
    let locked = store.lock();
    locked.map_err(|_| "a review of the admission webhook has failed".to_owned())
}

/// Writes reports and holds the Lease until the server has ended, and returns why. An API server
/// that is slow to take them delays nothing else, and gets the newest then.
async fn report(
    client: Client,
    cluster: Cluster,
    figures: Figures,
    mut reported: watch::Receiver<Option<Report>>,
) -> String {
    let mut reporter = Reporter::new(client.clone(), &cluster);
    let mut leadership = Leadership::new(client, &cluster);
    let mut turn = tokio::time::interval(leadership.period());
    loop {
        tokio::select! {
            changed = reported.changed() => {
                if changed.is_err() {
                    return "the thread that applies has ended".to_owned();
                }
                let newest = reported.borrow_and_update().clone();
                match newest {
                    Some(Report::Ended(text)) => return text,
                    Some(report) => reporter.take(report, leadership.is_ours()).await,
                    None => {}
                }
            }
            _ = turn.tick() => {
                leadership.renew().await;
                figures.note_leader(leadership.is_ours());
                if leadership.is_ours() {
                    reporter.write().await; // also what has failed before
                }
            }
        }
    }
}

/// Ends the server as a rollout wants it: it takes no more connections and ends its requests.
fn end(cluster: &Cluster) -> Result<(), String> {
    let drained = control_socket(&cluster.folder.join("control"))
        .and_then(|mut control| control.ask("drain", serde_json::json!({})));
    let pid = cluster.folder.join("pid");
    match drained {
        Ok(_) => {
            while pid.exists() {
                std::thread::sleep(QUIET); // as long as worker-shutdown-timeout
            }
            Ok(())
        }
        Err(error) => Err(format!("the server does not drain: {error}")),
    }
}

/// The server's control socket, which comes a moment after the server begins to serve.
fn control_socket(path: &Path) -> Result<Control, ControlError> {
    let begun = Instant::now();
    loop {
        match Control::connect(path) {
            Err(_) if begun.elapsed() < SOCKET_PATIENCE => std::thread::sleep(QUIET),
            connected => return connected,
        }
    }
}

async fn client(cluster: &Cluster) -> Result<Client, String> {
    let config = match (&cluster.api_server, &cluster.kubeconfig) {
        (Some(address), None) => {
            let address = address
                .parse()
                .map_err(|error| format!("{address}: {error}"))?;
            kube::Config::new(address)
        }
        (_, Some(path)) => {
            let read = kube::config::Kubeconfig::read_from(path);
            let read = read.map_err(|error| format!("{}: {error}", path.display()))?;
            let options = kube::config::KubeConfigOptions::default();
            kube::Config::from_custom_kubeconfig(read, &options)
                .await
                .map_err(|error| format!("{}: {error}", path.display()))?
        }
        (None, None) => kube::Config::infer()
            .await
            .map_err(|error| format!("no API server is known: {error}"))?,
    };
    Client::try_from(config).map_err(|error| format!("no client of the API server: {error}"))
}

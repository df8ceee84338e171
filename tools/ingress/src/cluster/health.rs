//! Probes and metrics of the controller: `/healthz` and `/metrics`, in ingress-nginx's names.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The longest head of a request for a probe.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// How long a client may take for its request and for taking the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// What the controller counts.
#[derive(Clone, Default)]
pub(super) struct Figures(Arc<Counts>);

#[derive(Default)]
struct Counts {
    is_synced: AtomicBool,
    is_last_good: AtomicBool,
    has_applied: AtomicBool,
    is_leader: AtomicBool,
    successes: AtomicU64,
    errors: AtomicU64,
    reloads: AtomicU64,
    ingresses: AtomicU64,
    last_success_unix_s: AtomicU64,
}

impl Figures {
    /// Every kind of objects is known.
    pub(super) fn note_synced(&self) {
        self.0.is_synced.store(true, Relaxed);
    }

    /// A snapshot was applied, or was not.
    pub(super) fn note_applied(&self, is_good: bool, ingresses: usize) {
        let counts = &self.0;
        counts.is_last_good.store(is_good, Relaxed);
        if !is_good {
            counts.errors.fetch_add(1, Relaxed);
            return;
        }
        counts.has_applied.store(true, Relaxed);
        counts.successes.fetch_add(1, Relaxed);
        counts.ingresses.store(ingresses as u64, Relaxed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        counts.last_success_unix_s.store(now.as_secs(), Relaxed);
    }

    /// The server has read its configuration again.
    pub(super) fn note_reload(&self) {
        self.0.reloads.fetch_add(1, Relaxed);
    }

    /// Whether this controller writes status.
    pub(super) fn note_leader(&self, is_leader: bool) {
        self.0.is_leader.store(is_leader, Relaxed);
    }

    /// Whether this controller writes status now.
    pub(super) fn is_leader(&self) -> bool {
        self.0.is_leader.load(Relaxed)
    }

    /// Whether the pod may get requests: it stays so while the API server is away.
    fn is_healthy(&self) -> bool {
        self.0.has_applied.load(Relaxed)
    }

    fn metrics(&self) -> String {
        let counts = &self.0;
        let flag = |flag: &AtomicBool| u64::from(flag.load(Relaxed));
        let rows = [
            (
                "config_last_reload_successful",
                "gauge",
                flag(&counts.is_last_good),
            ),
            (
                "config_last_reload_successful_timestamp_seconds",
                "gauge",
                counts.last_success_unix_s.load(Relaxed),
            ),
            ("success", "counter", counts.successes.load(Relaxed)),
            ("errors", "counter", counts.errors.load(Relaxed)),
            ("reloads", "counter", counts.reloads.load(Relaxed)),
            ("leader_election_status", "gauge", flag(&counts.is_leader)),
            ("ingresses", "gauge", counts.ingresses.load(Relaxed)),
            ("synced", "gauge", flag(&counts.is_synced)),
        ];
        let mut text = String::new();
        for (name, kind, value) in rows {
            let name = format!("nginx_ingress_controller_{name}");
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}"); // a String takes it
        }
        text
    }
}

/// Serves probes and metrics.
///
/// # Errors
/// The address cannot be listened on.
pub(super) async fn serve(address: &str, figures: Figures) -> Result<(), String> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("{address}: {error}"))?;
    tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let figures = figures.clone();
                tokio::spawn(async move {
                    // A client that is slow or goes away has its answer lost, and nothing else.
                    let _ = timeout(CLIENT_TIMEOUT, answer(stream, &figures)).await;
                });
            } else {
                tokio::time::sleep(Duration::from_millis(100)).await; // no descriptors are left
            }
        }
    });
    Ok(())
}

async fn answer(mut stream: TcpStream, figures: &Figures) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match target {
        "/healthz" if figures.is_healthy() => ("200 OK", "ok\n".to_owned()),
        "/healthz" => (
            "503 Service Unavailable",
            "no configuration is applied yet\n".to_owned(),
        ),
        "/metrics" => ("200 OK", figures.metrics()),
        _ => (
            "404 Not Found",
            "there is /healthz and /metrics\n".to_owned(),
        ),
    };
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await
}

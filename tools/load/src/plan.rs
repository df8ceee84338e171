//! What the options mean together: the plan that every thread follows and none changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use turnpike_host::Host;

use crate::mix::Connreqs;
use crate::multiplexed::Protocol;
use crate::options::{ArrivalName, Options};
use crate::schedule::Arrival;
use crate::source::SourceRange;
use crate::target::{
    Endpoint, NamedRequest, RequestShape, TargetError, Targets, Url, read_pages, read_urls,
};
use crate::tls::{ALPN_HTTP2, TlsError, TlsPlan};

/// wrk's defaults.
const THREADS_DEFAULT: u64 = 2;
const CONNECTIONS_DEFAULT: u64 = 10;
const DURATION_DEFAULT: Duration = Duration::from_secs(10);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);
/// More threads than any machine has CPUs; a typing error is likelier.
const THREADS_MAX: u64 = 1024;
/// More connections than descriptors can be had.
const CONNECTIONS_MAX: u64 = 10_000_000;
/// Above this many bytes a request does not fit one segment, and Nagle's algorithm could hold
/// its last part back.
const SEGMENT_BYTES: usize = 1400;

/// What starts a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pacing {
    /// The answer to the one before.
    Closed,
    /// A schedule of requests per second.
    Requests(Arrival, f64),
    /// A schedule of connections per second.
    Connections(Arrival, f64),
}

/// Everything that is fixed before the run.
pub(crate) struct Plan {
    pub(crate) threads: usize,
    pub(crate) connections: usize,
    /// When to stop starting requests.
    pub(crate) duration: Option<Duration>,
    /// How many requests to start.
    pub(crate) requests: Option<u64>,
    pub(crate) start_rate: Option<f64>,
    pub(crate) warmup: Duration,
    pub(crate) timeout: Duration,
    pub(crate) pacing: Pacing,
    pub(crate) connreqs: Connreqs,
    /// Requests that a connection is given at once; where a schedule starts requests, those that
    /// it may have under way.
    pub(crate) pipeline: usize,
    pub(crate) protocol: Protocol,
    /// Whether connections end with their handshake.
    pub(crate) connect_only: bool,
    pub(crate) targets: Targets,
    pub(crate) socket: SocketPlan,
    /// Present when any target is https.
    pub(crate) tls: Option<TlsPlan>,
    pub(crate) expect_status: Option<u16>,
    pub(crate) expect_body: Option<Arc<Vec<u8>>>,
    /// CPUs to pin threads to, in turn; empty for no pinning.
    pub(crate) cpus: Vec<usize>,
    pub(crate) seed: u64,
    /// When the plan was made, in seconds since 1970.
    pub(crate) started_unix_s: u64,
    /// Whether the main thread wants to see histograms while the run goes on.
    pub(crate) live: bool,
}

/// What is done to every socket.
pub(crate) struct SocketPlan {
    pub(crate) no_delay: bool,
    pub(crate) fast_open: bool,
    pub(crate) linger0: bool,
    pub(crate) sources: Vec<SourceRange>,
    /// The ports from which the kernel chooses.
    pub(crate) ephemeral_ports: (u16, u16),
}

/// Why the options make no plan.
#[derive(Debug)]
pub(crate) enum PlanError {
    /// wrk's rule and words.
    FewerConnectionsThanThreads,
    /// A number of threads or connections that cannot be meant; with the most that is taken.
    Count(&'static str, u64),
    /// The method or a header would break the request.
    Request(String),
    /// The option whose share is outside 0 to 100.
    Percent(&'static str),
    /// The list after --bindcpu.
    Cpus,
    /// HTTP/2 is offered, and would not be spoken.
    OfferWithoutHttp2,
    /// Only connections with TLS have a handshake that shows when they are made.
    ConnectOnlyWithoutTls,
    /// HTTP/3 is always encrypted, and needs addresses of hosts.
    Http3WithoutTls,
    Target(TargetError),
    Tls(TlsError),
    File(PathBuf, std::io::Error),
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlanError::FewerConnectionsThanThreads => {
                formatter.write_str("number of connections must be >= threads")
            }
            PlanError::Count(what, most) => {
                write!(
                    formatter,
                    "number of {what} out of range: it is 1 to {most}"
                )
            }
            PlanError::Request(text) => write!(formatter, "not fit for a request: {text:?}"),
            PlanError::Percent(option) => write!(formatter, "{option} takes 0 to 100"),
            PlanError::Cpus => formatter.write_str("--bindcpu takes a list like 0,2-3"),
            PlanError::OfferWithoutHttp2 => formatter.write_str(
                "--alpn offers h2, but without --h2 the requests are HTTP/1.1: add --h2, or leave \
                 h2 out",
            ),
            PlanError::ConnectOnlyWithoutTls => {
                formatter.write_str("--connect-only takes https URLs only")
            }
            PlanError::Http3WithoutTls => formatter.write_str("--h3 takes https URLs only"),
            PlanError::Target(error) => error.fmt(formatter),
            PlanError::Tls(error) => error.fmt(formatter),
            PlanError::File(path, error) => {
                write!(formatter, "cannot read {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Requests that a connection may have under way.
    pub(crate) fn streams(&self) -> usize {
        if self.protocol.has_streams() {
            self.pipeline
        } else {
            1
        }
    }

    /// Whether requests of a schedule join others on a connection that is in use.
    pub(crate) fn joins(&self) -> bool {
        let is_scheduled = matches!(self.pacing, Pacing::Requests(..));
        is_scheduled && self.protocol.has_streams() && self.pipeline > 1 && !self.targets.in_order
    }

    /// Makes sense of the options; reads the files they name and resolves names.
    ///
    /// # Errors
    /// When they contradict each other or name what is not there.
    pub(crate) fn new(options: &Options) -> Result<Plan, PlanError> {
        offer(options)?;
        let (threads, connections) = counts(options)?;
        let shape = shape(options)?;
        let in_order = options.pages.is_some();
        let targets =
            Targets::build(&wishes(options)?, &shape, in_order).map_err(PlanError::Target)?;
        let tls = tls(options, &targets)?;
        let is_secure = targets.endpoints.iter().all(|endpoint| endpoint.tls);
        if options.connect_only && !is_secure {
            return Err(PlanError::ConnectOnlyWithoutTls);
        }
        let is_reached = |endpoint: &Endpoint| endpoint.tls && endpoint.tcp;
        if options.h3 && !targets.endpoints.iter().all(is_reached) {
            return Err(PlanError::Http3WithoutTls);
        }
        let long = targets
            .targets
            .iter()
            .any(|target| target.bytes.len() > SEGMENT_BYTES);
        let arrival = match options.arrival {
            ArrivalName::Constant => Arrival::Constant,
            ArrivalName::Poisson => Arrival::Poisson,
        };
        Ok(Plan {
            threads,
            connections,
            duration: options
                .duration
                .or(options.requests.is_none().then_some(DURATION_DEFAULT)),
            requests: options.requests,
            start_rate: options.start_rate,
            warmup: options.warmup.unwrap_or_default(),
            timeout: options.timeout.unwrap_or(TIMEOUT_DEFAULT),
            pacing: match (options.rate, options.connrate) {
                (Some(rate), _) => Pacing::Requests(arrival, rate),
                (None, Some(rate)) => Pacing::Connections(arrival, rate),
                (None, None) => Pacing::Closed,
            },
            connreqs: connreqs(options),
            pipeline: shape.pipeline,
            protocol: shape.protocol,
            connect_only: options.connect_only,
            targets,
            socket: SocketPlan {
                no_delay: long && !options.delay,
                fast_open: options.fastopen,
                linger0: options.linger0,
                sources: options.sources.clone(),
                ephemeral_ports: Host::here().ephemeral_ports(),
            },
            tls,
            expect_status: options.expect_status,
            expect_body: options
                .expect_body
                .as_deref()
                .map(read)
                .transpose()?
                .map(Arc::new),
            cpus: cpus(options)?,
            seed: options.seed,
            started_unix_s: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            live: options.live,
        })
    }
}

fn counts(options: &Options) -> Result<(usize, usize), PlanError> {
    let connections = options
        .connections
        .or(options.users)
        .unwrap_or(CONNECTIONS_DEFAULT);
    if connections == 0 || connections > CONNECTIONS_MAX {
        return Err(PlanError::Count("connections", CONNECTIONS_MAX));
    }
    let threads = options.threads.unwrap_or(THREADS_DEFAULT.min(connections));
    if threads == 0 || threads > THREADS_MAX {
        return Err(PlanError::Count("threads", THREADS_MAX));
    }
    if connections < threads {
        return Err(PlanError::FewerConnectionsThanThreads);
    }
    let narrow = |count| {
        let narrowed = usize::try_from(count);
        narrowed.map_err(|_| PlanError::Count("connections", CONNECTIONS_MAX))
    };
    Ok((narrow(threads)?, narrow(connections)?))
}

/// inject's users and a bare connection rate mean a new connection for each request.
fn connreqs(options: &Options) -> Connreqs {
    let single = options.users.is_some() || options.connrate.is_some();
    let default = if single {
        Connreqs::Fixed(1)
    } else {
        Connreqs::Unlimited
    };
    options.connreqs.clone().unwrap_or(default)
}

fn shape(options: &Options) -> Result<RequestShape, PlanError> {
    let body = options
        .body
        .as_deref()
        .map(read)
        .transpose()?
        .unwrap_or_default();
    let default = if options.body.is_some() {
        "POST"
    } else {
        "GET"
    };
    let method = options.method.clone().unwrap_or_else(|| default.to_owned());
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(PlanError::Request(method));
    }
    for line in &options.headers {
        let name = line.split_once(':').map_or("", |(name, _)| name.trim());
        if name.is_empty() || line.bytes().any(|byte| byte < b' ' && byte != b'\t') {
            return Err(PlanError::Request(line.clone()));
        }
    }
    Ok(RequestShape {
        method,
        headers: options.headers.clone(),
        body,
        credentials: options.auth.clone(),
        keep_alive: !options.no_keepalive,
        pipeline: usize::from(options.pipeline.max(options.streams).max(1)),
        protocol: match (options.h2, options.h3) {
            (_, true) => Protocol::Http3,
            (true, false) => Protocol::Http2,
            (false, false) => Protocol::Http1,
        },
        unix: options.unix.clone(),
        variants: options.variants.map(|count| (count, options.seed)),
    })
}

fn wishes(options: &Options) -> Result<Vec<NamedRequest>, PlanError> {
    let mut wishes = Vec::new();
    for url in &options.urls {
        let url = Url::parse(url).map_err(PlanError::Target)?;
        wishes.push(NamedRequest {
            url,
            weight: 1.0,
            method: None,
            think: Duration::ZERO,
        });
    }
    if let Some(path) = &options.urls_from {
        wishes.extend(read_urls(path).map_err(PlanError::Target)?);
    }
    if let Some(path) = &options.pages {
        wishes.extend(read_pages(path).map_err(PlanError::Target)?);
    }
    Ok(wishes)
}

/// Refuses to offer a protocol that is not spoken: a server that chooses it would count as a fault.
fn offer(options: &Options) -> Result<(), PlanError> {
    let mut offered = options.alpn.iter().flat_map(|names| names.split(','));
    if !options.h2 && offered.any(|name| name == ALPN_HTTP2) {
        Err(PlanError::OfferWithoutHttp2)
    } else {
        Ok(())
    }
}

fn tls(options: &Options, targets: &Targets) -> Result<Option<TlsPlan>, PlanError> {
    for (option, percent) in [
        ("--tls-resume", options.tls_resume),
        ("--early-data", options.early_data),
    ] {
        if !(0.0..=100.0).contains(&percent) {
            return Err(PlanError::Percent(option));
        }
    }
    if !targets.endpoints.iter().any(|endpoint| endpoint.tls) {
        return Ok(None);
    }
    TlsPlan::new(options, &targets.endpoints)
        .map(Some)
        .map_err(PlanError::Tls)
}

fn read(path: &Path) -> Result<Vec<u8>, PlanError> {
    std::fs::read(path).map_err(|error| PlanError::File(path.to_owned(), error))
}

/// The CPUs of `--bindcpu`: those of the list, or all this process may use.
fn cpus(options: &Options) -> Result<Vec<usize>, PlanError> {
    let Some(list) = &options.bindcpu else {
        return Ok(Vec::new());
    };
    let Some(list) = list else {
        return allowed_cpus();
    };
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| PlanError::Cpus)?;
        let last: usize = last.trim().parse().map_err(|_| PlanError::Cpus)?;
        if first > last || last >= nix::sched::CpuSet::count() {
            return Err(PlanError::Cpus);
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

fn allowed_cpus() -> Result<Vec<usize>, PlanError> {
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .map_err(|_| PlanError::Cpus)?;
    let all = 0..nix::sched::CpuSet::count();
    Ok(all
        .filter(|cpu| allowed.is_set(*cpu).unwrap_or(false))
        .collect())
}

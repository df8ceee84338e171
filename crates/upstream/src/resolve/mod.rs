//! Lookups of peers' names at run time: a stub resolver (RFC 1035, RFC 2782).
//!
//! All lanes share one resolver and its cache. The first request for a name queries the name
//! servers on its own lane, and the others wait for it. Failures are not cached.

mod counts;
pub(crate) mod found;
mod query;
mod servers;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnpike_lane::log::ErrorLog;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::timeout::bounded;
use turnpike_wire::dns::{Question, Service};

pub use counts::LookupCounts;
use servers::ServerSource;
pub use servers::ServersFile;
pub use source::{ResolvedServer, Resolving};

/// The most names in the cache. Names may come from clients, so they are limited.
const NAMES_MAX: usize = 10_000;

/// The most aliases in a row, each in its own answer.
const ALIASES_MAX: usize = 10;

/// The parameters of a `resolver` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The name servers, which are used in turn.
    pub servers: Vec<SocketAddr>,
    /// A file with more of them.
    pub servers_file: Option<ServersFile>,
    /// The lifetime of answers, in milliseconds, instead of their own.
    pub valid_ms: Option<u64>,
    /// Whether to look up IPv4 addresses.
    pub ipv4: bool,
    /// Whether to look up IPv6 addresses.
    pub ipv6: bool,
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The name server's code: 3 means that the name does not exist or has no such record.
    Code(u8),
    /// There was no answer in time.
    TimedOut,
    /// The text is not a name.
    Name,
}

/// The code for a name that does not exist, or has no such record.
const NOT_FOUND: u8 = 3;

/// The code for a question that the server could not read.
const FORMAT: u8 = 1;

impl ResolveError {
    /// Whether the name servers report that there is no record, which is an answer too.
    pub fn is_not_found(self) -> bool {
        self == ResolveError::Code(NOT_FOUND)
    }
}

/// The number and text in nginx's log, in parentheses.
impl fmt::Display for ResolveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, text) = match self {
            ResolveError::Code(0) => (0, "Success"),
            ResolveError::Code(1) => (1, "Format error"),
            ResolveError::Code(2) => (2, "Server failure"),
            ResolveError::Code(3) => (3, "Host not found"),
            ResolveError::Code(4) => (4, "Unimplemented"),
            ResolveError::Code(5) => (5, "Operation refused"),
            ResolveError::Code(other) => (*other, "Unknown error"),
            ResolveError::TimedOut => (110, "Operation timed out"),
            ResolveError::Name => (3, "Host not found"),
        };
        write!(out, "({number}: {text})")
    }
}

impl std::error::Error for ResolveError {}

/// The addresses of a name, and their expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The addresses, those of IPv4 first.
    pub addresses: Vec<IpAddr>,
    /// The expiry, in monotonic milliseconds.
    pub until_ms: u64,
}

/// A host of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// The address.
    pub address: SocketAddr,
    /// The name and port in the service record.
    pub server: String,
    /// A lower priority is used first.
    pub priority: u16,
    /// The share among hosts of one priority.
    pub weight: u16,
}

/// The hosts of a service, and their expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// In the order of the answer.
    pub services: Vec<ServiceAddress>,
    /// The expiry, in monotonic milliseconds.
    pub until_ms: u64,
}

/// A cached answer.
#[derive(Clone, Debug, Default)]
struct Known {
    addresses: Vec<IpAddr>,
    services: Vec<Service>,
    until_ms: u64,
}

type Outcome = Result<Arc<Known>, ResolveError>;

enum Entry {
    Known(Arc<Known>),
    /// A query is in progress.
    Asked(watch::Receiver<Option<Outcome>>),
}

/// A resolver.
pub struct Resolver {
    settings: ResolverSettings,
    names: Mutex<HashMap<(String, Question), Entry>>,
    servers: ServerSource,
    next_server: AtomicUsize,
    counts: LookupCounts,
    now_ms: fn() -> u64,
}

impl Resolver {
    /// A resolver with an empty cache. There must be a server, or a file with servers.
    pub fn new(settings: ResolverSettings) -> Resolver {
        Self::with_clock(settings, || monotonic_ns() / 1_000_000)
    }

    fn with_clock(settings: ResolverSettings, now_ms: fn() -> u64) -> Resolver {
        Resolver {
            servers: ServerSource::new(settings.servers.clone(), settings.servers_file.clone()),
            settings,
            names: Mutex::default(),
            next_server: AtomicUsize::new(0),
            counts: LookupCounts::default(),
            now_ms,
        }
    }

    /// Writes to this log from now on what is wrong with the file of servers.
    pub fn log_to(&self, log: ErrorLog) {
        self.servers.log_to(log);
    }

    /// What it has counted so far.
    pub fn counts(&self) -> &LookupCounts {
        &self.counts
    }

    /// The addresses of a name; an address is returned as it is.
    ///
    /// # Errors
    /// See [`ResolveError`]; `TimedOut` after `timeout_ms`.
    pub async fn addresses(&self, name: &str, timeout_ms: u64) -> Result<Addresses, ResolveError> {
        if let Ok(address) = name.parse() {
            return Ok(Addresses {
                addresses: vec![address],
                until_ms: u64::MAX,
            });
        }
        self.counts.add_name_query();
        let ask = async |wanted: bool, question| {
            if wanted {
                self.known(name, question, timeout_ms).await
            } else {
                Err(ResolveError::Code(NOT_FOUND))
            }
        };
        let (four, six) = tokio::join!(
            ask(self.settings.ipv4, Question::A),
            ask(self.settings.ipv6, Question::Aaaa)
        );
        let mut addresses = Vec::new();
        let mut until_ms = u64::MAX;
        for known in [&four, &six].into_iter().flatten() {
            addresses.extend_from_slice(&known.addresses);
            until_ms = until_ms.min(known.until_ms);
        }
        if !addresses.is_empty() {
            return Ok(Addresses {
                addresses,
                until_ms,
            });
        }
        // An error counts more than the absence of one of the two kinds.
        let errors = [four.err(), six.err()].into_iter().flatten();
        let worst = errors.max_by_key(|error| !error.is_not_found());
        Err(worst.unwrap_or(ResolveError::Code(NOT_FOUND)))
    }

    /// The hosts of a service of a name: `http` means `_http._tcp`. Hosts without an address are
    /// left out, unless all are.
    ///
    /// # Errors
    /// See [`ResolveError`]; `TimedOut` after `timeout_ms`.
    pub async fn services(
        &self,
        service: &str,
        name: &str,
        timeout_ms: u64,
    ) -> Result<Services, ResolveError> {
        let full = if service.contains('.') {
            format!("{service}.{name}")
        } else {
            format!("_{service}._tcp.{name}")
        };
        self.counts.add_service_query();
        let known = self.known(&full, Question::Srv, timeout_ms).await?;
        let mut found = Services {
            services: Vec::new(),
            until_ms: known.until_ms,
        };
        let mut failed = None;
        for service in &known.services {
            match self.addresses(&service.host, timeout_ms).await {
                Ok(host) => {
                    found.until_ms = found.until_ms.min(host.until_ms);
                    found.add(service, &host.addresses);
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => failed = Some(error),
            }
        }
        match (found.services.is_empty(), failed) {
            (_, Some(error)) => Err(error),
            (true, None) => Err(ResolveError::Code(NOT_FOUND)),
            (false, None) => Ok(found),
        }
    }

    /// The answer for a name, from the cache or by a query.
    async fn known(&self, name: &str, question: Question, timeout_ms: u64) -> Outcome {
        let key = (name.to_ascii_lowercase(), question);
        loop {
            let mut asked = match self.look(&key) {
                Ok(known) => return Ok(known),
                Err(Role::Wait(asked)) => asked,
                Err(Role::Ask(sender)) => {
                    let asking = Asking {
                        resolver: self,
                        key: &key,
                    };
                    let outcome = asking.ask(timeout_ms).await;
                    let _ = sender.send(Some(outcome.clone()));
                    return outcome;
                }
            };
            let outcome = bounded(timeout_ms, asked.wait_for(Option::is_some)).await;
            if let Ok(outcome) = outcome.ok_or(ResolveError::TimedOut)?
                && let Some(outcome) = &*outcome
            {
                return outcome.clone();
            }
            // The querying request was given up, possibly for reasons of its own.
        }
    }

    fn look(&self, key: &(String, Question)) -> Result<Arc<Known>, Role> {
        let mut names = self.names();
        match names.get(key) {
            Some(Entry::Known(known)) if (self.now_ms)() < known.until_ms => {
                return Ok(Arc::clone(known));
            }
            Some(Entry::Asked(asked)) => return Err(Role::Wait(asked.clone())),
            _ => {}
        }
        if names.len() >= NAMES_MAX {
            let now_ms = (self.now_ms)();
            names.retain(|_, entry| match entry {
                Entry::Known(known) => now_ms < known.until_ms,
                Entry::Asked(_) => true,
            });
            if names.len() >= NAMES_MAX {
                names.retain(|_, entry| matches!(entry, Entry::Asked(_)));
            }
        }
        let (sender, asked) = watch::channel(None);
        names.insert(key.clone(), Entry::Asked(asked));
        Err(Role::Ask(sender))
    }

    fn names(&self) -> MutexGuard<'_, HashMap<(String, Question), Entry>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Services {
    fn add(&mut self, service: &Service, addresses: &[IpAddr]) {
        let (host, port) = (&service.host, service.port);
        self.services
            .extend(addresses.iter().map(|address| ServiceAddress {
                address: SocketAddr::new(*address, port),
                server: format!("{host}:{port}"),
                priority: service.priority,
                weight: service.weight,
            }));
    }
}

/// The task of a request for a name that is not cached.
enum Role {
    Wait(watch::Receiver<Option<Outcome>>),
    Ask(watch::Sender<Option<Outcome>>),
}

/// The query for a name. However it ends, the name is not marked as queried afterwards.
struct Asking<'a> {
    resolver: &'a Resolver,
    key: &'a (String, Question),
}

impl Asking<'_> {
    async fn ask(self, timeout_ms: u64) -> Outcome {
        let (name, question) = self.key;
        let known = bounded(timeout_ms, self.follow(name, *question)).await;
        let timed_out = || {
            self.resolver.counts.add_timed_out();
            ResolveError::TimedOut
        };
        let known = known.ok_or_else(timed_out)??;
        let known = Arc::new(known);
        let entry = Entry::Known(Arc::clone(&known));
        self.resolver.names().insert(self.key.clone(), entry);
        Ok(known)
    }

    /// Queries a name, and the target of an alias after it.
    async fn follow(&self, name: &str, question: Question) -> Result<Known, ResolveError> {
        let resolver = self.resolver;
        let mut name = name.to_owned();
        let mut ttl_seconds = u32::MAX;
        for _ in 0..ALIASES_MAX {
            let answer = query::ask(resolver, &name, question).await?;
            if answer.code != 0 {
                return Err(ResolveError::Code(answer.code));
            }
            ttl_seconds = ttl_seconds.min(answer.ttl_seconds);
            if !answer.addresses.is_empty() || !answer.services.is_empty() {
                let holds_ms = u64::from(ttl_seconds) * 1000;
                let holds_ms = resolver.settings.valid_ms.unwrap_or(holds_ms);
                return Ok(Known {
                    addresses: answer.addresses,
                    services: answer.services,
                    until_ms: (resolver.now_ms)().saturating_add(holds_ms),
                });
            }
            name = answer.alias.ok_or(ResolveError::Code(NOT_FOUND))?;
        }
        Err(ResolveError::Code(NOT_FOUND))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut names = self.resolver.names();
        if let Some(Entry::Asked(_)) = names.get(self.key) {
            names.remove(self.key);
        }
    }
}

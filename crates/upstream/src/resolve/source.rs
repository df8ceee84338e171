//! A server of a group with repeated name lookups.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::monotonic_ns;

use super::found::Found;
use super::{ResolveError, Resolver};
use crate::address::Address;
use crate::background::BackgroundTask;
use crate::group::{Group, GroupStates};
use crate::peer::{Peer, PeerSettings};

/// Shortest pause between two lookups, in milliseconds: an answer with a lifetime of 0 would
/// otherwise be looked up without pause.
const PAUSE_MS_MIN: u64 = 1000;

/// A `server ... resolve` line.
#[derive(Clone, Debug)]
pub struct ResolvedServer {
    /// The name to look up.
    pub host: String,
    /// The port of its addresses, unless a service record has another.
    pub port: u16,
    /// The service whose hosts are looked up.
    pub service: Option<String>,
    /// The text in the configuration, for consistent hashing and for lists.
    pub server: String,
    /// The settings of its peers.
    pub settings: PeerSettings,
}

impl ResolvedServer {
    /// The peers of the last lookup, by this configuration or the one before.
    pub fn remembered(&self, states: &GroupStates) -> Vec<Arc<Peer>> {
        let found = states.remembered(&self.key());
        self.peers(states, &found)
    }

    /// The key under which addresses are kept. It does not include the port, which does not change
    /// them.
    fn key(&self) -> String {
        let service = self.service.as_deref().unwrap_or_default();
        format!("{} {service}", self.host)
    }

    fn address(&self, found: &Found) -> Address {
        match (&self.service, &found.address) {
            (None, Address::Inet(address)) => Address::Inet((address.ip(), self.port).into()),
            (_, address) => address.clone(),
        }
    }

    fn peers(&self, states: &GroupStates, found: &[Found]) -> Vec<Arc<Peer>> {
        let mut peers: Vec<Arc<Peer>> = Vec::new();
        for found in found {
            let mut settings = self.settings.clone();
            if let (1, Some(weight)) = (settings.weight, found.weight) {
                settings.weight = weight.max(1);
            }
            settings.backup |= found.backup;
            let address = self.address(found);
            let name = address.to_string();
            let nth = peers.iter().filter(|peer| peer.name() == name).count();
            let state = states.state(&name, nth, settings.weight);
            let server = found.server.as_deref().unwrap_or(&self.server);
            let peer = Peer::new(server, address, settings, state);
            peers.push(Arc::new(peer));
        }
        peers
    }
}

/// Looks up a server as long as its group lives.
pub struct Resolving {
    pub group: Weak<Group>,
    /// The number of its line in the group.
    pub source: usize,
    pub server: ResolvedServer,
    /// The resolver.
    pub resolver: Arc<Resolver>,
    /// The time limit of a lookup, and the pause after one that failed, in milliseconds.
    pub timeout_ms: u64,
    /// The log for failures.
    pub log: ErrorLog,
}

impl BackgroundTask for Resolving {
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let mut before = None;
            loop {
                let Some(pause_ms) = self.look_up(&mut before).await else {
                    return;
                };
                tokio::time::sleep(Duration::from_millis(pause_ms.max(PAUSE_MS_MIN))).await;
            }
        })
    }
}

impl Resolving {
    /// Looks up once; returns the lifetime of the answer, or `None` if the group is gone.
    async fn look_up(&self, before: &mut Option<Vec<Found>>) -> Option<u64> {
        let found = self.find().await;
        let group = self.group.upgrade()?;
        let (found, pause_ms) = match found {
            Ok((found, until_ms)) => {
                let now_ms = monotonic_ns() / 1_000_000;
                (found, until_ms.saturating_sub(now_ms))
            }
            Err(error) => {
                self.say(error);
                if !error.is_not_found() {
                    return Some(self.timeout_ms);
                }
                (Vec::new(), 0)
            }
        };
        if before.as_ref() != Some(&found) {
            let states = group.states();
            states.remember(&self.server.key(), &found);
            group.replace(self.source, self.server.peers(states, &found));
            *before = Some(found);
        }
        Some(pause_ms)
    }

    async fn find(&self) -> Result<(Vec<Found>, u64), ResolveError> {
        let ResolvedServer {
            host,
            port,
            service,
            ..
        } = &self.server;
        let Some(service) = service else {
            let found = self.resolver.addresses(host, self.timeout_ms).await?;
            let found_one = |address: &std::net::IpAddr| Found {
                address: Address::Inet((*address, *port).into()),
                server: None,
                weight: None,
                backup: false,
            };
            let all = found.addresses.iter().map(found_one).collect();
            return Ok((all, found.until_ms));
        };
        let resolver = &self.resolver;
        let found = resolver.services(service, host, self.timeout_ms).await?;
        let first = found.services.iter().map(|service| service.priority).min();
        let found_one = |service: &super::ServiceAddress| Found {
            address: Address::Inet(service.address),
            server: Some(service.server.clone()),
            weight: Some(u32::from(service.weight)),
            backup: Some(service.priority) != first,
        };
        let all = found.services.iter().map(found_one).collect();
        Ok((all, found.until_ms))
    }

    fn say(&self, error: ResolveError) {
        let host = &self.server.host;
        match &self.server.service {
            None => {
                let line = format_args!("{host} could not be resolved {error}");
                self.log.event(Level::Error, line);
            }
            Some(service) => {
                let line =
                    format_args!("service {service} of {host} could not be resolved {error}");
                self.log.event(Level::Error, line);
            }
        }
    }
}

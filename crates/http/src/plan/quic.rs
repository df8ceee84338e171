//! What servers of addresses of QUIC need: what they show there, what cannot be served, and the key
//! of the host.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::gate::AcceptMode;
use turnpike_lane::log::Errno;
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_plan::environment::{KEPT_QUIC_AT, KEPT_QUIC_WORDS};
use turnpike_plan::ports::Port;
use turnpike_plan::tls::{HTTP3, ServerTls};
use turnpike_quic::HostKey;

use super::assemble::Ports;
use super::builder::Builder;
use super::index::ServerIndex;
use super::listen::ListenRequest;
use crate::settings::EventsSettings;

/// nginx's words.
const NO_TLS13: &str =
    "\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... quic\" directive";

/// A connection of QUIC cannot wait for a responder.
const NO_STATUSES: &str = "\"ssl_ocsp\" is not supported yet for the \"listen ... quic\" \
                           directive; serve the clients of this server by TCP alone";

const OTHER_KEY: &str = "\"quic_host_key\" names another file than at another server: all \
                         connections have one key";

/// The key of a host, and the one before it.
const HOST_KEYS_MAX: usize = 2;

const TOO_MANY_KEYS: &str = "\"quic_host_key\" is given more than twice: the first file has the \
                             secret, and the second one the secret before it";

const NO_HQ: &str = "\"http3_hq on\" is not supported yet; remove the line: clients use HTTP/3";

/// What servers that do not speak HTTP/3 offer there: nothing that a client could choose.
const NO_PROTOCOL: &[u8] = b"none";

/// How lanes share an address. One of datagrams has a socket for each lane, or is one lane's.
pub(super) fn mode(request: &ListenRequest, events: &EventsSettings) -> AcceptMode {
    let mode = request.mode(events.accept_mutex, events.reuse_port);
    match (request.quic, mode.has_gate_per_lane()) {
        (false, _) => mode,
        (true, true) => AcceptMode::SteeredQuic,
        (true, false) => AcceptMode::Shared,
    }
}

/// The servers of addresses of QUIC.
fn servers(ports: &Ports) -> Vec<ServerIndex> {
    let quic = ports.iter().filter(|port| port.request.quic);
    let mut servers: Vec<_> = quic.flat_map(Port::servers).collect();
    servers.sort_unstable_by_key(|server| server.0);
    servers.dedup();
    servers
}

impl Builder<'_> {
    /// Servers of addresses of QUIC say what they speak there.
    pub(super) fn offer_http3(&mut self, ports: &Ports) {
        for server in servers(ports) {
            let Some(server) = self.servers.get(server.0 as usize) else {
                continue;
            };
            let location = self.locations.get_mut(server.root.0 as usize);
            if let Some(Some(location)) = location
                && let Some(ServerTls::Serve(identity)) = &mut location.tls
            {
                let protocol = if server.settings.http3.is_on {
                    HTTP3
                } else {
                    NO_PROTOCOL
                };
                *identity = Arc::new(identity.with_quic(protocol));
            }
        }
    }

    /// Reports servers of addresses of QUIC that cannot be served there, and reads their key.
    pub(super) fn check_quic(&mut self, views: &[View<'_>], ports: &Ports) {
        let servers = servers(ports);
        if views.len() != self.servers.len() || servers.is_empty() {
            return;
        }
        for server in &servers {
            let view = views[server.0 as usize];
            if view.flag("http3_hq") {
                let entry = view.nearest("http3_hq");
                let span = entry.map_or(view.span(), |entry| entry.span);
                self.report(view.error(span, NO_HQ));
            }
            let root = self.servers[server.0 as usize].root;
            let location = self.locations[root.0 as usize].as_ref();
            let Some(ServerTls::Serve(identity)) = location.and_then(|root| root.tls.as_ref())
            else {
                continue;
            };
            let faults = [
                (!identity.speaks_tls13, NO_TLS13),
                (identity.statuses.is_some(), NO_STATUSES),
            ];
            for (_, message) in faults.into_iter().filter(|(is_there, _)| *is_there) {
                self.report(view.error(view.span(), message));
            }
        }
        match self.host_key(views, &servers) {
            Ok(key) => self.quic_key = key,
            Err(error) => self.report(error),
        }
    }

    /// The key that `quic_host_key` names, or the one that all processes of this server have.
    fn host_key(
        &mut self,
        views: &[View<'_>],
        servers: &[ServerIndex],
    ) -> Result<Option<HostKey>, ConfError> {
        let views = servers.iter().map(|server| views[server.0 as usize]);
        let mut named = views.map(|view| (view, view.nearest_all("quic_host_key")));
        let Some((view, first)) = named.next() else {
            return Ok(None);
        };
        let words = |entries: &[&Entry]| {
            let words = entries.iter().map(|entry| entry.argument(0).to_owned());
            words.collect::<Vec<_>>()
        };
        for (other_view, other) in named {
            if words(&other) != words(&first) {
                return Err(other_view.error(other_view.span(), OTHER_KEY));
            }
        }
        if let Some(entry) = first.get(HOST_KEYS_MAX) {
            return Err(view.error(entry.span, TOO_MANY_KEYS));
        }
        let mut secrets = first.into_iter().map(|entry| self.secret(view, entry));
        let (first, old) = (secrets.next().transpose()?, secrets.next().transpose()?);
        drop(secrets);
        let Some(secret) = first else {
            let words = self.environment.kept_words();
            return Ok(words
                .and_then(|words| kept_key(&words))
                .or_else(HostKey::random));
        };
        let key = HostKey::of(&secret);
        Ok(Some(match old {
            Some(old) => key.with_old(&old),
            None => key,
        }))
    }

    /// The content of a file of `quic_host_key`.
    fn secret(&mut self, view: View<'_>, entry: &Entry) -> Result<Arc<[u8]>, ConfError> {
        let path = self.environment.conf_folder().join(entry.argument(0));
        let failed = |why: &dyn std::fmt::Display| {
            let path = path.display();
            view.error(entry.span, format!("open() \"{path}\" failed ({why})"))
        };
        match self.environment.file(&path) {
            Ok(secret) if secret.is_empty() => Err(failed(&"the file is empty")),
            Ok(secret) => Ok(secret),
            Err(error) => Err(failed(&Errno(&error))),
        }
    }
}

/// The key in the memory that outlives a process: the first process makes it.
fn kept_key(words: &SharedWords) -> Option<HostKey> {
    let words = words
        .words()
        .get(KEPT_QUIC_AT..KEPT_QUIC_AT + KEPT_QUIC_WORDS)?;
    let mut secret = Vec::new();
    let fresh = HostKey::random_words::<KEPT_QUIC_WORDS>()?;
    for (word, fresh) in words.iter().zip(fresh) {
        // Whoever is first decides; a word is never 0 once it is decided.
        let decided = word.compare_exchange(0, fresh | 1, Relaxed, Relaxed);
        let decided = decided.map_or_else(|there| there, |_| fresh | 1);
        secret.extend_from_slice(&decided.to_ne_bytes());
    }
    Some(HostKey::of(&secret))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use turnpike_lane::sys::mapping::SharedWords;
    use turnpike_plan::environment::KEPT_WORDS;

    use super::kept_key;

    #[test]
    fn all_processes_find_the_key_of_the_first() {
        let words = SharedWords::anonymous(KEPT_WORDS).unwrap();
        let ids = || kept_key(&words).unwrap().connection_ids();
        assert_eq!(ids(), ids());
        let others = SharedWords::anonymous(KEPT_WORDS).unwrap();
        assert_ne!(ids(), kept_key(&others).unwrap().connection_ids());
    }
}

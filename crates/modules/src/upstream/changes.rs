//! What commands have changed in a group, as it is held in memory that outlives the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turnpike_conf::Complaint;
use turnpike_plan::control::{Value, json};
use turnpike_upstream::{Address, Balancer, Commanded, GroupStates, Mode, Peer};

use super::balancing::supports;
use super::servers::{self, Server};
use super::url::Url;

/// A server that a command or a state file has given.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Given {
    /// The address as written.
    pub(super) server: String,
    /// The parameters, as in the configuration.
    pub(super) parameters: String,
    /// The addresses that it had when it was given.
    pub(super) addresses: Vec<Address>,
}

/// What commands have changed in a group; servers are named by their addresses.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Changes {
    /// Whether the configured servers do not count.
    pub(super) replaces: bool,
    /// The servers that were added.
    pub(super) added: Vec<Given>,
    /// The configured servers that were removed.
    pub(super) removed: BTreeSet<String>,
    /// The modes that were commanded.
    pub(super) modes: BTreeMap<String, Mode>,
    /// The weights that were commanded.
    pub(super) weights: BTreeMap<String, u32>,
}

impl Given {
    /// Reads a server as a command names it: an address, and parameters as in the configuration.
    /// A name is looked up, which blocks.
    ///
    /// # Errors
    /// nginx's message, and what cannot be done so.
    pub(super) fn read(
        text: &str,
        balancer: Balancer,
        default_port: u16,
    ) -> Result<Given, Complaint> {
        let (server, parameters) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let words: Vec<&str> = parameters.split_whitespace().collect();
        let wrong = words.iter().find(|word| !supports(balancer, word));
        if let Some(word) = wrong {
            return Err(servers::unsupported(word).into());
        }
        servers::settings(&words)?;
        let place = |what: &str| format!("{what} in upstream \"{server}\"");
        let url = Url::parse(server).map_err(place)?;
        url.need_port(default_port).map_err(place)?;
        Ok(Given {
            server: server.to_owned(),
            parameters: words.join(" "),
            addresses: url.addresses(default_port).map_err(place)?,
        })
    }

    fn peers(&self, states: &GroupStates, written: &mut Vec<Address>) -> Vec<Arc<Peer>> {
        let words: Vec<&str> = self.parameters.split_whitespace().collect();
        let server = Server {
            name: self.server.clone(),
            addresses: self.addresses.clone(),
            // They were read when the server was given.
            settings: servers::settings(&words).unwrap_or_default(),
            resolved: None,
        };
        server.peers(states, written)
    }

    fn from_value(value: &Value) -> Option<Given> {
        let address = |value: &Value| {
            // It is an address, never a name.
            let address = Url::parse(value.as_str()?).ok()?.addresses(0).ok()?;
            address.into_iter().next()
        };
        Some(Given {
            server: value["server"].as_str()?.to_owned(),
            parameters: value["parameters"].as_str()?.to_owned(),
            addresses: value["addresses"]
                .as_array()?
                .iter()
                .map(address)
                .collect::<Option<_>>()?,
        })
    }

    fn value(&self) -> Value {
        let addresses: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        let (server, parameters) = (&self.server, &self.parameters);
        json!({ "server": server, "parameters": parameters, "addresses": addresses })
    }
}

impl Changes {
    /// Takes a server away: an address, or all that a name has. `configured` are the addresses of
    /// the configured servers that are meant.
    pub(super) fn remove(&mut self, name: &str, configured: &[String]) {
        let is_meant = |address: &Address| address.to_string() == name;
        let mut left = Vec::new();
        for given in std::mem::take(&mut self.added) {
            let is_whole = given.server == name;
            if is_whole || given.addresses.iter().any(is_meant) {
                // The others stay, each for itself.
                let (gone, others): (Vec<&Address>, Vec<&Address>) = given
                    .addresses
                    .iter()
                    .partition(|one| is_whole || is_meant(one));
                gone.into_iter()
                    .for_each(|address| self.forget(&address.to_string()));
                left.extend(others.into_iter().map(|address| Given {
                    server: address.to_string(),
                    addresses: vec![address.clone()],
                    ..given.clone()
                }));
            } else {
                left.push(given);
            }
        }
        self.added = left;
        if !self.replaces && !configured.is_empty() {
            configured.iter().for_each(|address| self.forget(address));
            self.removed.insert(name.to_owned());
        }
    }

    /// Has these servers in place of all others. Those that were there keep what was commanded for
    /// them.
    pub(super) fn replace(&mut self, servers: Vec<Given>) {
        let addresses = servers.iter().flat_map(|given| &given.addresses);
        let names: BTreeSet<String> = addresses.map(Address::to_string).collect();
        self.modes.retain(|name, _| names.contains(name));
        self.weights.retain(|name, _| names.contains(name));
        self.removed.clear();
        (self.replaces, self.added) = (true, servers);
    }

    fn forget(&mut self, address: &str) {
        self.modes.remove(address);
        self.weights.remove(address);
    }

    /// The same for the group.
    pub(super) fn commanded(&self, states: &GroupStates, configured: &[Address]) -> Commanded {
        // A server that was removed and added again goes on with its state.
        let stays =
            |address: &&Address| !self.replaces && !self.removed.contains(&address.to_string());
        let mut written: Vec<Address> = configured.iter().filter(stays).cloned().collect();
        let peers = self
            .added
            .iter()
            .flat_map(|given| given.peers(states, &mut written));
        Commanded {
            replaces: self.replaces,
            added: peers.collect(),
            removed: self.removed.iter().cloned().collect(),
            modes: self.modes.clone().into_iter().collect(),
            weights: self.weights.clone().into_iter().collect(),
        }
    }

    /// As it is held.
    pub(super) fn value(&self) -> Value {
        let added: Vec<Value> = self.added.iter().map(Given::value).collect();
        let modes = self
            .modes
            .iter()
            .map(|(name, mode)| (name.clone(), mode.text().into()));
        let modes: serde_json::Map<String, Value> = modes.collect();
        json!({
            "replaces": self.replaces,
            "added": added,
            "removed": self.removed,
            "modes": modes,
            "weights": self.weights,
        })
    }

    /// As it was held; `None` if another version has written it in another form.
    pub(super) fn from_value(value: &Value) -> Option<Changes> {
        let modes = value["modes"].as_object()?.iter().map(|(name, mode)| {
            let mode = Mode::named(mode.as_str()?)?;
            Some((name.clone(), mode))
        });
        let weights = value["weights"].as_object()?.iter().map(|(name, weight)| {
            let weight = u32::try_from(weight.as_u64()?).ok()?;
            Some((name.clone(), weight))
        });
        let removed = value["removed"].as_array()?.iter();
        let removed = removed.map(|name| Some(name.as_str()?.to_owned()));
        let added = value["added"].as_array()?.iter().map(Given::from_value);
        Some(Changes {
            replaces: value["replaces"].as_bool()?,
            added: added.collect::<Option<_>>()?,
            removed: removed.collect::<Option<_>>()?,
            modes: modes.collect::<Option<_>>()?,
            weights: weights.collect::<Option<_>>()?,
        })
    }
}

//! The `server` lines of a group.

use std::sync::Arc;

use turnpike_conf::{Entry, value};
use turnpike_upstream::{Address, GroupStates, Mode, Peer, PeerSettings};

use super::balancing::Method;
use super::url::Url;

/// Port of servers that are written without one.
const DEFAULT_PORT: u16 = 80;

/// Longest identity for sticky requests; nginx's: the digits of an MD5.
const ROUTE_BYTES_MAX: usize = 32;

/// One `server` line.
pub(super) struct Server {
    /// Its address as written.
    pub(super) name: String,
    pub(super) addresses: Vec<Address>,
    pub(super) settings: PeerSettings,
}

impl Server {
    /// Reads a line.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn read(entry: &Entry, method: &Method) -> Result<Server, String> {
        let mut settings = PeerSettings::default();
        for word in entry.arguments.iter().skip(1) {
            if !method.supports(&word.text) {
                let text = &word.text;
                return Err(format!(
                    "balancing method does not support parameter \"{text}\""
                ));
            }
            parameter(&word.text, &mut settings)?;
        }
        let name = entry.argument(0);
        let place = |what: &str| format!("{what} in upstream \"{name}\"");
        let url = Url::parse(name).map_err(place)?;
        let addresses = url.addresses(DEFAULT_PORT).map_err(place)?;
        Ok(Server {
            name: name.to_owned(),
            addresses,
            settings,
        })
    }

    /// A peer for each address, with the state it had before.
    pub(super) fn peers<'a>(&'a self, states: &'a GroupStates, peers: &'a mut Vec<Arc<Peer>>) {
        for address in &self.addresses {
            let name = address.to_string();
            let nth = peers.iter().filter(|peer| peer.name() == name).count();
            let state = states.state(&name, nth, self.settings.weight);
            let settings = self.settings.clone();
            let peer = Peer::new(&self.name, address.clone(), settings, state);
            peers.push(Arc::new(peer));
        }
    }
}

fn parameter(text: &str, settings: &mut PeerSettings) -> Result<(), String> {
    let invalid = || format!("invalid parameter \"{text}\"");
    let (name, given) = match text.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (text, None),
    };
    let number = |given: &str| {
        let number = value::number(given).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(invalid)
    };
    let seconds = |given: &str| {
        let seconds = value::seconds(given).ok_or_else(invalid)?;
        Ok::<u64, String>(seconds * 1000)
    };
    match (name, given) {
        ("weight", Some(given)) => {
            settings.weight = number(given)?;
            if settings.weight == 0 {
                return Err(invalid());
            }
        }
        ("max_conns", Some(given)) => settings.max_conns = number(given)?,
        ("max_fails", Some(given)) => settings.max_fails = number(given)?,
        ("fail_timeout", Some(given)) => settings.fail_timeout_ms = seconds(given)?,
        ("slow_start", Some(given)) => settings.slow_start_ms = seconds(given)?,
        ("route", Some("")) => return Err("route is empty".to_owned()),
        ("route", Some(given)) if given.len() > ROUTE_BYTES_MAX => {
            return Err(format!("route is longer than {ROUTE_BYTES_MAX}"));
        }
        ("route", Some(given)) => settings.route = Some(given.to_owned()),
        ("backup", None) => settings.backup = true,
        ("down", None) => settings.mode = Mode::Down,
        ("drain", None) => settings.mode = Mode::Draining,
        _ => return Err(invalid()),
    }
    Ok(())
}

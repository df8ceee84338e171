//! The `server` lines of a group.

use std::sync::Arc;

use turnpike_conf::{Complaint, Entry, value};
use turnpike_upstream::{Address, GroupStates, Mode, Peer, PeerSettings, ResolvedServer};

use super::balancing::{Method, supports};
use super::url::{Target, Url};

/// Port of servers that are written without one.
pub(super) const DEFAULT_PORT: u16 = 80;

/// Longest identity for sticky requests; nginx's: the digits of an MD5.
const ROUTE_BYTES_MAX: usize = 32;

/// One `server` line.
pub(super) struct Server {
    /// The address as written.
    pub(super) name: String,
    pub(super) addresses: Vec<Address>,
    pub(super) settings: PeerSettings,
    /// A name that is looked up while the server runs: then there are no addresses yet.
    pub(super) resolved: Option<ResolvedServer>,
}

/// The settings that the parameters of a command give, as in the configuration.
///
/// # Errors
/// nginx's message, and what cannot be done so.
pub(super) fn settings(words: &[&str]) -> Result<PeerSettings, Complaint> {
    let mut parameters = Parameters::default();
    for word in words {
        parameter(word, &mut parameters)?;
    }
    if parameters.resolve || parameters.service.is_some() {
        Err("\"resolve\" is for the configuration only".into())
    } else {
        Ok(parameters.settings)
    }
}

/// nginx's message about a parameter that makes no sense with the method.
pub(super) fn unsupported(parameter: &str) -> String {
    format!("balancing method does not support parameter \"{parameter}\"")
}

/// What the parameters of a line say.
#[derive(Default)]
struct Parameters {
    settings: PeerSettings,
    resolve: bool,
    service: Option<String>,
}

impl Server {
    /// Reads a line.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn read(
        entry: &Entry,
        method: &Method,
        default_port: u16,
    ) -> Result<Server, Complaint> {
        let mut parameters = Parameters::default();
        for word in entry.arguments.iter().skip(1) {
            if !supports(method.balancer, &word.text) {
                return Err(unsupported(&word.text).into());
            }
            parameter(&word.text, &mut parameters)?;
        }
        let name = entry.argument(0);
        let Parameters {
            settings,
            resolve,
            service,
        } = parameters;
        if service.is_some() && !resolve {
            return Err(
                format!("service upstream \"{name}\" requires \"resolve\" parameter").into(),
            );
        }
        let place = |what: &str| format!("{what} in upstream \"{name}\"");
        let url = Url::parse(name).map_err(place)?;
        if service.is_none() {
            url.need_port(default_port).map_err(place)?;
        }
        if service.is_some() && url.port.is_some() {
            return Err(format!("service upstream \"{name}\" may not have port").into());
        }
        let server = Server {
            name: name.to_owned(),
            addresses: Vec::new(),
            settings,
            resolved: None,
        };
        match &url.target {
            Target::Name(host) if resolve => Ok(Server {
                resolved: Some(ResolvedServer {
                    host: host.clone(),
                    port: url.port.unwrap_or(default_port),
                    service,
                    server: name.to_owned(),
                    settings: server.settings.clone(),
                }),
                ..server
            }),
            _ if service.is_some() => {
                Err(format!("service upstream \"{name}\" requires domain name").into())
            }
            _ => Ok(Server {
                addresses: url.addresses(default_port).map_err(place)?,
                ..server
            }),
        }
    }

    /// A peer for each address, with the state it had before. `written` has the addresses of the
    /// lines before.
    pub(super) fn peers(&self, states: &GroupStates, written: &mut Vec<Address>) -> Vec<Arc<Peer>> {
        if let Some(resolved) = &self.resolved {
            return resolved.remembered(states);
        }
        let peer = |address: &Address| {
            let nth = written.iter().filter(|other| *other == address).count();
            written.push(address.clone());
            let state = states.state(&address.to_string(), nth, self.settings.weight);
            let settings = self.settings.clone();
            Arc::new(Peer::new(&self.name, address.clone(), settings, state))
        };
        self.addresses.iter().map(peer).collect()
    }
}

fn parameter(text: &str, parameters: &mut Parameters) -> Result<(), Complaint> {
    let settings = &mut parameters.settings;
    let invalid = || format!("invalid parameter \"{text}\"");
    let (name, given) = match text.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (text, None),
    };
    let number = |given: &str| {
        let number = value::number(given).ok_or_else(invalid)?;
        // More than that is no other limit.
        Ok::<u32, String>(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let seconds = |given: &str| {
        let seconds = value::seconds(given).ok_or_else(invalid)?;
        Ok::<u64, String>(seconds * 1000)
    };
    match (name, given) {
        ("weight", Some(given)) => {
            settings.weight = number(given)?;
            if settings.weight == 0 {
                return Err(invalid().into());
            }
        }
        ("max_conns", Some(given)) => settings.max_conns = number(given)?,
        ("max_fails", Some(given)) => settings.max_fails = number(given)?,
        ("fail_timeout", Some(given)) => settings.fail_timeout_ms = seconds(given)?,
        ("slow_start", Some(given)) => settings.slow_start_ms = seconds(given)?,
        ("route", Some("")) => return Err("route is empty".into()),
        ("route", Some(given)) if given.len() > ROUTE_BYTES_MAX => {
            return Err(format!("route is longer than {ROUTE_BYTES_MAX}").into());
        }
        ("route", Some(given)) => settings.route = Some(given.to_owned()),
        ("resolve", None) => parameters.resolve = true,
        ("service", Some("")) => return Err("service is empty".into()),
        ("service", Some(given)) => parameters.service = Some(given.to_owned()),
        ("backup", None) => settings.backup = true,
        ("down", None) => settings.mode = Mode::Down,
        ("drain", None) => settings.mode = Mode::Draining,
        _ => return Err(invalid().into()),
    }
    Ok(())
}

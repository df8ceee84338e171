//! `debug_connection`: clients about whose requests everything is logged.

use turnpike_conf::{Complaint, View};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::cidr::Cidr;

/// What stands for clients on unix sockets.
const UNIX: &str = "unix:";

/// The clients that `debug_connection` names.
#[derive(Clone, Debug, Default)]
pub struct DebuggedClients {
    networks: Vec<Cidr>,
    /// Whether clients on unix sockets are among them.
    unix: bool,
}

impl DebuggedClients {
    /// Reads the directives of the `events` block.
    pub(super) fn read(events: View<'_>) -> Self {
        let mut clients = Self::default();
        for entry in events.own_all("debug_connection") {
            match entry.argument(0) {
                UNIX => clients.unix = true,
                text => clients.networks.extend(Cidr::parse(text)),
            }
        }
        clients
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        !self.unix && self.networks.is_empty()
    }

    /// Whether a client is one of them.
    pub(crate) fn contains(&self, peer: &PeerAddress) -> bool {
        match peer {
            PeerAddress::Inet(address) => {
                let mut networks = self.networks.iter();
                networks.any(|network| network.contains(address.ip()))
            }
            PeerAddress::Unix => self.unix,
        }
    }
}

/// Checks the argument of `debug_connection`.
///
/// # Errors
/// The argument is neither an address nor a network nor `unix:`.
pub fn check_debug_connection(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        [UNIX] => Ok(()),
        [text] if Cidr::parse(text).is_some() => Ok(()),
        [text] => Err(format!(
            "invalid parameter \"{text}\": use an address, a network or \"{UNIX}\""
        )
        .into()),
        _ => Err("invalid number of arguments".into()),
    }
}

//! Flows of UDP while the serving process changes: the link between the one that has them and the
//! one that reads the sockets next.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::socket::Kind;

use super::Master;
use crate::channel::{self, Extra, FLOWS_NAME};
use crate::master::child::State;

impl Master {
    /// A link for the serving process and the one that is to follow it; `None` where there are no
    /// datagrams, or nobody has them.
    pub(super) fn flow_link(&self) -> Option<(OwnedFd, OwnedFd)> {
        let mut listens = self.loaded.needs.listens.iter();
        let has_datagrams = listens.any(|listen| listen.address.kind() == Kind::Datagram);
        let mut children = self.serving.children.iter();
        let is_served = children.any(|child| child.state == State::Serving);
        if !has_datagrams || !is_served {
            return None;
        }
        match descriptor::packet_pair() {
            Ok(pair) => Some(pair),
            Err(error) => {
                self.flows_are_lost("socketpair()", &error);
                None
            }
        }
    }

    /// Gives the serving process its end of the link.
    pub(super) fn announce_successor(&self, link: Option<OwnedFd>) {
        let mut children = self.serving.children.iter();
        let child = children.find(|child| child.state == State::Serving);
        if let (Some(link), Some(child)) = (link, child)
            && let Err(error) = channel::send_succession(child.channel(), link.as_fd())
        {
            self.flows_are_lost("sendmsg()", &error);
        }
    }

    fn flows_are_lost(&self, call: &str, error: &io::Error) {
        let message = format_args!(
            "{call} failed {}, flows of UDP begin anew in the next serving process",
            Errno(error)
        );
        self.log.event(Level::Alert, message);
    }
}

/// The link as a serving process's first bundle brings it.
pub(super) fn flows_extra(descriptor: OwnedFd) -> Extra {
    Extra {
        name: FLOWS_NAME.to_owned(),
        descriptor,
    }
}

//! What a serving process leaves to the one after it, and what it keeps: the links between them.
//! Connections that wait for a request move to the next one; flows of UDP stay where they are.

use std::io;
use std::os::fd::OwnedFd;

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::descriptor;

use super::Master;
use crate::channel::{self, SuccessionLinks};
use crate::master::child::State;

impl Master {
    /// Links for the serving process and the one that is to follow it, the ends of the former
    /// first; none where nobody serves.
    pub(super) fn succession_links(&self) -> (SuccessionLinks, SuccessionLinks) {
        let mut children = self.serving.children.iter();
        if !children.any(|child| child.state == State::Serving) {
            return Default::default();
        }
        let (before, after) = self.link("connections are closed soon").unzip();
        let (mut ours, mut theirs) = (SuccessionLinks::default(), SuccessionLinks::default());
        (ours.connections, theirs.connections) = (before, after);
        if self.loaded.gates.has_datagrams() {
            (ours.flows, theirs.flows) = self.link("flows of UDP begin anew").unzip();
        }
        (ours, theirs)
    }

    fn link(&self, otherwise: &str) -> Option<(OwnedFd, OwnedFd)> {
        let pair = descriptor::packet_pair();
        pair.inspect_err(|error| self.link_failed("socketpair()", error, otherwise))
            .ok()
    }

    /// Gives the serving process its ends of the links.
    pub(super) fn announce_successor(&self, links: &SuccessionLinks) {
        let mut children = self.serving.children.iter();
        let child = children.find(|child| child.state == State::Serving);
        if let Some(child) = child
            && !links.is_empty()
            && let Err(error) = channel::send_succession(child.channel(), links)
        {
            let otherwise = "connections are closed soon and flows of UDP begin anew";
            self.link_failed("sendmsg()", &error, otherwise);
        }
    }

    fn link_failed(&self, call: &str, error: &io::Error, otherwise: &str) {
        let message = format_args!(
            "{call} failed {}, {otherwise} when the next serving process takes over",
            Errno(error)
        );
        self.log.event(Level::Alert, message);
    }
}

//! What is registered with a lane's epoll instance: spurious events are of these.

use std::os::fd::RawFd;

use turnpike_lane::sys::simulation;
use turnpike_testkit::random::Random;

/// Registered descriptors.
#[derive(Default)]
pub(crate) struct Registrations {
    /// The descriptor, its token, and the inode of its file.
    all: Vec<(RawFd, u64, u64)>,
}

impl Registrations {
    /// A descriptor is registered under a token; `None`: no longer.
    pub(crate) fn set(&mut self, descriptor: RawFd, token: Option<u64>) {
        self.all.retain(|known| known.0 != descriptor);
        if let Some((token, inode)) = token.zip(simulation::inode(descriptor)) {
            self.all.push((descriptor, token, inode));
        }
    }

    /// One of them, in so many percent of the calls.
    pub(crate) fn choose(&mut self, random: &mut Random, percent: u64) -> Option<(RawFd, u64)> {
        if self.all.is_empty() || !random.percent(percent) {
            return None;
        }
        // Numbers of closed descriptors are reused, also by other runs in this process.
        self.all
            .retain(|known| simulation::inode(known.0) == Some(known.2));
        let chosen = random.index(self.all.len());
        let (descriptor, token, _) = *self.all.get(chosen)?;
        Some((descriptor, token))
    }
}

//! Descriptors that tokio watches.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::epoll::Epoll;
use crate::transport::Transport;

/// Registers a descriptor with the caller's runtime.
///
/// # Errors
/// The error of epoll_ctl(2).
pub fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd keeps its descriptor open, and the same, for as long as it lives, which
    // is as long as the registration: AsyncFd gives it back only when it deregisters.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// As [`register`], for a transport that its owner continues to use.
///
/// # Errors
/// The error of epoll_ctl(2).
pub fn register_transport(
    transport: Rc<Transport>,
    interest: Interest,
) -> io::Result<AsyncFd<Rc<Transport>>> {
    // SAFETY: a transport keeps its socket open and unchanged as long as it lives; it lives as long
    // as one of its holders, and the registration is one of them.
    unsafe { AsyncFd::register_with_interest(transport, interest) }.map_err(io::Error::from)
}

/// As [`register`], for an epoll instance that its owner continues to use.
///
/// # Errors
/// The error of epoll_ctl(2).
pub fn register_epoll(epoll: Rc<Epoll>, interest: Interest) -> io::Result<AsyncFd<Rc<Epoll>>> {
    // SAFETY: an instance keeps its descriptor open, and the same, for as long as it lives, which
    // is as long as one of its holders; the registration is one of them.
    unsafe { AsyncFd::register_with_interest(epoll, interest) }.map_err(io::Error::from)
}

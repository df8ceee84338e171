//! Opening one listen address: the system calls, in nginx's order and words.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use turnpike_lane::sys::{file, socket, socket_option};

/// An address to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// Address and port.
    Tcp(std::net::SocketAddr),
    /// A unix socket's path.
    Unix(std::path::PathBuf),
}

/// How lanes share an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceptMode {
    /// One socket for all.
    Shared,
    /// A socket each.
    Reuseport,
}

impl AcceptMode {
    /// Whether each lane has a socket of its own.
    pub fn is_per_lane(self) -> bool {
        self == AcceptMode::Reuseport
    }
}

/// An address with its options.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address.
    pub address: ListenAddress,
    /// The length of the kernel's queue.
    pub backlog: i32,
    /// How lanes share it.
    pub mode: AcceptMode,
}

/// What was opened for one address.
#[derive(Debug)]
pub(super) struct Opened {
    /// Sockets with their lanes.
    pub(super) sockets: Vec<(Option<usize>, OwnedFd)>,
    /// Other descriptors, by name.
    pub(super) extras: Vec<(String, OwnedFd)>,
}

/// What failed, and how.
#[derive(Debug)]
pub(super) struct OpenFailure {
    pub(super) action: String,
    pub(super) error: io::Error,
}

pub(super) fn open(listen: &Listen, lanes: usize) -> Result<Opened, OpenFailure> {
    let lanes: Vec<Option<usize>> = match listen.mode {
        AcceptMode::Shared => vec![None],
        AcceptMode::Reuseport => (0..lanes).map(Some).collect(),
    };
    let mut sockets = Vec::with_capacity(lanes.len());
    for lane in lanes {
        sockets.push((lane, open_one(listen)?));
    }
    Ok(Opened {
        sockets,
        extras: Vec::new(),
    })
}

pub(super) fn adjust<'a>(
    _old: &Listen,
    new: &Listen,
    sockets: impl Iterator<Item = BorrowedFd<'a>>,
) {
    for socket in sockets {
        // The old backlog stays when the kernel does not want the new one.
        let _ = socket::listen(socket, new.backlog);
    }
}

fn open_one(listen: &Listen) -> Result<OwnedFd, OpenFailure> {
    let name = match &listen.address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    };
    let failed = |action: &str| {
        let action = action.replace('@', &name);
        move |error| OpenFailure { action, error }
    };
    let family = match &listen.address {
        ListenAddress::Tcp(address) if address.is_ipv4() => socket::Family::V4,
        ListenAddress::Tcp(_) => socket::Family::V6,
        ListenAddress::Unix(_) => socket::Family::Unix,
    };
    let opened = socket::open(family, socket::Kind::Stream).map_err(failed("socket() @ failed"))?;
    let gate = opened.as_fd();
    socket_option::set_reuse_address(gate, true)
        .map_err(failed("setsockopt(SO_REUSEADDR) @ failed"))?;
    if listen.mode.is_per_lane() {
        socket_option::set_reuse_port(gate, true)
            .map_err(failed("setsockopt(SO_REUSEPORT) @ failed"))?;
    }
    let bound = match &listen.address {
        ListenAddress::Tcp(address) => socket::bind(gate, *address),
        ListenAddress::Unix(path) => {
            let path = path.as_os_str().as_bytes();
            socket::bind_unix(gate, path).and_then(|()| file::set_mode(path, 0o666))
        }
    };
    bound.map_err(failed("bind() to @ failed"))?;
    let action = format!("listen() to @, backlog {} failed", listen.backlog);
    socket::listen(gate, listen.backlog).map_err(failed(&action))?;
    Ok(opened)
}

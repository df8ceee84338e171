//! Under systemd: sockets that it has opened (sd_listen_fds(3)), and telling it how things are
//! (sd_notify(3)): ready, reloading, stopping, alive.
//!
//! Two datagrams' worth of protocol; nothing here may fail a start or hold the master up.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::{Duration, Instant};

use turnpike_lane::gate::Gate;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::process::monotonic_ns;

use super::inherit::Said;

/// The first descriptor that is passed.
const LISTEN_START: i32 = 3;
/// More than any unit has, against a wrong number.
const LISTEN_MAX: i32 = 4096;
/// Signs of life in the time within which one is wanted.
const SIGNS_PER_TIMEOUT: u32 = 2;

/// Listening sockets that systemd has opened for this process. To be called before it opens
/// anything that lasts.
pub(super) fn sockets(said: &mut Said) -> Vec<Gate> {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    let count = number("LISTEN_FDS").and_then(|count| i32::try_from(count).ok());
    let (Some(count), true) = (count, number("LISTEN_PID") == Some(process::id())) else {
        return Vec::new();
    };
    let mut gates = Vec::new();
    for number in (LISTEN_START..).take(count.min(LISTEN_MAX) as usize) {
        match descriptor::adopt_inherited(number).and_then(Gate::adopt) {
            Ok(gate) => {
                let address = gate.address();
                let message = format_args!("using the socket of systemd at {address}");
                said.push((Level::Notice, message.to_string()));
                gates.push(gate);
            }
            Err(error) => {
                let message = format_args!(
                    "descriptor {number} of systemd is not a socket {}",
                    Errno(&error)
                );
                said.push((Level::Emerg, message.to_string()));
            }
        }
    }
    gates
}

/// Whether this process, or one whose place it has taken, was given sockets by systemd.
pub(super) fn has_sockets() -> bool {
    env::var_os("LISTEN_FDS").is_some()
}

/// What systemd is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The configuration is being served.
    Ready,
    /// Another one is being read.
    Reloading,
    /// The master is ending.
    Stopping,
}

/// The way to systemd, where there is one.
#[derive(Debug)]
pub(super) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants a sign of life, and when the next is due.
    watchdog: Option<(Duration, Instant)>,
}

impl Manager {
    /// As the environment says it.
    pub(super) fn from_environment() -> Manager {
        let socket = env::var("NOTIFY_SOCKET").ok().and_then(|name| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address.ok()?))
        });
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        // A binary that takes another's place has another number than systemd has started.
        let timeout = number("WATCHDOG_USEC").map(Duration::from_micros);
        let watchdog = timeout
            .filter(|_| socket.is_some())
            .map(|timeout| (timeout / SIGNS_PER_TIMEOUT, Instant::now()));
        Manager { socket, watchdog }
    }

    /// Sends a state (sd_notify(3)).
    pub(super) fn notify(&self, state: State) {
        let text = match state {
            State::Ready => format!("READY=1\nMAINPID={}", process::id()),
            State::Reloading => {
                format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1000)
            }
            State::Stopping => "STOPPING=1".to_owned(),
        };
        self.send(&text);
    }

    /// When the next sign of life is due.
    pub(super) fn next_sign(&self) -> Option<Instant> {
        self.watchdog.map(|(_, due)| due)
    }

    /// Whether a sign of life is due; said once for each. Returns the time that systemd waits.
    pub(super) fn take_due_sign(&mut self, now: Instant) -> Option<Duration> {
        let (every, due) = self.watchdog.as_mut()?;
        if *due > now {
            return None;
        }
        *due = now + *every;
        Some(*every * SIGNS_PER_TIMEOUT)
    }

    /// Gives a sign of life.
    pub(super) fn give_sign(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen cannot be told so.
            let _: io::Result<usize> = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

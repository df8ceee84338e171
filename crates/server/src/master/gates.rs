//! The listening sockets. The master owns every one of them for as long as the configuration
//! wants it, so that neither a crash of the serving process nor a reload refuses a connection.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::file;

use super::open::{self, ListenAddress, Opened};
use crate::channel::{Extra, Seat};

pub use super::open::{AcceptMode, Listen};

/// How often an address that is in use is tried again, as nginx: a program that is just ending
/// may still hold it.
const BIND_TRIES: u32 = 5;
/// How long to wait between tries.
const BIND_PAUSE: Duration = Duration::from_millis(500);

/// An opened listening socket.
#[derive(Debug)]
struct Gate {
    id: u64,
    lane: Option<usize>,
    descriptor: OwnedFd,
}

/// All sockets of one `listen`.
#[derive(Debug)]
struct Group {
    listen: Listen,
    gates: Vec<Gate>,
    extras: Vec<(String, OwnedFd)>,
}

/// The sockets of one configuration; those that two configurations have in common are shared.
#[derive(Debug, Default)]
pub struct GateSet {
    groups: Vec<Arc<Group>>,
    next_id: u64,
}

/// Why the sockets could not be opened; it was logged where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotOpened {
    /// The port or path is another program's.
    pub in_use: bool,
}

impl GateSet {
    /// The sockets for `listens`: those of `self` where they fit, new ones else. Nothing of
    /// `self` is closed.
    ///
    /// # Errors
    /// The first address that cannot be opened, after nginx's message has been logged.
    pub fn extend(
        &self,
        listens: Vec<Listen>,
        lanes: usize,
        log: &ErrorLog,
        patient: bool,
    ) -> Result<GateSet, NotOpened> {
        let mut set = GateSet {
            groups: Vec::with_capacity(listens.len()),
            next_id: self.next_id,
        };
        for listen in listens {
            let known = self.groups.iter().find(|group| group.fits(&listen, lanes));
            let group = match known {
                Some(group) => {
                    open::adjust(&group.listen, &listen, group.descriptors());
                    Arc::clone(group)
                }
                None => Arc::new(set.open(listen, lanes, log, patient)?),
            };
            set.groups.push(group);
        }
        Ok(set)
    }

    /// Copies of all descriptors, for a bundle.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub fn seats(&self) -> io::Result<Vec<Seat>> {
        let mut seats = Vec::new();
        for (listen, group) in self.groups.iter().enumerate() {
            for gate in &group.gates {
                let descriptor = gate.descriptor.try_clone()?;
                seats.push(Seat {
                    listen,
                    gate: gate.id,
                    lane: gate.lane,
                    descriptor,
                });
            }
        }
        Ok(seats)
    }

    /// Copies of what else belongs to the gates.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub fn extras(&self) -> io::Result<Vec<Extra>> {
        let mut extras = Vec::new();
        for (listen, group) in self.groups.iter().enumerate() {
            for (name, descriptor) in &group.extras {
                let name = format!("{listen}:{name}");
                extras.push(Extra {
                    name,
                    descriptor: descriptor.try_clone()?,
                });
            }
        }
        Ok(extras)
    }

    /// Removes the files of unix sockets that `kept` does not have.
    pub fn unlink_except(&self, kept: &GateSet, log: &ErrorLog) {
        for group in &self.groups {
            let address = &group.listen.address;
            let ListenAddress::Unix(path) = address else {
                continue;
            };
            if kept
                .groups
                .iter()
                .any(|group| &group.listen.address == address)
            {
                continue;
            }
            log.event(
                Level::Notice,
                format_args!("deleting socket {}", path.display()),
            );
            unlink(path, log);
        }
    }

    fn open(
        &mut self,
        listen: Listen,
        lanes: usize,
        log: &ErrorLog,
        patient: bool,
    ) -> Result<Group, NotOpened> {
        let opened = open_patiently(&listen, lanes, log, patient)?;
        let mut gates = Vec::with_capacity(opened.sockets.len());
        for (lane, descriptor) in opened.sockets {
            self.next_id += 1;
            gates.push(Gate {
                id: self.next_id,
                lane,
                descriptor,
            });
        }
        Ok(Group {
            listen,
            gates,
            extras: opened.extras,
        })
    }
}

impl Group {
    /// Whether these sockets can serve what `listen` asks for.
    fn fits(&self, listen: &Listen, lanes: usize) -> bool {
        let per_lane = listen.mode.is_per_lane();
        self.listen.address == listen.address
            && self.listen.mode.is_per_lane() == per_lane
            && (!per_lane || self.gates.len() == lanes)
    }

    fn descriptors(&self) -> impl Iterator<Item = std::os::fd::BorrowedFd<'_>> {
        self.gates.iter().map(|gate| gate.descriptor.as_fd())
    }
}

fn open_patiently(
    listen: &Listen,
    lanes: usize,
    log: &ErrorLog,
    patient: bool,
) -> Result<Opened, NotOpened> {
    let mut tries = 0;
    loop {
        let failure = match open::open(listen, lanes) {
            Ok(opened) => return Ok(opened),
            Err(failure) => failure,
        };
        let error = Errno(&failure.error);
        log.event(Level::Emerg, format_args!("{} {error}", failure.action));
        tries += 1;
        let in_use = failure.error.kind() == io::ErrorKind::AddrInUse;
        if !in_use || !patient || tries == BIND_TRIES {
            if in_use && patient {
                log.event(Level::Emerg, format_args!("still could not bind()"));
            }
            return Err(NotOpened { in_use });
        }
        if tries == 1 {
            let milliseconds = BIND_PAUSE.as_millis();
            let message = format_args!("try again to bind() after {milliseconds}ms");
            log.event(Level::Notice, message);
        }
        thread::sleep(BIND_PAUSE);
    }
}

fn unlink(path: &Path, log: &ErrorLog) {
    if let Err(error) = file::unlink(path.as_os_str().as_bytes()) {
        let message = format_args!("unlink() {} failed {}", path.display(), Errno(&error));
        log.event(Level::Emerg, message);
    }
}

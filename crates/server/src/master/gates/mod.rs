//! The listening sockets. The master owns every one of them for as long as the configuration
//! wants its address, so that neither a crash of the serving process nor a reload refuses or resets
//! a connection.
//!
//! An address keeps every socket it ever had. With fewer lanes some are **spare**: the kernel is
//! told to choose them no more, and a lane that stays watches each, for the handshakes that were
//! under way. Closing them would reset what waits there on kernels that do not move it, and lose a
//! wake-up on some that do (CVE-2026-46015); an idle socket costs less than either. The next
//! configuration with more lanes takes them first.
//!
//! The sockets of datagrams of a removed address are **closing** as long as a serving process uses
//! them: flows and connections go on that send by them, so nobody can bind the address. The next
//! configuration that wants it takes them back.

mod shared_ports;
mod steer;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use turnpike_express::{Passed, ProgramSettings};
use turnpike_host::{Endpoint, Holder, Host};
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::gate::{
    AcceptMode, BIND_ATTEMPTS_MAX, BIND_PAUSE_MS, Gate, GateError, ListenAddress, ListenOptions,
    Reuseport,
};
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::steering::KernelBoard;
use turnpike_lane::sys::socket::Kind;
use turnpike_lane::sys::{socket, socket_option};
use turnpike_plan::product::Product;

use crate::channel::{BOARD_NAME, Extra, ListeningSocket, express_extras};
use crate::needs::Listen;

use super::express::Express;
use shared_ports::SharedPorts;
use steer::{Board, Chooser};

/// An opened socket. Its number is its own: a socket opened later never has it again.
#[derive(Debug)]
struct Held {
    id: u64,
    gate: Gate,
    /// systemd has it too, and goes on with it when this server is gone.
    is_lent: bool,
}

/// All sockets of one address: one, or one for each lane in the order of lanes, then the spare
/// ones. Their order is that in which they were opened, by which the kernel numbers them too.
#[derive(Clone, Debug)]
struct Group {
    listen: Listen,
    gates: Vec<Arc<Held>>,
    /// How many of them the kernel chooses among, at least one.
    active: usize,
    chooser: Option<Arc<Chooser>>,
}

impl Group {
    /// Has its sockets overlook what comes: nobody reads it.
    fn overlook(&self) {
        for held in &self.gates {
            // Without it, what came meanwhile is read when the address comes back.
            let _ = socket_option::stop_listening(held.gate.as_fd());
        }
    }
}

/// The sockets of one configuration; those that two configurations have in common are shared.
#[derive(Debug, Default)]
pub(super) struct GateSet {
    groups: Vec<Group>,
    /// Sockets of addresses that the configuration has no more.
    closing: Vec<Group>,
    board: Board,
    express: Option<Arc<Express>>,
    next_id: u64,
}

/// Why the sockets could not be opened; it was logged where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotOpened {
    /// The port or path is another program's.
    pub(super) in_use: bool,
}

/// How sockets are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening<'a> {
    /// How many lanes there are.
    pub(super) lanes: usize,
    /// The CPUs of each lane; empty when they are not pinned.
    pub(super) homes: &'a [CpuSet],
    /// Where failures are told.
    pub(super) log: &'a ErrorLog,
    /// Whether an address that is in use is tried again, as nginx does: a program that is just
    /// ending may still hold it.
    pub(super) is_patient: bool,
    /// The name that the server goes by: nginx tells of each try.
    pub(super) product: Product,
}

impl GateSet {
    /// The sockets for `listens`: those of `self` where they fit, new ones else. Nothing of
    /// `self` is closed.
    ///
    /// # Errors
    /// The first address that cannot be opened, after nginx's message has been logged.
    pub(super) fn extend(
        &self,
        listens: Vec<Listen>,
        opening: Opening<'_>,
    ) -> Result<GateSet, NotOpened> {
        let mut set = GateSet {
            groups: Vec::with_capacity(listens.len()),
            closing: Vec::new(),
            board: self.board.clone(),
            express: self.express.clone(),
            next_id: self.next_id,
        };
        let shared = SharedPorts::of(listens.iter().map(|listen| &listen.address));
        self.share_ports(&shared);
        // Those that are new first: what fails does so before anything that is served is touched.
        let (known, new): (Vec<_>, Vec<_>) = listens
            .into_iter()
            .enumerate()
            .partition(|(_, listen)| self.held_at(&listen.address).is_some());
        let mut groups = Vec::new();
        for (place, listen) in new.into_iter().chain(known) {
            let old = self.held_at(&listen.address);
            let is_shared = shared.has(&listen.address);
            groups.push((place, set.obtain(old, listen, is_shared, opening)?));
        }
        groups.sort_by_key(|(place, _)| *place);
        set.groups = groups.into_iter().map(|(_, group)| group).collect();
        Ok(set)
    }

    /// Keeps what `old` had of datagrams and this configuration has no more.
    pub(super) fn keep_closing(&mut self, old: GateSet) {
        let is_datagram = |group: &Group| group.listen.address.kind() == Kind::Datagram;
        let gone = old.groups.into_iter().filter(is_datagram);
        for group in gone.chain(old.closing) {
            if self.held_at(&group.listen.address).is_none() {
                group.overlook();
                self.closing.push(Group {
                    // As of one that was inherited: the kernel is told anew.
                    active: 0,
                    chooser: None,
                    ..group
                });
            }
        }
    }

    /// Closes the sockets of removed addresses of which `is_used` says that no process uses them,
    /// by their numbers.
    pub(super) fn close_unused(&mut self, is_used: impl Fn(u64) -> bool) {
        self.closing
            .retain(|group| group.gates.iter().any(|held| is_used(held.id)));
    }

    /// Whether flows may go on by one of the sockets.
    pub(super) fn has_datagrams(&self) -> bool {
        let mut groups = self.groups.iter().chain(&self.closing);
        groups.any(|group| group.listen.address.kind() == Kind::Datagram)
    }

    /// The numbers of all sockets of the configuration.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        let gates = self.groups.iter().flat_map(|group| &group.gates);
        gates.map(|held| held.id)
    }

    /// Lets other addresses of their ports be bound beside sockets.
    fn share_ports(&self, shared: &SharedPorts) {
        let is_shared = |group: &&Group| shared.has(&group.listen.address);
        for held in self
            .groups
            .iter()
            .filter(is_shared)
            .flat_map(|group| &group.gates)
        {
            // Without it the kernel refuses the others, and says so.
            let _ = socket_option::set_reuse_port(held.gate.as_fd(), true);
        }
    }

    /// Sockets that another master has opened, in its order: that of lanes at each address.
    /// `is_lent`: they are systemd's.
    pub(super) fn inherited(gates: Vec<Gate>, is_lent: bool) -> GateSet {
        let mut set = GateSet::default();
        for gate in gates {
            set.next_id += 1;
            let id = set.next_id;
            set.put(Held { id, gate, is_lent });
        }
        set
    }

    /// Sockets that a serving process holds whose master is gone, with their numbers, in its order;
    /// `board` is the one that its lanes tell on. Where `lent` has an address too, it is systemd's.
    ///
    /// # Errors
    /// One of them is no listening socket.
    pub(super) fn adopted(
        sockets: Vec<(u64, OwnedFd)>,
        board: Option<OwnedFd>,
        lent: &GateSet,
    ) -> io::Result<GateSet> {
        let mut set = GateSet::default();
        for (id, socket) in sockets {
            let gate = Gate::adopt(socket)?;
            set.next_id = set.next_id.max(id);
            // A reload that was under way may have had it overlook what comes.
            let _ = socket_option::set_hearing(gate.as_fd());
            let is_lent = lent.group_of(gate.address()).is_some();
            set.put(Held { id, gate, is_lent });
        }
        for group in &lent.groups {
            if set.group_of(&group.listen.address).is_none() {
                set.groups.push(group.clone());
            }
        }
        set.next_id = set.next_id.max(lent.next_id);
        // That of another version is not read by our program: the next serving process gets ours.
        let board = board.and_then(|board| KernelBoard::adopt(board).ok());
        set.board = board.map(|board| Ok(Arc::new(board)));
        Ok(set)
    }

    /// Takes a socket that was opened elsewhere.
    fn put(&mut self, held: Held) {
        let address = held.gate.address().clone();
        let held = Arc::new(held);
        let mut known = self.groups.iter_mut();
        match known.find(|group| group.listen.address == address) {
            Some(group) => group.gates.push(held),
            None => self.groups.push(Group {
                listen: Listen {
                    address,
                    options: ListenOptions::default(),
                    mode: AcceptMode::Shared,
                },
                gates: vec![held],
                // Unknown: whatever the kernel was told is told anew.
                active: 0,
                chooser: None,
            }),
        }
    }

    /// Copies of all descriptors, for another master.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let all = self.groups.iter().flat_map(|group| &group.gates);
        all.map(|held| held.gate.as_fd().try_clone_to_owned())
            .collect()
    }

    /// The address of each listen.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        let gates = self.groups.iter().filter_map(|group| group.gates.first());
        gates.map(|held| held.gate.address())
    }

    /// Has the kernel choose as this set wants it: another master, now gone, had it choose by its
    /// own.
    pub(super) fn open_again(&mut self, opening: Opening<'_>) {
        self.renew_express();
        for group in &mut self.groups {
            if steer::renew(group, opening) {
                continue;
            }
            // As if nothing was known of it.
            let before = Group {
                active: 0,
                chooser: None,
                ..group.clone()
            };
            group.chooser = steer::choose(group, Some(&before), &mut self.board, opening);
        }
    }

    /// Copies of all descriptors, for a bundle.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn listening_sockets(&self) -> io::Result<Vec<ListeningSocket>> {
        let mut listening_sockets = Vec::new();
        for (listen, group) in self.groups.iter().enumerate() {
            let steering = group.chooser.as_ref().map(|chooser| chooser.level());
            for (lane, held) in group.gates.iter().enumerate() {
                let per_lane = group.listen.mode.has_gate_per_lane();
                let lane = per_lane.then_some(lane % group.active);
                let descriptor = held.gate.as_fd().try_clone_to_owned()?;
                listening_sockets.push(ListeningSocket {
                    listen,
                    gate: held.id,
                    lane,
                    steering,
                    descriptor,
                });
            }
        }
        Ok(listening_sockets)
    }

    /// Copies of what else belongs to the gates.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn extras(&self) -> io::Result<Vec<Extra>> {
        let board = steer::board_copy(&self.board)?;
        let extra = |descriptor| Extra {
            name: BOARD_NAME.to_owned(),
            descriptor,
        };
        let mut extras: Vec<Extra> = board.map(extra).into_iter().collect();
        if let Some(express) = &self.express {
            extras.extend(express_extras(express.pass()?));
        }
        Ok(extras)
    }

    /// Takes the express lane's program that another process has passed.
    pub(super) fn take_express(&mut self, passed: Passed) {
        self.express = Express::take(passed);
    }

    /// The express lane's program, where there is one.
    pub(super) fn express(&self) -> Option<&Express> {
        self.express.as_deref()
    }

    /// Puts the express lane's program back where another master has put its own.
    pub(super) fn renew_express(&self) {
        if let Some(express) = &self.express {
            express.renew();
        }
    }

    /// Has the express lane's program in place, where it is wanted. Where it is wanted no more the
    /// serving process has it answer no more, and it is detached later: see [`express::Step`].
    pub(super) fn place_express(&mut self, wish: Option<&ProgramSettings>, log: &ErrorLog) {
        if let Some(wish) = wish {
            self.express = Express::place(self.express.take(), wish, log);
        }
    }

    /// Has the sockets of addresses that `kept` does not have overlook what comes from now on:
    /// lanes can then empty their queues, and closing them resets nothing. Datagrams have no
    /// connections in a queue, and those of QUIC go on to their end.
    pub(super) fn stop_listening_except(&self, kept: &GateSet) {
        for group in &self.groups {
            let address = &group.listen.address;
            if address.kind() != Kind::Stream {
                continue;
            }
            let kept = kept.group_of(address);
            let kept = kept.map_or(&[][..], |group| &group.gates);
            let is_kept = |held: &Held| kept.iter().any(|own| own.id == held.id);
            // One that is lent is not closed by our letting go of it.
            for held in group
                .gates
                .iter()
                .filter(|held| !held.is_lent && !is_kept(held))
            {
                // Without it a connection of the last instant may be reset.
                let _ = socket_option::stop_listening(held.gate.as_fd());
            }
        }
    }

    /// Has all sockets hear again what [`GateSet::stop_listening_except`] had them overlook.
    pub(super) fn hear_again(&self) {
        for held in self.groups.iter().flat_map(|group| &group.gates) {
            // It fails where the filter was never set.
            let _ = socket_option::set_hearing(held.gate.as_fd());
        }
    }

    /// Whether an address has a socket that the kernel lets others have too.
    pub(super) fn shares_addresses(listens: &[Listen]) -> bool {
        let ports = SharedPorts::of(listens.iter().map(|listen| &listen.address));
        !ports.is_empty() || listens.iter().any(|listen| listen.mode.has_gate_per_lane())
    }

    /// Stays in force after all: `other` was opened, perhaps handed over, and is given up. Sockets
    /// that it has opened at addresses of `self` stay as spare ones, since something may wait
    /// there. Returns whether there are any, so that somebody must be told to watch them.
    pub(super) fn reinstate(&mut self, other: GateSet, opening: Opening<'_>) -> bool {
        let mut fresh = false;
        self.next_id = self.next_id.max(other.next_id);
        self.board = other.board;
        self.renew_express();
        for group in &mut self.groups {
            let same = |other: &&Group| other.listen.address == group.listen.address;
            match other.groups.iter().find(same) {
                Some(other) => {
                    let more = other.gates.iter().skip(group.gates.len());
                    let known = group.gates.len();
                    group.gates.extend(more.cloned());
                    fresh |= group.gates.len() > known;
                    let chooser = steer::choose(group, Some(other), &mut self.board, opening);
                    group.chooser = chooser;
                }
                None => {
                    for held in &group.gates {
                        // It fails where the filter was never set.
                        let _ = socket_option::set_hearing(held.gate.as_fd());
                    }
                }
            }
        }
        // Some may have been taken back.
        self.closing.iter().for_each(Group::overlook);
        fresh
    }

    /// Puts the steering program in charge where it could not be: the kernel lets a socket be known
    /// to one program's array at a time, and that of a master before this one may have been there.
    /// Returns whether lanes must be told, and whether it is still to be tried.
    pub(super) fn steer_again(&mut self, opening: Opening<'_>) -> (bool, bool) {
        let (mut changed, mut wanting) = (false, false);
        for group in &mut self.groups {
            let is_steered = |group: &Group| {
                group
                    .chooser
                    .as_ref()
                    .is_none_or(|chooser| chooser.is_program())
            };
            if is_steered(group) || !matches!(self.board, Some(Ok(_))) {
                continue;
            }
            let before = group.clone();
            group.chooser = steer::choose(group, Some(&before), &mut self.board, opening);
            changed |= is_steered(group);
            wanting |= !is_steered(group);
        }
        (changed, wanting)
    }

    fn group_of(&self, address: &ListenAddress) -> Option<&Group> {
        let mut groups = self.groups.iter();
        groups.find(|group| &group.listen.address == address)
    }

    /// The sockets of an address, those too that the configuration has no more.
    fn held_at(&self, address: &ListenAddress) -> Option<&Group> {
        let closing = || {
            let mut groups = self.closing.iter();
            groups.find(|group| &group.listen.address == address)
        };
        self.group_of(address).or_else(closing)
    }

    /// Connections that wait at sockets of addresses that `kept` does not have.
    pub(super) fn queued_except(&self, kept: &GateSet) -> u64 {
        let gone = self.groups.iter();
        let gone = gone.filter(|group| kept.group_of(&group.listen.address).is_none());
        let queued = |held: &Arc<Held>| match held.gate.queue() {
            Ok(Some((queued, _))) => u64::from(queued),
            // A unix socket does not tell.
            Ok(None) | Err(_) => 0,
        };
        gone.flat_map(|group| &group.gates).map(queued).sum()
    }

    /// Removes the files of unix sockets that `kept` does not have.
    pub(super) fn unlink_except(&self, kept: &GateSet, log: &ErrorLog) {
        for group in &self.groups {
            let address = &group.listen.address;
            let is_kept = kept.group_of(address).is_some();
            let (ListenAddress::Unix(_), Some(held), false) =
                (address, group.gates.first(), is_kept)
            else {
                continue;
            };
            let text = address.to_string();
            let path = text.trim_start_matches("unix:");
            log.event(Level::Notice, format_args!("deleting socket {path}"));
            if let Err(error) = held.gate.remove_file() {
                let error = Errno(&error);
                log.event(Level::Emerg, format_args!("unlink() {path} failed {error}"));
            }
        }
    }

    /// The sockets of one address: what `old` has of them, and what is missing. `is_shared`: other
    /// addresses share its port.
    fn obtain(
        &mut self,
        old: Option<&Group>,
        listen: Listen,
        is_shared: bool,
        opening: Opening<'_>,
    ) -> Result<Group, NotOpened> {
        let per_lane = listen.mode.has_gate_per_lane();
        let wanted = if per_lane { opening.lanes } else { 1 };
        let known = old.map_or(&[][..], |group| &group.gates);
        let mut gates: Vec<Arc<Held>> = known.to_vec();
        let multipath = listen.options.multipath && has_multipath(&listen.address, opening.log);
        let is_other = replace_others(&mut gates, multipath);
        let options = ListenOptions {
            reuseport: if per_lane || is_shared || is_other {
                Reuseport::Hash
            } else {
                Reuseport::None
            },
            multipath,
            ..listen.options.clone()
        };
        let mut ignored = Vec::new();
        for held in &gates {
            if listen.address.kind() == Kind::Datagram {
                // It fails where the socket was not to be closed.
                let _ = socket_option::set_hearing(held.gate.as_fd());
            }
            held.gate.configure(&options, &mut ignored);
            if gates.len() < wanted {
                // Without it the kernel refuses the others, and says so.
                let _ = socket_option::set_reuse_port(held.gate.as_fd(), true);
            }
        }
        while gates.len() < wanted {
            // With port 0 the first socket's port is everybody's.
            let first = gates.first().map(|held| held.gate.address().clone());
            let address = first.unwrap_or_else(|| listen.address.clone());
            let gate = open_patiently(&address, &options, opening, &mut ignored)?;
            self.next_id += 1;
            gates.push(Arc::new(Held {
                id: self.next_id,
                gate,
                is_lent: false,
            }));
        }
        for failure in &ignored {
            let (sentence, error) = (failure.sentence(&listen.address), Errno(&failure.error));
            opening
                .log
                .event(Level::Alert, format_args!("{sentence} {error}, ignored"));
        }
        let mut group = Group {
            listen,
            gates,
            active: wanted,
            chooser: None,
        };
        group.chooser = steer::choose(&group, old, &mut self.board, opening);
        Ok(group)
    }
}

/// Whether the kernel has Multipath TCP. A warning is logged if not: clients then use TCP.
fn has_multipath(address: &ListenAddress, log: &ErrorLog) -> bool {
    let probe = socket::open_multipath(address.family());
    if let Err(error) = &probe {
        let error = Errno(error);
        let message = format_args!(
            "multipath is not supported by the kernel {error}, {address} listens for TCP"
        );
        log.event(Level::Warn, message);
    }
    probe.is_ok()
}

/// Leaves those sockets out that are of the other kind, Multipath TCP or TCP; others are opened
/// beside them, which takes their consent. Sockets of systemd stay what they are. Returns whether
/// there were any.
fn replace_others(gates: &mut Vec<Arc<Held>>, multipath: bool) -> bool {
    let is_other = |held: &mut Arc<Held>| {
        let is_tcp = matches!(held.gate.address(), ListenAddress::Tcp(_));
        is_tcp && !held.is_lent && held.gate.is_multipath() != multipath
    };
    let others: Vec<Arc<Held>> = gates.extract_if(.., is_other).collect();
    for held in &others {
        // Without it the kernel refuses the others, and says so.
        let _ = socket_option::set_reuse_port(held.gate.as_fd(), true);
    }
    !others.is_empty()
}

/// The process that has an address, if this user may see that.
pub(super) fn holder(address: &ListenAddress) -> Option<Holder> {
    let path = match address {
        ListenAddress::Unix(path) => String::from_utf8_lossy(path),
        ListenAddress::Tcp(_) | ListenAddress::Udp(_) => "".into(),
    };
    let endpoint = match address {
        ListenAddress::Tcp(address) => Endpoint::Tcp(*address),
        ListenAddress::Udp(address) => Endpoint::Udp(*address),
        ListenAddress::Unix(_) => Endpoint::Unix(&path),
    };
    Host::here().holder(endpoint)
}

fn open_patiently(
    address: &ListenAddress,
    options: &ListenOptions,
    opening: Opening<'_>,
    ignored: &mut Vec<GateError>,
) -> Result<Gate, NotOpened> {
    let Opening {
        log,
        is_patient,
        product,
        ..
    } = opening;
    let is_own_name = product == Product::Turnpike;
    let mut tries = 0;
    loop {
        let failure = match Gate::open(address, options, ignored) {
            Ok(gate) => return Ok(gate),
            Err(failure) => failure,
        };
        let (sentence, error) = (failure.sentence(address), Errno(&failure.error));
        let in_use = failure.is_address_in_use();
        if tries == 0 || !is_own_name {
            let holder = if in_use && is_own_name {
                holder(address)
            } else {
                None
            };
            let holder = holder
                .map(|Holder { process, name }| format!("; process {process} ({name}) has it"));
            let holder = holder.unwrap_or_default();
            log.event(Level::Emerg, format_args!("{sentence} {error}{holder}"));
        }
        tries += 1;
        if !in_use || !is_patient {
            return Err(NotOpened { in_use });
        }
        if tries == BIND_ATTEMPTS_MAX {
            log.event(Level::Emerg, format_args!("still could not bind()"));
            return Err(NotOpened { in_use });
        }
        let message = format_args!("try again to bind() after {BIND_PAUSE_MS}ms");
        log.event(Level::Notice, message);
        thread::sleep(Duration::from_millis(BIND_PAUSE_MS));
    }
}

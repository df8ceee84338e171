//! Steered sockets: putting the kernel's chooser in charge, and saying what stood in its way.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use turnpike_lane::gate::{AcceptMode, Gate, ListenAddress};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::steering::{self, KernelBoard, Reason, SteerRules, Steering};

use super::{Group, Opening};

/// The board, made when the first steered address asks for it; the reason why it cannot be had.
pub(super) type Board = Option<Result<Arc<KernelBoard>, Reason>>;

/// How the sockets of an address are steered.
#[derive(Debug)]
pub(super) struct Chooser {
    /// Kept for as long as the sockets: the kernel's program is told of changes through it.
    steering: Steering,
}

impl Chooser {
    pub(super) fn level(&self) -> steering::Level {
        self.steering.level()
    }

    pub(super) fn is_program(&self) -> bool {
        self.level() == steering::Level::Program
    }
}

/// Has the kernel choose among the active sockets of `group` as its mode wants it, going on from
/// how `old`, the sockets of the same address before, are steered. `None`: by nothing of ours.
pub(super) fn choose(
    group: &Group,
    old: Option<&Group>,
    board: &mut Board,
    opening: Opening<'_>,
) -> Option<Arc<Chooser>> {
    let Group {
        listen,
        gates,
        active,
        ..
    } = group;
    let old_chooser = old.and_then(|group| group.chooser.as_ref());
    let copies: io::Result<Vec<Gate>> = gates.iter().map(|held| copy(&held.gate)).collect();
    let copies = copies.unwrap_or_default();
    let Some(rules) = rules_of(listen.mode) else {
        if old_chooser.is_some() || old.is_some_and(|old| old.active != *active) {
            steering::prefer_first(&copies, *active);
        }
        return None;
    };
    // The CPUs of lanes that are no more, or not yet, say nothing.
    let homes = &opening.homes[..opening.homes.len().min(*active)];
    if let Some(chooser) = old_chooser {
        let adjusted = chooser.steering.adjust(&copies, *active, homes, rules);
        if adjusted.is_ok() {
            return Some(Arc::clone(chooser));
        }
    }
    let board = board.get_or_insert_with(|| KernelBoard::create().map(Arc::new));
    let known = board.as_ref().map(Arc::as_ref).map_err(|reason| *reason);
    let steering = Steering::begin_first(&copies, *active, homes, known, rules);
    let is_news = old_chooser.is_none_or(|old| old.steering.level() != steering.level());
    if let Some(held) = gates.first().filter(|_| is_news) {
        say(&steering, rules, held.gate.address(), opening.log);
    }
    Some(Arc::new(Chooser { steering }))
}

/// Puts the program of `group` in charge again after another master's choice; `false`: it has none,
/// or it cannot be.
pub(super) fn renew(group: &Group, opening: Opening<'_>) -> bool {
    let Some(chooser) = group.chooser.as_ref().filter(|own| own.is_program()) else {
        return false;
    };
    let copies: io::Result<Vec<Gate>> = group.gates.iter().map(|held| copy(&held.gate)).collect();
    let homes = &opening.homes[..opening.homes.len().min(group.active)];
    let Some(rules) = rules_of(group.listen.mode) else {
        return false;
    };
    let renewed = copies.map(|copies| {
        chooser
            .steering
            .renew(&copies, group.active, homes, rules)
            .is_ok()
    });
    renewed.unwrap_or(false)
}

/// How the sockets of an address in this mode are steered; `None`: not by us.
fn rules_of(mode: AcceptMode) -> Option<SteerRules> {
    match mode {
        AcceptMode::Steered => Some(SteerRules::default()),
        AcceptMode::SteeredQuic => Some(SteerRules {
            is_quic: true,
            ..SteerRules::default()
        }),
        AcceptMode::Mutex | AcceptMode::Shared | AcceptMode::Reuseport => None,
    }
}

/// The board's descriptor, for the lanes to map.
pub(super) fn board_copy(board: &Board) -> io::Result<Option<OwnedFd>> {
    match board {
        Some(Ok(board)) => board.as_fd().try_clone_to_owned().map(Some),
        Some(Err(_)) | None => Ok(None),
    }
}

fn copy(gate: &Gate) -> io::Result<Gate> {
    Gate::adopt(gate.as_fd().try_clone_to_owned()?)
}

/// Each step down is said once, when it is taken.
fn say(steering: &Steering, rules: SteerRules, address: &ListenAddress, log: &ErrorLog) {
    let level = steering.level();
    // While a binary is changed the program is the other one's; it is ours when that one is gone.
    let is_for_now = steering.reasons().contains(&Reason::OtherProgram);
    let severity = match level {
        steering::Level::Program => Level::Notice,
        _ if is_for_now => Level::Notice,
        // Lanes give each other the datagrams of QUIC, which nobody has asked to steer.
        _ if rules.is_quic => Level::Notice,
        _ => Level::Warn,
    };
    let what = if rules.is_quic {
        "datagrams"
    } else {
        "connections"
    };
    for reason in steering.reasons() {
        log.event(
            severity,
            format_args!("steering {what} to {address}: {reason}"),
        );
    }
    let way = match level {
        steering::Level::Program => "by the steering program",
        steering::Level::IncomingCpu => "by SO_INCOMING_CPU",
        steering::Level::CpuFilter => "by a classic BPF filter on the CPU",
        steering::Level::Hash => "by hash, as plain \"reuseport\"",
    };
    log.event(
        severity,
        format_args!("{what} to {address} are distributed {way}"),
    );
}

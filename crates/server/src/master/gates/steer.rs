//! Steered sockets: putting the kernel's chooser in charge, and saying what stood in its way.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use turnpike_lane::affinity::CpuSet;
use turnpike_lane::gate::{AcceptMode, Gate, ListenAddress};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::steering::{self, KernelBoard, Reason, SteerRules, Steering};
use turnpike_lane::sys::reuseport;

use super::{Group, Held, Opening};

/// What a bundle calls the board on which lanes tell how they are.
pub(crate) const BOARD_NAME: &str = "board";

/// The board, made when the first steered address asks for it; the reason why it cannot be had.
pub(super) type Board = Option<Result<Arc<KernelBoard>, Reason>>;

/// How the sockets of an address are steered, and for which lanes.
#[derive(Debug)]
pub(super) struct Chooser {
    /// Kept for as long as the sockets: the kernel's program is told of changes through it.
    _steering: Steering,
    homes: Vec<CpuSet>,
}

/// Steers the sockets of `gates`, unless `old` does so already; `None` when they are not to be.
pub(super) fn choose(
    mode: AcceptMode,
    gates: &[Arc<Held>],
    old: Option<&Group>,
    board: &mut Board,
    opening: Opening<'_>,
) -> Option<Arc<Chooser>> {
    let old_chooser = old.and_then(|group| group.chooser.as_ref());
    if mode != AcceptMode::Steered {
        if let (Some(_), Some(held)) = (old_chooser, gates.first()) {
            // It fails only where no program is in charge.
            let _ = reuseport::detach(held.gate.as_fd());
        }
        return None;
    }
    let is_same = old.is_some_and(|group| {
        group
            .gates
            .iter()
            .map(|held| held.id)
            .eq(gates.iter().map(|held| held.id))
    });
    if let Some(chooser) = old_chooser.filter(|chooser| is_same && chooser.homes == opening.homes) {
        return Some(Arc::clone(chooser));
    }
    let copies: io::Result<Vec<Gate>> = gates.iter().map(|held| copy(&held.gate)).collect();
    let board = board.get_or_insert_with(|| KernelBoard::create().map(Arc::new));
    let known = board.as_ref().map(Arc::as_ref).map_err(|reason| *reason);
    let copies = copies.unwrap_or_default();
    let steering = Steering::begin(&copies, opening.homes, known, SteerRules::default());
    if let Some(held) = gates.first() {
        say(&steering, held.gate.address(), opening.log);
    }
    Some(Arc::new(Chooser {
        _steering: steering,
        homes: opening.homes.to_vec(),
    }))
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
fn say(steering: &Steering, address: &ListenAddress, log: &ErrorLog) {
    let level = steering.level();
    let severity = match level {
        steering::Level::Program => Level::Notice,
        _ => Level::Warn,
    };
    for reason in steering.reasons() {
        log.event(
            severity,
            format_args!("steering connections to {address}: {reason}"),
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
        format_args!("connections to {address} find their lane {way}"),
    );
}

//! Steering: which lane's gate gets a new connection, when every lane has one.
//!
//! By hash alone (`reuseport`), a lane that the scheduler has taken off its CPU, or that is busy,
//! gets its share all the same, and its queue waits. So a small program in the kernel chooses,
//! by what lanes tell on a board. Where that cannot be, there is a ladder downwards, and each step
//! down has a [`Reason`] which the caller logs once.
//!
//! ```text
//! program (the freest lane, the packet's CPU first) ─► SO_INCOMING_CPU ─► CPU filter ─► hash
//! ```

use std::{fmt, os::fd::AsFd};

use crate::{
    affinity::CpuSet,
    gate::Gate,
    sys::{reuseport, socket::Kind, socket_option},
};

mod board;
#[cfg(feature = "ebpf")]
mod program;
#[cfg(not(feature = "ebpf"))]
#[path = "without.rs"]
mod program;
#[cfg(test)]
mod tests;

use program::Program;

pub use board::{Beat, LaneBoard, LanePulse, STEERED_LANES_MAX};
pub use program::KernelBoard;

/// Age from which a lane that is awake counts as stuck, in nanoseconds. A full round of events
/// takes a few milliseconds, a time slice of another task some more; a client that waits longer is
/// better served elsewhere.
pub const STALE_NS: u64 = 20_000_000;

/// Connections that the lane on the packet's CPU may have more than the freest one (which itself
/// counts for an eighth more): warm caches are worth a few connections' wait, not a queue.
pub const LOAD_SLACK: u64 = 8;

/// First kernel that looks at `SO_INCOMING_CPU` among the sockets of a reuseport address.
const INCOMING_CPU_KERNEL: (u32, u32) = (6, 2);

/// What the program goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteerRules {
    /// See [`STALE_NS`].
    pub stale_ns: u64,
    /// See [`LOAD_SLACK`].
    pub load_slack: u64,
}

impl Default for SteerRules {
    fn default() -> SteerRules {
        SteerRules {
            stale_ns: STALE_NS,
            load_slack: LOAD_SLACK,
        }
    }
}

/// How connections find their lane, from the best to the simplest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// By our program.
    Program,
    /// To the gate of the packet's CPU (`SO_INCOMING_CPU`).
    IncomingCpu,
    /// To the gate numbered like the packet's CPU (classic BPF).
    CpuFilter,
    /// By the kernel's hash: plain `reuseport`.
    Hash,
}

/// Why something better could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This program was built without the feature `ebpf`.
    NotBuilt,
    /// The kernel does not permit BPF to this process.
    NotPermitted,
    /// The kernel has no such program or map type, or refuses ours.
    NotSupported,
    /// The kernel has no memory for it.
    NoMemory,
    /// The gates are still known to a program of another process, that of a binary that is being
    /// replaced: to be tried again when it is gone.
    OtherProgram,
    /// More lanes than [`STEERED_LANES_MAX`].
    TooManyLanes,
    /// There is nothing to steer.
    NoGates,
    /// Connections that wait at a gate are lost when it is closed (before Linux 5.14).
    NoMigration,
    /// `SO_INCOMING_CPU` does not choose among gates (before Linux 6.2).
    OldKernel,
    /// Lanes are not pinned to one CPU each, so that a CPU does not say which lane.
    NotPinned,
    /// Lanes and CPUs do not have the same numbers, which the filter needs.
    OtherNumbers,
    /// The kernel refuses the option or the filter.
    OptionRefused,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Reason::NotBuilt => "this build has no steering program (feature \"ebpf\")",
            Reason::NotPermitted => {
                "the kernel does not permit the steering program (CAP_BPF, CAP_PERFMON, \
                 CAP_NET_ADMIN)"
            }
            Reason::NotSupported => "the kernel does not support the steering program",
            Reason::OtherProgram => {
                "the steering program of another process has these sockets still"
            }
            Reason::NoMemory => "the kernel has no memory for the steering program",
            Reason::TooManyLanes => "there are more lanes than the steering program looks at",
            Reason::NoGates => "there are no gates to steer to",
            Reason::NoMigration => {
                "connections that wait at a gate do not move when it is closed (Linux 5.14)"
            }
            Reason::OldKernel => "SO_INCOMING_CPU does not choose among gates (Linux 6.2)",
            Reason::NotPinned => "lanes are not pinned to one CPU each",
            Reason::OtherNumbers => "lanes and CPUs do not have the same numbers",
            Reason::OptionRefused => "the kernel refuses to choose by CPU",
        })
    }
}

impl std::error::Error for Reason {}

/// How the gates of one address are steered. The kernel keeps to it while they are open, whether
/// this is kept or not.
#[derive(Debug)]
pub struct Steering {
    level: Level,
    reasons: Vec<Reason>,
    program: Option<Program>,
}

impl Steering {
    /// Steers `gates` of one address, one a lane in the order of lanes, as well as it can be had.
    ///
    /// `homes` are the CPUs of each lane; empty when lanes are not pinned. `board` is what
    /// [`KernelBoard::create`] said. Never fails: at the worst the kernel's hash remains.
    pub fn begin(
        gates: &[Gate],
        homes: &[CpuSet],
        board: Result<&KernelBoard, Reason>,
        rules: SteerRules,
    ) -> Steering {
        Steering::begin_first(gates, gates.len(), homes, board, rules)
    }

    /// As [`Steering::begin`], for `lanes` lanes: gates beyond the first so many get nothing.
    pub fn begin_first(
        gates: &[Gate],
        lanes: usize,
        homes: &[CpuSet],
        board: Result<&KernelBoard, Reason>,
        rules: SteerRules,
    ) -> Steering {
        let mut reasons = Vec::new();
        match board.and_then(|board| Program::attach(board, gates, lanes, homes, rules)) {
            Ok(program) => {
                if !program.migrates {
                    reasons.push(Reason::NoMigration);
                }
                return Steering {
                    level: Level::Program,
                    reasons,
                    program: Some(program),
                };
            }
            Err(reason) => reasons.push(reason),
        }
        let kernel = kernel_version();
        let level = match set_incoming_cpus(gates, lanes, homes, kernel) {
            Ok(()) => Level::IncomingCpu,
            Err(reason) => {
                reasons.push(reason);
                match attach_filter(gates, lanes, homes) {
                    Ok(()) => Level::CpuFilter,
                    Err(reason) => {
                        reasons.push(reason);
                        prefer_first(gates, lanes);
                        Level::Hash
                    }
                }
            }
        };
        reasons.dedup();
        Steering {
            level,
            reasons,
            program: None,
        }
    }

    /// How it came out.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What stood in the way of something better; to be logged once.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Takes another number of gates, of lanes and other CPUs up, for gates that were opened after
    /// those it knows. Only the program can be told; at other levels this is an error, and the
    /// caller begins anew, which does no harm there.
    pub fn adjust(
        &self,
        gates: &[Gate],
        lanes: usize,
        homes: &[CpuSet],
        rules: SteerRules,
    ) -> Result<(), Reason> {
        match &self.program {
            Some(program) => program.adjust(gates, lanes, homes, rules),
            None => Err(Reason::NotSupported),
        }
    }

    /// Puts the program in charge once more, after another process had the kernel choose among
    /// these gates in its own way. Only the program can be: see [`Steering::adjust`].
    pub fn renew(
        &self,
        gates: &[Gate],
        lanes: usize,
        homes: &[CpuSet],
        rules: SteerRules,
    ) -> Result<(), Reason> {
        self.adjust(gates, lanes, homes, rules)?;
        match (&self.program, gates.first()) {
            (Some(program), Some(first)) => program.take_charge(first),
            _ => Err(Reason::NoGates),
        }
    }

    /// Gives lane number `lane` another gate of the same address. Nothing to do below
    /// [`Level::Program`].
    pub fn set_gate(&self, lane: usize, gate: &Gate) -> Result<(), Reason> {
        self.program
            .as_ref()
            .map_or(Ok(()), |program| program.set_gate(lane, gate))
    }
}

/// Gives the connections of an address to the first `lanes` of its gates; to all of them, by the
/// kernel's hash, when there are no more. It fails only where there is one gate, and no choice.
pub fn prefer_first(gates: &[Gate], lanes: usize) {
    let Some(first) = gates.first() else {
        return;
    };
    let _ = match (gates.len() > lanes, first.address().kind()) {
        (true, Kind::Stream) => reuseport::attach_first_filter(first.as_fd(), lanes as u32),
        (true, Kind::Datagram) => reuseport::attach_flow_filter(first.as_fd(), lanes as u32),
        (false, _) => reuseport::detach(first.as_fd()),
    };
}

fn set_incoming_cpus(
    gates: &[Gate],
    lanes: usize,
    homes: &[CpuSet],
    kernel: Option<(u32, u32)>,
) -> Result<(), Reason> {
    let cpus = single_cpus(lanes, homes)?;
    if kernel.is_none_or(|version| version < INCOMING_CPU_KERNEL) {
        return Err(Reason::OldKernel);
    }
    if gates.len() > lanes {
        // A gate that nobody shall choose cannot be told so.
        return Err(Reason::OptionRefused);
    }
    for (gate, cpu) in gates.iter().zip(cpus) {
        socket_option::set_incoming_cpu(gate.as_fd(), cpu as u32)
            .map_err(|_| Reason::OptionRefused)?;
    }
    prefer_first(gates, lanes);
    Ok(())
}

fn attach_filter(gates: &[Gate], lanes: usize, homes: &[CpuSet]) -> Result<(), Reason> {
    let Some(first) = gates.first() else {
        return Err(Reason::NoGates);
    };
    let cpus = single_cpus(lanes, homes)?;
    if cpus.iter().enumerate().any(|(lane, cpu)| lane != *cpu) {
        return Err(Reason::OtherNumbers);
    }
    reuseport::attach_cpu_filter(first.as_fd(), lanes as u32).map_err(|_| Reason::OptionRefused)
}

/// The one CPU of each lane.
fn single_cpus(lanes: usize, homes: &[CpuSet]) -> Result<Vec<usize>, Reason> {
    let single = |set: &CpuSet| {
        let mut cpus = set.iter();
        cpus.next().filter(|_| cpus.next().is_none())
    };
    let cpus: Option<Vec<usize>> = homes.iter().take(lanes).map(single).collect();
    cpus.filter(|cpus| cpus.len() == lanes && lanes > 0)
        .ok_or(Reason::NotPinned)
}

/// Major and minor number of the running kernel.
fn kernel_version() -> Option<(u32, u32)> {
    parse_version(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

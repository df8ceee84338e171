//! Steering: the choice of the lane for a new connection, if every lane has a gate.
//!
//! A datagram of QUIC is steered to the lane that its connection ID names (RFC 9000 section 5.1),
//! so that a connection stays with its lane when its client's address changes, or the lanes do.
//!
//! With the hash alone (`reuseport`), a lane that is busy or that the scheduler has taken off its
//! CPU gets its full share, and its queue waits. So a small program in the kernel chooses, by the
//! states that lanes publish on a board. If that is not possible, the next simpler level is used;
//! each missing level has a [`Reason`], which the caller logs once.
//!
//! ```text
//! program (the freest lane, the packet's CPU first) ─► SO_INCOMING_CPU ─► CPU filter ─► hash
//! ```

use std::{fmt, os::fd::AsFd};

use crate::{
    affinity::CpuSet,
    flows::connection_id::KEY_BYTES,
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

/// The age from which a lane that is awake counts as stuck, in nanoseconds. A full turn takes a few
/// milliseconds, and a time slice of another task some more; after a longer wait another lane
/// serves the client sooner.
pub const STALE_NS: u64 = 20_000_000;

/// The number of connections by which the lane of the packet's CPU may exceed the freest one (which
/// itself counts for an eighth more): warm caches are worth a short wait, not a queue.
pub const LOAD_SLACK: u64 = 8;

/// The first kernel that uses `SO_INCOMING_CPU` among the sockets of a reuseport address.
const INCOMING_CPU_KERNEL: (u32, u32) = (6, 2);

/// The parameters of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteerRules {
    /// See [`STALE_NS`].
    pub stale_ns: u64,
    /// See [`LOAD_SLACK`].
    pub load_slack: u64,
    /// Whether the gates are of QUIC: datagrams are steered by their connection IDs, as
    /// [`LaneBoard::set_quic`] says.
    pub is_quic: bool,
}

/// How the connection IDs of QUIC are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QuicRules {
    /// The key of [`crate::flows::connection_id::ConnectionIds`].
    pub key: [u8; KEY_BYTES],
    /// The key of IDs that were given before the key was changed.
    pub old_key: Option<[u8; KEY_BYTES]>,
    /// The number of the serving process that reads the gates.
    pub process: u16,
}

impl Default for SteerRules {
    fn default() -> SteerRules {
        SteerRules {
            stale_ns: STALE_NS,
            load_slack: LOAD_SLACK,
            is_quic: false,
        }
    }
}

impl fmt::Debug for QuicRules {
    /// Keys are not shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rules = formatter.debug_struct("QuicRules");
        rules
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

/// The levels of steering, from the best to the simplest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// By our program.
    Program,
    /// To the gate of the packet's CPU (`SO_INCOMING_CPU`).
    IncomingCpu,
    /// To the gate with the number of the packet's CPU (classic BPF).
    CpuFilter,
    /// By the kernel's hash: plain `reuseport`.
    Hash,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 4] = [
        Level::Program,
        Level::IncomingCpu,
        Level::CpuFilter,
        Level::Hash,
    ];

    /// The name for those who ask.
    pub fn name(self) -> &'static str {
        match self {
            Level::Program => "program",
            Level::IncomingCpu => "incoming_cpu",
            Level::CpuFilter => "cpu_filter",
            Level::Hash => "hash",
        }
    }
}

/// Why a better level is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This program was built without the feature `ebpf`.
    NotBuilt,
    /// The kernel does not permit BPF to this process.
    NotPermitted,
    /// The kernel lacks the program or map type, or refuses our program.
    NotSupported,
    /// The kernel has no memory for it.
    NoMemory,
    /// A program of another process still holds the gates, such as that of a binary that is being
    /// replaced; a later attempt may succeed.
    OtherProgram,
    /// More lanes than [`STEERED_LANES_MAX`].
    TooManyLanes,
    /// There are no gates to steer.
    NoGates,
    /// Waiting connections are lost when their gate is closed (before Linux 5.14).
    NoMigration,
    /// `SO_INCOMING_CPU` does not choose among gates (before Linux 6.2).
    OldKernel,
    /// Lanes are not pinned to one CPU each, so a CPU does not identify a lane.
    NotPinned,
    /// Lanes and CPUs have different numbers, but the filter needs equal ones.
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
                "the steering program of another process still has these sockets"
            }
            Reason::NoMemory => "the kernel has no memory for the steering program",
            Reason::TooManyLanes => "there are more lanes than the steering program supports",
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

/// The steering of the gates of one address. The kernel keeps it while they are open, even if this
/// value is dropped.
#[derive(Debug)]
pub struct Steering {
    level: Level,
    reasons: Vec<Reason>,
    program: Option<Program>,
}

impl Steering {
    /// Steers `gates` of one address, one per lane in the order of lanes, at the best available
    /// level.
    ///
    /// `homes` are the CPUs of each lane; empty if lanes are not pinned. `board` is the result of
    /// [`KernelBoard::create`]. It never fails: the kernel's hash is always available.
    pub fn begin(
        gates: &[Gate],
        homes: &[CpuSet],
        board: Result<&KernelBoard, Reason>,
        rules: SteerRules,
    ) -> Steering {
        Steering::begin_first(gates, gates.len(), homes, board, rules)
    }

    /// As [`Steering::begin`], for `lanes` lanes: gates after these get no connection.
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
        if rules.is_quic {
            // The packet's CPU says nothing of a connection: the flow's hash does, until its client
            // has another address.
            prefer_first(gates, lanes);
            return Steering {
                level: Level::Hash,
                reasons,
                program: None,
            };
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

    /// The level that was reached.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Why better levels are not available; to be logged once.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Applies a new number of gates and lanes and new CPUs, for gates that were opened later. Only
    /// the program can change; at other levels this is an error, and the caller calls `begin`
    /// again, which does no harm there.
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

    /// Attaches the program again, after another process has changed the kernel's choice for these
    /// gates. Only the program can do this: see [`Steering::adjust`].
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

    /// Gives lane number `lane` another gate of the same address. It does nothing below
    /// [`Level::Program`].
    pub fn set_gate(&self, lane: usize, gate: &Gate) -> Result<(), Reason> {
        self.program
            .as_ref()
            .map_or(Ok(()), |program| program.set_gate(lane, gate))
    }
}

/// Gives the connections of an address to the first `lanes` of its gates, by the kernel's hash; to
/// all of them if there are no more. It fails only if there is a single gate.
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
        // The kernel cannot exclude a gate here.
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

/// The single CPU of each lane.
fn single_cpus(lanes: usize, homes: &[CpuSet]) -> Result<Vec<usize>, Reason> {
    let single = |set: &CpuSet| {
        let mut cpus = set.iter();
        cpus.next().filter(|_| cpus.next().is_none())
    };
    let cpus: Option<Vec<usize>> = homes.iter().take(lanes).map(single).collect();
    cpus.filter(|cpus| cpus.len() == lanes && lanes > 0)
        .ok_or(Reason::NotPinned)
}

/// The major and minor number of the running kernel.
fn kernel_version() -> Option<(u32, u32)> {
    parse_version(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

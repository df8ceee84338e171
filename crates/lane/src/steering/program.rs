//! The steering program in the kernel: loading it, and setting its gates and CPUs.
//!
//! The loader runs in the master, which has the privilege; a serving process only writes to the
//! board. The compiled object is committed, so that a build needs no clang.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject,
    ProgramAttachType, libbpf_sys,
};

use super::{
    LaneBoard, Reason, SteerRules,
    board::{BOARD_BYTES, STEERED_LANES_MAX},
};
use crate::{
    affinity::CpuSet,
    gate::Gate,
    sys::{process, reuseport},
};

/// The program, compiled from steer.bpf.c in this folder.
const OBJECT: &[u8] = include_bytes!("steer.bpf.o");

/// The most lanes per CPU that the program prefers; further lanes get their connections as one of
/// two that are chosen at random.
const HOME_LANES_MAX: usize = 4;

/// The board as a BPF array; [`super::LaneBoard::map`] maps it.
#[derive(Debug)]
pub struct KernelBoard {
    map: OwnedFd,
}

impl KernelBoard {
    /// Creates a board; needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN, as before Linux 5.8).
    ///
    /// Without CAP_PERFMON the kernel would check every speculative path, find too many after a
    /// second, and only then refuse the program.
    pub fn create() -> Result<KernelBoard, Reason> {
        if !process::capabilities().is_none_or(may_load) {
            return Err(Reason::NotPermitted);
        }
        quiet();
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let bytes = BOARD_BYTES as u32;
        MapHandle::create(MapType::Array, Some("lanes"), 4, bytes, 1, &options)
            .map_err(|error| reason(&error))
            .and_then(|map| {
                let map = map.as_fd().try_clone_to_owned();
                map.map_err(|error| errno_reason(error.raw_os_error()))
            })
            .and_then(KernelBoard::adopt)
    }

    /// Adopts the board of another master, which lanes have mapped. That of another version may be
    /// smaller: [`Reason::NotSupported`].
    pub fn adopt(map: OwnedFd) -> Result<KernelBoard, Reason> {
        LaneBoard::map(map.as_fd()).map_err(|_| Reason::NotSupported)?;
        Ok(KernelBoard { map })
    }
}

impl AsFd for KernelBoard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// The program of one address. The kernel keeps it while a gate of that address is open; this value
/// is used to change it.
#[derive(Debug)]
pub(super) struct Program {
    maps: Maps,
    /// The program itself, to attach it again.
    code: OwnedFd,
    /// The number of gates in its array. The kernel accepts a socket in one such array only.
    gate_count: AtomicUsize,
    /// Whether the waiting connections of a closed gate move to another one.
    pub(super) migrates: bool,
}

impl Program {
    /// Loads and attaches the program for `gates`, one per lane in the order of lanes.
    pub(super) fn attach(
        board: &KernelBoard,
        gates: &[Gate],
        lanes: usize,
        homes: &[CpuSet],
        rules: SteerRules,
    ) -> Result<Program, Reason> {
        let Some(first) = gates.first() else {
            return Err(Reason::NoGates);
        };
        if gates.len() > STEERED_LANES_MAX {
            return Err(Reason::TooManyLanes);
        }
        quiet();
        // Lanes may move to other CPUs later, and the array cannot grow.
        let home_count = home_table(homes, lanes).len().max(process::cpu_count());
        let name = if rules.is_quic { "steer_quic" } else { "steer" };
        let (object, migrates) = match load(name, board, home_count, true) {
            Ok(object) => (object, true),
            // Migration needs Linux 5.14.
            Err(Reason::NotSupported) => (load(name, board, home_count, false)?, false),
            Err(reason) => return Err(reason),
        };
        let Some(steer) = object.progs().find(|program| program.name() == name) else {
            return Err(Reason::NotSupported);
        };
        let code = steer.as_fd().try_clone_to_owned();
        let program = Program {
            maps: Maps::of(&object)?,
            code: code.map_err(|error| errno_reason(error.raw_os_error()))?,
            gate_count: AtomicUsize::new(0),
            migrates,
        };
        program.adjust(gates, lanes, homes, rules)?;
        program.take_charge(first)?;
        Ok(program)
    }

    /// Attaches the program to the group of `gate`: another process may have changed the kernel's
    /// choice meanwhile.
    pub(super) fn take_charge(&self, gate: &Gate) -> Result<(), Reason> {
        reuseport::attach_program(gate.as_fd(), self.code.as_fd())
            .map_err(|error| errno_reason(error.raw_os_error()))
    }

    /// Sets the current gates, of which the first `lanes` get connections, and the CPUs of those
    /// lanes. Known gates keep their indexes.
    pub(super) fn adjust(
        &self,
        gates: &[Gate],
        lanes: usize,
        homes: &[CpuSet],
        rules: SteerRules,
    ) -> Result<(), Reason> {
        if gates.len() > STEERED_LANES_MAX || lanes > gates.len() {
            return Err(Reason::TooManyLanes);
        }
        for (lane, gate) in gates.iter().enumerate().skip(self.gate_count.load(Relaxed)) {
            self.set_gate(lane, gate)?;
            self.gate_count.store(lane + 1, Relaxed);
        }
        self.maps.set_up(&home_table(homes, lanes), lanes, rules)
    }

    /// Assigns `gate` to lane number `lane`. The kernel itself removes a closed gate.
    pub(super) fn set_gate(&self, lane: usize, gate: &Gate) -> Result<(), Reason> {
        use std::os::fd::AsRawFd;
        let descriptor = gate.as_fd().as_raw_fd() as u64;
        match update(&self.maps.gates, lane, &descriptor.to_ne_bytes()) {
            // The kernel's EBUSY has no variant of its own.
            Err(Reason::NotSupported) => Err(Reason::OtherProgram),
            other => other,
        }
    }
}

/// The maps of the program.
#[derive(Debug)]
struct Maps {
    gates: MapHandle,
    rules: MapHandle,
    homes: MapHandle,
    home_count: usize,
}

impl Maps {
    fn of(object: &Object) -> Result<Maps, Reason> {
        let handle =
            |name| MapHandle::try_from(&map(object, name)?).map_err(|error| reason(&error));
        let homes = handle("homes")?;
        Ok(Maps {
            gates: handle("gates")?,
            rules: handle("rules")?,
            home_count: homes.max_entries() as usize,
            homes,
        })
    }

    fn set_up(&self, homes: &[Home], lanes: usize, rules: SteerRules) -> Result<(), Reason> {
        let mut bytes = Vec::with_capacity(24);
        for word in [rules.stale_ns, rules.load_slack, lanes as u64] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        let no_lanes = Home::default();
        for cpu in 0..self.home_count {
            update(
                &self.homes,
                cpu,
                &homes.get(cpu).unwrap_or(&no_lanes).bytes(),
            )?;
        }
        update(&self.rules, 0, &bytes)
    }
}

fn update(map: &MapHandle, key: usize, value: &[u8]) -> Result<(), Reason> {
    map.update(&(key as u32).to_ne_bytes(), value, MapFlags::ANY)
        .map_err(|error| reason(&error))
}

/// Loads the program of that name.
fn load(
    name: &str,
    board: &KernelBoard,
    home_count: usize,
    migrates: bool,
) -> Result<Object, Reason> {
    let mut object = ObjectBuilder::default()
        .name("turnpike_steer")
        .and_then(|builder| builder.open_memory(OBJECT))
        .map_err(|error| reason(&error))?;
    for mut program in object.progs_mut() {
        let is_wanted = program.name() == name;
        program.set_autoload(is_wanted);
    }
    prepare(&mut object, board, home_count, migrates).map_err(|error| reason(&error))?;
    object.load().map_err(|error| reason(&error))
}

fn prepare(
    object: &mut OpenObject,
    board: &KernelBoard,
    home_count: usize,
    migrates: bool,
) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        if map.name() == "lanes" {
            map.reuse_fd(board.as_fd())?;
        } else if map.name() == "homes" {
            map.set_max_entries(home_count.max(1) as u32)?;
        }
    }
    if !migrates {
        for mut program in object.progs_mut() {
            program.set_attach_type(ProgramAttachType::SkReuseportSelect);
        }
    }
    Ok(())
}

/// Whether these capabilities suffice for the program.
fn may_load(capabilities: u64) -> bool {
    let has = |number: u32| capabilities & (1 << number) != 0;
    has(process::CAPABILITY_SYS_ADMIN)
        || (has(process::CAPABILITY_BPF) && has(process::CAPABILITY_PERFMON))
}

/// The lanes of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Home {
    count: u32,
    lanes: [u32; HOME_LANES_MAX],
}

impl Home {
    fn bytes(&self) -> [u8; 4 + 4 * HOME_LANES_MAX] {
        let mut bytes = [0; 4 + 4 * HOME_LANES_MAX];
        let words = [self.count].into_iter().chain(self.lanes);
        for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// The lanes that are pinned to each CPU. A lane with several CPUs is listed at all of them.
fn home_table(homes: &[CpuSet], lanes: usize) -> Vec<Home> {
    let mut table: Vec<Home> = Vec::new();
    for (lane, set) in homes.iter().take(lanes).enumerate() {
        for cpu in set.iter() {
            if table.len() <= cpu {
                table.resize(cpu + 1, Home::default());
            }
            let home = &mut table[cpu];
            if let Some(slot) = home.lanes.get_mut(home.count as usize) {
                *slot = lane as u32;
                home.count += 1;
            }
        }
    }
    table
}

fn map<'object>(object: &'object Object, name: &str) -> Result<libbpf_rs::Map<'object>, Reason> {
    object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(Reason::NotSupported)
}

/// Stops the library from printing to standard error; [`Reason`] reports the errors.
fn quiet() {
    libbpf_rs::set_print(None);
}

fn reason(error: &libbpf_rs::Error) -> Reason {
    match error.kind() {
        ErrorKind::PermissionDenied => Reason::NotPermitted,
        ErrorKind::OutOfMemory => Reason::NoMemory,
        _ => Reason::NotSupported,
    }
}

fn errno_reason(errno: Option<i32>) -> Reason {
    match errno {
        Some(libc::EPERM | libc::EACCES) => Reason::NotPermitted,
        Some(libc::ENOMEM) => Reason::NoMemory,
        _ => Reason::NotSupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_found_without_the_kernel() {
        let cases = [
            (u64::MAX, true),
            (1 << 21, true),
            (1 << 39 | 1 << 38, true),
            (1 << 39, false),
            (1 << 38, false),
            (0, false),
        ];
        for (capabilities, expected) in cases {
            assert_eq!(may_load(capabilities), expected, "{capabilities:#x}");
        }
        assert!(process::capabilities().is_some());
    }
}

//! The program in the kernel: loading it, and attaching it to network interfaces.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use libbpf_rs::{MapCore as _, Object, ObjectBuilder, OpenObject};
use turnpike_lane::sys::{bpf_link, process};

use crate::layout::WAYS;
use crate::memory::{ARRAY_COUNT, Memory};

/// The program, compiled from the folder `bpf`: see `cargo xtask express`.
const OBJECT: &[u8] = include_bytes!("express.bpf.o");

/// The most objects, whose memory is 8 MiB: what the express lane is for is few and hot.
pub const OBJECTS_MAX: usize = 4096;

/// How the program is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver where it can, else generic.
    #[default]
    Auto,
    /// In the driver: before the kernel has made anything of a frame.
    Native,
    /// In the kernel, behind the driver: with every driver, at less speed.
    Generic,
}

/// What a configuration wants of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Names of network interfaces.
    pub interfaces: Vec<String>,
    pub mode: Mode,
    /// How many answers there is room for: a power of two.
    pub objects: usize,
}

/// Why the program does not work here.
#[derive(Debug)]
pub enum Refusal {
    /// The kernel does not permit it to this process.
    NotPermitted,
    /// The machine's byte order is not the one that the program was compiled for.
    ByteOrder,
    /// The kernel lacks something that the program needs, or refuses it.
    NotSupported,
    /// There is no such interface.
    NoInterface(String),
    /// Another XDP program is attached to the interface.
    Occupied(String),
    /// The driver of the interface has no native XDP.
    NoNative(String),
    /// The kernel refuses to attach it there.
    NotAttached(String, io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotPermitted => formatter.write_str(
                "the kernel does not permit its program (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
            ),
            Refusal::ByteOrder => {
                formatter.write_str("its program is compiled for little-endian machines")
            }
            Refusal::NotSupported => {
                formatter.write_str("the kernel does not support its program (needs Linux 6.9)")
            }
            Refusal::NoInterface(name) => write!(formatter, "there is no interface \"{name}\""),
            Refusal::Occupied(name) => {
                write!(formatter, "interface \"{name}\" has another XDP program")
            }
            Refusal::NoNative(name) => write!(
                formatter,
                "the driver of interface \"{name}\" has no native XDP, try \"express_mode generic\""
            ),
            Refusal::NotAttached(name, error) => {
                write!(formatter, "it cannot be attached to \"{name}\" ({error})")
            }
        }
    }
}

/// The loaded program. Its memory and its attachments live as long as any copy of their
/// descriptors.
pub struct Program {
    object: Object,
}

/// The program on one interface; it is detached when the last copy of its descriptors is closed.
#[derive(Debug)]
pub struct Attachment {
    /// The name of the interface.
    pub interface: String,
    /// Whether the program runs in the driver.
    pub is_native: bool,
    /// The links of both programs: bpf(2), BPF_LINK_CREATE.
    pub links: [OwnedFd; 2],
}

impl Program {
    /// Loads the program with room for so many answers.
    ///
    /// # Errors
    /// Why the kernel does not take it.
    pub fn load(objects: usize) -> Result<Program, Refusal> {
        if cfg!(target_endian = "big") {
            return Err(Refusal::ByteOrder);
        }
        if !process::capabilities().is_none_or(may_load) {
            return Err(Refusal::NotPermitted);
        }
        libbpf_rs::set_print(None);
        let mut object = ObjectBuilder::default()
            .name("express")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(|error| refusal(&error))?;
        make_room(&mut object, objects).map_err(|error| refusal(&error))?;
        let object = object.load().map_err(|error| refusal(&error))?;
        let program = Program { object };
        let slots = slot_count(objects);
        let noted = program
            .arrays()
            .and_then(|[_, settings, ..]| Memory::note_slots(settings.as_fd(), slots));
        noted.map_err(|_| Refusal::NotSupported)?;
        Ok(program)
    }

    /// The arrays of [`crate::Memory::map`]: answers, settings, counters, drops.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn arrays(&self) -> io::Result<[OwnedFd; ARRAY_COUNT]> {
        let array = |name: &str| {
            let mut maps = self.object.maps();
            let map = maps.find(|map| map.name() == name);
            let map = map.ok_or(io::ErrorKind::NotFound)?;
            map.as_fd().try_clone_to_owned()
        };
        Ok([
            array("answers")?,
            array("settings")?,
            array("counters")?,
            array("drops")?,
        ])
    }

    /// Attaches the program to an interface.
    ///
    /// # Errors
    /// Why the kernel does not take it there.
    pub fn attach(&self, interface: &str, mode: Mode) -> Result<Attachment, Refusal> {
        let index = find_interface(interface)?;
        let failed = |error: io::Error| failure(interface, error);
        let hand_over = self.code("hand_over").ok_or(Refusal::NotSupported)?;
        let express = self.code("express").ok_or(Refusal::NotSupported)?;
        // What takes connections over comes first: none is begun before.
        let ingress = bpf_link::attach_ingress(hand_over.as_fd(), index).map_err(failed)?;
        let native = || bpf_link::attach_xdp(express.as_fd(), index, bpf_link::XdpMode::Native);
        let generic = || bpf_link::attach_xdp(express.as_fd(), index, bpf_link::XdpMode::Generic);
        let (driver, is_native) = match mode {
            Mode::Generic => (generic().map_err(failed)?, false),
            Mode::Native => (native().map_err(failed)?, true),
            Mode::Auto => match native() {
                Ok(link) => (link, true),
                Err(_) => (generic().map_err(failed)?, false),
            },
        };
        Ok(Attachment {
            interface: interface.to_owned(),
            is_native,
            links: [ingress, driver],
        })
    }

    fn code(&self, name: &str) -> Option<OwnedFd> {
        let mut programs = self.object.progs();
        let program = programs.find(|program| program.name() == name)?;
        program.as_fd().try_clone_to_owned().ok()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Program")
    }
}

/// The index of an interface.
///
/// # Errors
/// There is none of that name.
pub fn find_interface(name: &str) -> Result<u32, Refusal> {
    bpf_link::interface_index(name).ok_or_else(|| Refusal::NoInterface(name.to_owned()))
}

fn make_room(object: &mut OpenObject, objects: usize) -> libbpf_rs::Result<()> {
    let slots = slot_count(objects) as u32;
    for mut map in object.maps_mut() {
        if map.name() == "answers" {
            map.set_max_entries(slots)?;
        }
    }
    Ok(())
}

/// Slots for so many objects: a power of two.
pub(crate) fn slot_count(objects: usize) -> usize {
    objects.clamp(WAYS, OBJECTS_MAX).next_power_of_two()
}

/// Whether these capabilities suffice.
fn may_load(capabilities: u64) -> bool {
    let has = |number: u32| capabilities & (1 << number) != 0;
    has(process::CAPABILITY_SYS_ADMIN)
        || (has(process::CAPABILITY_BPF) && has(process::CAPABILITY_PERFMON))
}

fn refusal(error: &libbpf_rs::Error) -> Refusal {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => Refusal::NotPermitted,
        _ => Refusal::NotSupported,
    }
}

fn failure(interface: &str, error: io::Error) -> Refusal {
    let name = interface.to_owned();
    match error.kind() {
        io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => Refusal::Occupied(name),
        io::ErrorKind::Unsupported => Refusal::NoNative(name),
        io::ErrorKind::PermissionDenied => Refusal::NotPermitted,
        _ => Refusal::NotAttached(name, error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
impl Program {
    /// Runs the program on a frame (BPF_PROG_TEST_RUN): its verdict, and the frame as it left it.
    pub(crate) fn run_on(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        let mut programs = self.object.progs_mut();
        let program = programs.find(|program| program.name() == "express");
        let mut out = vec![0; 4096];
        let input = libbpf_rs::ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..Default::default()
        };
        let output = program.unwrap().test_run(input).unwrap();
        let frame = output.data.unwrap().to_vec();
        (output.return_value, frame)
    }
}

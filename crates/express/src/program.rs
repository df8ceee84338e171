//! The program in the kernel: loading it, and attaching it to network interfaces.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use aws_lc_rs::digest::{SHA256, digest};
use libbpf_rs::{MapCore as _, Object, ObjectBuilder, OpenObject};
use turnpike_lane::sys::{bpf_link, process};

use crate::layout::WAYS;
use crate::memory::{ARRAY_COUNT, Memory};

/// The program, compiled from the folder `bpf`: see `cargo xtask bpf`.
const OBJECT: &[u8] = include_bytes!("express.bpf.o");

/// A digest of the program, by which another one is told from it.
pub(crate) fn object_digest() -> String {
    let digest = digest(&SHA256, OBJECT);
    let bytes = digest.as_ref().iter().take(8);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// The most objects, whose memory is 8 MiB: what the express lane is for is few and hot.
pub const OBJECTS_MAX: usize = 4096;

/// The fewest objects that there is room for: the places of one key.
pub const OBJECTS_MIN: usize = WAYS;

/// How the program is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver where it can, else generic. On veth, generic.
    #[default]
    Auto,
    /// In the driver: before the kernel has made anything of a frame.
    Native,
    /// In the kernel, behind the driver: with every driver, at less speed.
    Generic,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Auto, Mode::Native, Mode::Generic];

    /// The name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Native => "native",
            Mode::Generic => "generic",
        }
    }

    /// The mode of that name.
    pub fn of(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether a program may run so.
    pub(crate) fn permits(self, is_native: bool) -> bool {
        match self {
            Mode::Auto => true,
            Mode::Native => is_native,
            Mode::Generic => !is_native,
        }
    }
}

/// What a configuration wants of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSettings {
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
    arrays: [OwnedFd; ARRAY_COUNT],
    /// What takes connections over, and what answers.
    codes: [OwnedFd; CODE_COUNT],
    #[cfg(test)]
    object: Option<Object>,
}

/// How many programs of the kernel it is made of.
pub(crate) const CODE_COUNT: usize = 2;

/// The program on one interface; it is detached when the last copy of its descriptors is closed.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// What takes connections over, behind the driver.
    pub(crate) ingress: OwnedFd,
    /// What answers, and whether it runs in the driver; `None`: it answers no more.
    pub(crate) driver: Option<(OwnedFd, bool)>,
}

impl Attachment {
    /// Whether the program answers there.
    pub(crate) fn answers(&self) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|(link, _)| bpf_link::is_attached(link.as_fd()))
            && bpf_link::is_attached(self.ingress.as_fd())
    }

    /// Answers no more there: frames reach the kernel as if there were no program, and connections
    /// that have begun are still handed over.
    pub(crate) fn detach_driver(&mut self) {
        if let Some((link, _)) = self.driver.take() {
            // It fails where the interface is gone.
            let _ = bpf_link::detach(link.as_fd());
        }
    }

    /// Nothing is left there, whoever has copies.
    pub(crate) fn detach(mut self) {
        self.detach_driver();
        let _ = bpf_link::detach(self.ingress.as_fd());
    }
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
        let program = Program::of(object).ok_or(Refusal::NotSupported)?;
        let settings = program.arrays[1].as_fd();
        let noted = Memory::note_slots(settings, slot_count(objects));
        noted.map_err(|_| Refusal::NotSupported)?;
        Ok(program)
    }

    fn of(object: Object) -> Option<Program> {
        let array = |name: &str| {
            let mut maps = object.maps();
            let map = maps.find(|map| map.name() == name)?;
            map.as_fd().try_clone_to_owned().ok()
        };
        let code = |name: &str| {
            let mut programs = object.progs();
            let program = programs.find(|program| program.name() == name)?;
            program.as_fd().try_clone_to_owned().ok()
        };
        Some(Program {
            arrays: [
                array("answers")?,
                array("settings")?,
                array("counters")?,
                array("drops")?,
                array("samples")?,
            ],
            codes: [code("hand_over")?, code("express")?],
            #[cfg(test)]
            object: Some(object),
        })
    }

    /// A program that another process has loaded.
    pub(crate) fn taken(arrays: [OwnedFd; ARRAY_COUNT], codes: [OwnedFd; CODE_COUNT]) -> Program {
        Program {
            arrays,
            codes,
            #[cfg(test)]
            object: None,
        }
    }

    /// The arrays of [`crate::Memory::map`]: answers, settings, counters, drops, samples.
    pub(crate) fn arrays(&self) -> &[OwnedFd; ARRAY_COUNT] {
        &self.arrays
    }

    pub(crate) fn codes(&self) -> &[OwnedFd; CODE_COUNT] {
        &self.codes
    }

    /// Attaches the program to an interface, and keeps what is attached there already. Returns
    /// whether it runs in the driver. Where the driver refuses it, what hands begun connections
    /// over stays attached.
    pub(crate) fn attach(
        &self,
        interface: &str,
        mode: Mode,
        attachment: &mut Option<Attachment>,
    ) -> Result<bool, Refusal> {
        let index = find_interface(interface)?;
        let failed = |error: io::Error| failure(interface, error);
        let [hand_over, express] = &self.codes;
        // What takes connections over comes first: none is begun before.
        let (ingress, driver) = match attachment.take() {
            Some(before) => (Some(before.ingress), before.driver),
            None => (None, None),
        };
        let driver = driver.filter(|(link, is_native)| {
            mode.permits(*is_native) && bpf_link::is_attached(link.as_fd())
        });
        let ingress = match ingress.filter(|link| bpf_link::is_attached(link.as_fd())) {
            Some(link) => link,
            None => bpf_link::attach_ingress(hand_over.as_fd(), index).map_err(failed)?,
        };
        let attached = attachment.insert(Attachment { ingress, driver });
        if let Some((_, is_native)) = attached.driver {
            return Ok(is_native);
        }
        let native = || bpf_link::attach_xdp(express.as_fd(), index, bpf_link::XdpMode::Native);
        let generic = || bpf_link::attach_xdp(express.as_fd(), index, bpf_link::XdpMode::Generic);
        let (link, is_native) = match mode {
            // What a program of veth sends is dropped unless the other end has a program too.
            Mode::Auto if is_veth(interface) => (generic().map_err(failed)?, false),
            Mode::Generic => (generic().map_err(failed)?, false),
            Mode::Native => (native().map_err(failed)?, true),
            Mode::Auto => match native() {
                Ok(link) => (link, true),
                Err(_) => (generic().map_err(failed)?, false),
            },
        };
        attached.driver = Some((link, is_native));
        Ok(is_native)
    }

    /// Puts this program in the place of the one that is attached, at once.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub(crate) fn replace(&self, attachment: &Attachment) -> io::Result<()> {
        let [hand_over, express] = &self.codes;
        bpf_link::update(attachment.ingress.as_fd(), hand_over.as_fd())?;
        match &attachment.driver {
            Some((link, _)) => bpf_link::update(link.as_fd(), express.as_fd()),
            None => Ok(()),
        }
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

/// Whether it is one end of a virtual cable: the network interface of most containers.
fn is_veth(interface: &str) -> bool {
    bpf_link::interface_driver(interface).is_ok_and(|driver| driver == "veth")
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

/// The slots of a table with room for so many answers: a power of two.
pub fn slot_count(objects: usize) -> usize {
    objects.clamp(OBJECTS_MIN, OBJECTS_MAX).next_power_of_two()
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
        let (verdict, bytes, _) = self.test_run(frame);
        (verdict, bytes)
    }

    /// The same: its verdict, and the time that it took.
    pub(crate) fn time_on(&self, frame: &[u8]) -> (u32, std::time::Duration) {
        let (verdict, _, took) = self.test_run(frame);
        (verdict, took)
    }

    fn test_run(&self, frame: &[u8]) -> (u32, Vec<u8>, std::time::Duration) {
        let object = self.object.as_ref().unwrap();
        let mut programs = object.progs_mut();
        let program = programs.find(|program| program.name() == "express");
        let mut out = vec![0; 4096];
        let input = libbpf_rs::ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..Default::default()
        };
        let output = program.unwrap().test_run(input).unwrap();
        let frame = output.data.unwrap().to_vec();
        (output.return_value, frame, output.duration)
    }
}

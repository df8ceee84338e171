//! What a machine is and what it has done, as its kernel tells it: processors, memory, network
//! interfaces, limits, settings, and the time that cores and processes have used.
//!
//! Everything is read from files below a root folder, so that a recorded tree stands for any
//! machine; a configuration's files are read where they are. What a kernel does not tell is missing
//! or empty, never an error. Nothing here changes a machine, but for the limit of open files of
//! this process.

mod activity;
mod beside;
mod cgroup;
mod counters;
mod disk_loader;
mod holders;
mod host;
mod interrupts;
mod kernel;
mod memory;
mod network;
mod processes;
mod processor;
mod programs;
mod sockets;
#[cfg(test)]
mod tests;

pub use activity::{CpuTimes, ProcessMemory};
pub use beside::program_beside;
pub use cgroup::Cgroup;
pub use counters::{PacketWork, Pressure};
pub use disk_loader::DiskLoader;
pub use holders::{Endpoint, Holder};
pub use host::{Host, list};
pub use interrupts::Interrupt;
pub use kernel::Kernel;
pub use memory::Memory;
pub use network::Interface;
pub use processes::Process;
pub use processor::{Cache, Cpu, Processor};
pub use programs::{Disk, Program};
pub use sockets::{Listener, SocketCounts};

/// Raises the limit of open files of this process as far as it may; children inherit it. A limit
/// that cannot be raised stays what it is.
pub fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

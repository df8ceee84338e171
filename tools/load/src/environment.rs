//! What the machine says about itself before and after a run: ports, TIME_WAIT, retransmits,
//! limits, memory. What the kernel does not tell reads as zero.

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::time::TimeValLike as _;
use serde::Serialize;
use turnpike_host::Host;

use crate::thread::Clock;

/// Clock reads timed to know what one costs.
const CLOCK_READS: u64 = 1000;

/// Counters and levels of this network namespace and process, at one moment.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Snapshot {
    /// Sockets in TIME_WAIT.
    pub(crate) time_wait: u64,
    /// TCP sockets in use.
    pub(crate) sockets: u64,
    /// SYN and SYN-ACK segments sent again, in all.
    pub(crate) syn_retransmits: u64,
    /// Connections dropped because an accept queue was full, in all.
    pub(crate) listen_drops: u64,
    /// Resident memory of this process in bytes.
    pub(crate) resident_bytes: u64,
}

/// What does not change during a run.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Machine {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// CPUs this process may use.
    pub(crate) cpus: usize,
    /// First and last ephemeral port.
    pub(crate) ports: (u16, u16),
    /// `net.ipv4.tcp_tw_reuse`.
    pub(crate) tcp_tw_reuse: u64,
    /// Descriptors each thread may have.
    pub(crate) files_max: u64,
    pub(crate) clock_source: String,
    /// What one look at the clock costs, in nanoseconds.
    pub(crate) clock_read_ns: u64,
}

impl Snapshot {
    /// Reads the present state.
    pub(crate) fn take() -> Self {
        let host = Host::here();
        let sockets = host.socket_counts();
        let counters = host.network_counters();
        let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
        Snapshot {
            time_wait: sockets.time_wait,
            sockets: sockets.in_use,
            syn_retransmits: counter("TcpExt.TCPSynRetrans"),
            listen_drops: counter("TcpExt.ListenDrops"),
            resident_bytes: host.own_resident_bytes(),
        }
    }
}

impl Machine {
    /// Reads the machine, after [`turnpike_host::raise_file_limit`].
    pub(crate) fn read() -> Self {
        let host = Host::here();
        let kernel = host.kernel();
        let tw_reuse = host.setting("net/ipv4/tcp_tw_reuse");
        Machine {
            kernel: kernel.release,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            ports: host.ephemeral_ports(),
            tcp_tw_reuse: tw_reuse.and_then(|text| text.parse().ok()).unwrap_or(0),
            files_max: getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft),
            clock_source: kernel.clock_source,
            clock_read_ns: clock_read_ns(),
        }
    }
}

/// How the calling thread spent its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadTime {
    /// On a CPU, in nanoseconds.
    pub(crate) running_ns: u64,
    /// Ready but waiting for a CPU, in nanoseconds.
    pub(crate) queued_ns: u64,
    /// On a CPU in user mode, in microseconds.
    pub(crate) user_us: u64,
    /// On a CPU in the kernel, in microseconds.
    pub(crate) system_us: u64,
}

impl ThreadTime {
    /// Reads the calling thread's.
    pub(crate) fn read() -> Self {
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD);
        let micros =
            |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
        let user_us = usage.map_or(0, |usage| micros(usage.user_time()));
        let system_us = usage.map_or(0, |usage| micros(usage.system_time()));
        let known = Host::here().own_thread_ns();
        let (running_ns, queued_ns) = known.unwrap_or(((user_us + system_us) * 1000, 0));
        ThreadTime {
            running_ns,
            queued_ns,
            user_us,
            system_us,
        }
    }
}

impl ThreadTime {
    /// What was spent since an earlier reading.
    pub(crate) fn since(self, earlier: ThreadTime) -> ThreadTime {
        ThreadTime {
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
            queued_ns: self.queued_ns.saturating_sub(earlier.queued_ns),
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

fn clock_read_ns() -> u64 {
    let clock = Clock::new();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(clock.now_ns());
    }
    clock.now_ns() / CLOCK_READS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_read() {
        assert!(Machine::read().cpus >= 1);
        assert!(Snapshot::take().resident_bytes > 0);
    }
}

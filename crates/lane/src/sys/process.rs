//! The process and its threads: affinity, priority, limits, names, forking (sched_setaffinity(2),
//! getrlimit(2), prctl(2), fork(2)).
//!
//! Users and groups are not here: other code has safe functions for them, and the change must
//! affect all threads at once.

use std::{
    ffi::CStr,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::{SystemTime, UNIX_EPOCH},
};

#[cfg(feature = "simulation")]
use super::simulation;
use super::{check, file, retry};

/// Most CPUs: the kernel's own `NR_CPUS` limit on 64-bit machines is 8192.
pub const CPUS_MAX: usize = 8192;

/// Pins the calling thread to the CPUs whose bits are set: CPU `n` is bit `n % 64` of word `n /
/// 64`. `EINVAL` if none of them exists or is allowed.
pub fn set_thread_affinity(mask: &[u64]) -> io::Result<()> {
    let length = size_of_val(mask);
    // SAFETY: pointer and length are those of one slice; the kernel takes masks of any length.
    check(unsafe { libc::sched_setaffinity(0, length, mask.as_ptr().cast()) })?;
    Ok(())
}

/// The CPUs of the calling thread, in the format of [`set_thread_affinity`]. Allocates.
pub fn thread_affinity() -> io::Result<Vec<u64>> {
    affinity_of(0)
}

/// The CPUs of the process's first thread, in the format of [`thread_affinity`].
pub fn main_thread_affinity() -> io::Result<Vec<u64>> {
    // SAFETY: getpid takes no arguments and cannot fail.
    affinity_of(unsafe { libc::getpid() })
}

fn affinity_of(thread: libc::pid_t) -> io::Result<Vec<u64>> {
    let mut mask = vec![0_u64; CPUS_MAX / 64];
    // SAFETY: pointer and length are those of one vector.
    check(unsafe { libc::sched_getaffinity(thread, mask.len() * 8, mask.as_mut_ptr().cast()) })?;
    while mask.len() > 1 && mask.last() == Some(&0) {
        mask.pop();
    }
    Ok(mask)
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The machine's name in lower case, as in nginx. It may change, so a caller that needs a constant
/// name must keep it.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_ascii_lowercase(),
    }
}

/// CPUs online, at least 1 (nginx's `worker_processes auto`).
pub fn cpu_count() -> usize {
    // SAFETY: sysconf takes no pointers.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// CPUs that this process can use at once, at least 1: those of its CPU set, and at most as many
/// as the quota of its control group pays for, rounded down.
pub fn usable_cpu_count() -> usize {
    std::thread::available_parallelism().map_or_else(|_| cpu_count(), usize::from)
}

/// Sets the scheduling priority of the process, -20 (first) to 20 (nginx's `worker_priority`).
pub fn set_priority(priority: i32) -> io::Result<()> {
    // SAFETY: setpriority takes no pointers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, priority) })?;
    Ok(())
}

/// A resource of the process with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Open descriptors (`RLIMIT_NOFILE`).
    OpenFiles,
    /// Bytes of a core file (`RLIMIT_CORE`).
    CoreBytes,
    /// Bytes of locked memory (`RLIMIT_MEMLOCK`), which BPF maps count to before Linux 5.11.
    LockedBytes,
}

/// A limit: the one in force and the one up to which it may be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: u64,
    /// The maximum of `soft` without privilege.
    pub hard: u64,
}

/// The limit of `resource`; `u64::MAX` means none.
pub fn limit(resource: Resource) -> io::Result<Limit> {
    let mut raw = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer points to a whole rlimit64.
    check(unsafe { libc::getrlimit64(resource_number(resource), &mut raw) })?;
    Ok(Limit {
        soft: raw.rlim_cur,
        hard: raw.rlim_max,
    })
}

/// Changes the limit of `resource`; raising `hard` needs CAP_SYS_RESOURCE.
pub fn set_limit(resource: Resource, limit: Limit) -> io::Result<()> {
    let raw = libc::rlimit64 {
        rlim_cur: limit.soft,
        rlim_max: limit.hard,
    };
    // SAFETY: the pointer points to a whole rlimit64, which is only read.
    check(unsafe { libc::setrlimit64(resource_number(resource), &raw) })?;
    Ok(())
}

/// Names the calling thread; the kernel keeps 15 bytes.
pub fn set_thread_name(name: &CStr) -> io::Result<()> {
    // SAFETY: PR_SET_NAME reads a C string, at most 16 bytes of it.
    check(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) })?;
    Ok(())
}

/// Sets whether the process may be dumped and traced; a change of user clears it.
pub fn set_dumpable(on: bool) -> io::Result<()> {
    // SAFETY: PR_SET_DUMPABLE takes an integer.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(on)) })?;
    Ok(())
}

/// Nearly all privileges (capabilities(7)).
pub const CAPABILITY_SYS_ADMIN: u32 = 21;
/// BPF programs with pointer arithmetic, among other things (Linux 5.8).
pub const CAPABILITY_PERFMON: u32 = 38;
/// BPF programs and maps (Linux 5.8).
pub const CAPABILITY_BPF: u32 = 39;
/// Raw and transparent sockets (capabilities(7)).
pub const CAPABILITY_NET_RAW: u32 = 13;

/// Gives the calling thread this capability, permitted and effective, and no other: capset(2).
/// `EPERM` if it is not permitted now.
pub fn set_thread_capability(number: u32) -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`: two words for each set.
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    let bit = 1_u64.checked_shl(number).unwrap_or(0);
    let (low, high) = (bit as u32, (bit >> 32) as u32);
    // Effective, permitted, inheritable: first their lower halves, then the higher ones.
    let data = [low, low, 0, high, high, 0];
    // SAFETY: version 3 reads two words of the header and six of the data, which is what there is.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    check(result as libc::c_int)?;
    Ok(())
}

/// The capabilities of this process, one bit each; `None` if `/proc` does not show them.
pub fn capabilities() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let text = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

/// Sets whether permitted capabilities survive the change from root to another user.
pub fn set_keep_capabilities(on: bool) -> io::Result<()> {
    // SAFETY: PR_SET_KEEPCAPS takes an integer.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, libc::c_ulong::from(on)) })?;
    Ok(())
}

/// The parent process's number.
pub fn parent_process() -> i32 {
    // SAFETY: getppid takes no arguments and cannot fail.
    unsafe { libc::getppid() }
}

/// The side of a [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The old process.
    Parent {
        /// The new process.
        child: i32,
    },
    /// The new process.
    Child,
}

/// Forks the process. `Unsupported` if it has more than one thread: another thread's lock could
/// stay locked in the child, where hardly any call would be safe then.
pub fn fork() -> io::Result<Side> {
    if thread_count()? != 1 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: there is no other thread whose locks the child could inherit.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Side::Child),
        child => Ok(Side::Parent { child }),
    }
}

/// Detaches from the terminal: the process becomes the leader of a new session.
pub fn new_session() -> io::Result<()> {
    // SAFETY: setsid takes no arguments.
    check(unsafe { libc::setsid() })?;
    Ok(())
}

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Redirects a standard stream to `target` (`/dev/null` of a daemon, the error log).
pub fn redirect(stream: Stream, target: BorrowedFd<'_>) -> io::Result<()> {
    let number = match stream {
        Stream::Input => libc::STDIN_FILENO,
        Stream::Output => libc::STDOUT_FILENO,
        Stream::Error => libc::STDERR_FILENO,
    };
    // SAFETY: dup2 takes no pointers; the standard streams have no owner in Rust.
    retry(|| check(unsafe { libc::dup2(target.as_raw_fd(), number) }))?;
    Ok(())
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process returned this status.
    Status(i32),
    /// A signal ended it.
    Signal {
        number: i32,
        /// Whether the kernel has written a core file.
        has_core: bool,
    },
}

/// Reaps one child that has ended, without waiting; `None` if there is none.
pub fn reap_child() -> io::Result<Option<(i32, Ending)>> {
    let mut status = 0;
    // SAFETY: the pointer points to an int.
    let result = retry(|| check(unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) }));
    match result {
        Ok(0) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        Err(error) => Err(error),
        Ok(child) if libc::WIFSIGNALED(status) => {
            let ending = Ending::Signal {
                number: libc::WTERMSIG(status),
                has_core: libc::WCOREDUMP(status),
            };
            Ok(Some((child, ending)))
        }
        Ok(child) => Ok(Some((child, Ending::Status(libc::WEXITSTATUS(status))))),
    }
}

/// A process, which need not be our child (pidfd_open(2), Linux 5.3). Unlike a number, it can never
/// mean another process.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens the process with this number; close-on-exec. `ESRCH` if there is none.
    pub fn open(process: i32) -> io::Result<ProcessHandle> {
        // SAFETY: pidfd_open takes no pointers.
        let result = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let descriptor = check(result as libc::c_int)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(ProcessHandle(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Sends a signal. `ESRCH` if the process has ended.
    pub fn send(&self, number: i32) -> io::Result<()> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: without information about the signal, pidfd_send_signal reads no memory.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                none,
                0,
            )
        };
        check(result as libc::c_int)?;
        Ok(())
    }
}

impl AsFd for ProcessHandle {
    /// The descriptor, which is readable when the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The resource usage of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// CPU time, in user and kernel mode.
    pub cpu_ns: u64,
    /// Resident memory; `None` if the kernel does not report it.
    pub resident_bytes: Option<u64>,
    /// The limit of open descriptors.
    pub files_max: u64,
}

/// The current usage (getrusage(2), getrlimit(2), proc_pid_statm(5)).
pub fn usage() -> ProcessUsage {
    // SAFETY: both are plain numbers, for which zeros are valid.
    let (mut times, mut files): (libc::rusage, libc::rlimit) = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers lead to structures of ours that outlive the calls. The calls cannot
    // fail with these arguments; they would leave the zeros.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, &mut times);
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut files);
    }
    let time_ns =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    ProcessUsage {
        cpu_ns: time_ns(times.ru_utime) + time_ns(times.ru_stime),
        resident_bytes: pages.map(|pages| pages * page_bytes() as u64),
        files_max: files.rlim_cur,
    }
}

/// The bytes of a page of memory.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.unsigned_abs() as usize
}

/// Waits without limit for one of poll(2)'s `events`.
pub(super) fn poll_one(descriptor: BorrowedFd<'_>, events: libc::c_short) -> io::Result<()> {
    poll(descriptor, events, -1).map(|_| ())
}

/// The ones of poll(2)'s `events` that are there now, errors and hang-ups among them.
pub(super) fn poll_now(
    descriptor: BorrowedFd<'_>,
    events: libc::c_short,
) -> io::Result<libc::c_short> {
    poll(descriptor, events, 0)
}

fn poll(
    descriptor: BorrowedFd<'_>,
    events: libc::c_short,
    timeout_ms: libc::c_int,
) -> io::Result<libc::c_short> {
    let mut entry = libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: the pointer points to the one entry that is announced.
    retry(|| check(unsafe { libc::poll(&mut entry, 1, timeout_ms) }))?;
    Ok(entry.revents)
}

/// The time in nanoseconds that a thread of this process has worked, by its number (Linux 2.6.12).
///
/// # Errors
/// The error of clock_gettime(2): there is no such thread any more.
pub fn thread_cpu_ns(thread: i32) -> io::Result<u64> {
    // The kernel's number of that clock: CPUCLOCK_PERTHREAD_MASK with CPUCLOCK_SCHED.
    let clock = (!thread << 3) | 0b110;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer points to a whole timespec.
    check(unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) })?;
    // SAFETY: the call has filled it.
    let time = unsafe { time.assume_init() };
    let whole_ns = (time.tv_sec as u64).saturating_mul(1_000_000_000);
    Ok(whole_ns.saturating_add(time.tv_nsec as u64))
}

/// CLOCK_MONOTONIC in nanoseconds: the clock that `bpf_ktime_get_ns` reads.
pub fn monotonic_ns() -> u64 {
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return simulation::with_world(0, |world| world.now_ns());
    }
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer points to a whole timespec; this clock always exists, so it gets filled,
    // and all zero bytes are a valid one if it were not.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

/// Milliseconds since 1970, by the system's clock, which may be set back.
pub fn unix_ms() -> u64 {
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return simulation::with_world(0, |world| world.unix_ms());
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

/// Seconds since 1970; see [`unix_ms`].
pub fn unix_s() -> u64 {
    unix_ms() / 1000
}

fn resource_number(resource: Resource) -> libc::__rlimit_resource_t {
    match resource {
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::CoreBytes => libc::RLIMIT_CORE,
        Resource::LockedBytes => libc::RLIMIT_MEMLOCK,
    }
}

/// The number of threads: the links of the process's task folder, less the two of every folder.
fn thread_count() -> io::Result<usize> {
    let task = file::open(b"/proc/self/task", file::Purpose::Read, file::Links::Follow)?;
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the pointer points to a whole stat64.
    check(unsafe { libc::fstat64(task.as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: fstat64 has succeeded, so it has filled the struct.
    let links = unsafe { raw.assume_init() }.st_nlink;
    Ok(usize::try_from(links)
        .unwrap_or(usize::MAX)
        .saturating_sub(2))
}

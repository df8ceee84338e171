//! The sandbox of the serving process: what it will never need, it gives up before it serves.
//!
//! * No new privileges: a set-user-id program gives it none.
//! * No capabilities, neither now nor by a program it would start.
//! * Landlock: files may be read; they may be written, made and removed only in the folders that
//!   the configuration names for it; nothing may be executed.
//! * seccomp: system calls that serving does not make fail with `EPERM`, and the log names them.
//!
//! The list of calls says what is allowed. A call that is not in it does not end the process: a
//! server whose libraries change must not die of a new call, and the log says what is to be added.
//! The tests run in the sandbox too (`make sandbox`). Nothing here knows a request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, io, thread};

use caps::CapSet;
use landlock::{
    ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::refused_calls;

/// The newest rules that are known here; an older kernel enforces those that it knows.
const LANDLOCK_RULES: ABI = ABI::V5;

/// Calls that serving, its libraries and the allocator make. What a new version of one of them asks
/// for beside these fails with `EPERM`, and the log names it.
const ALLOWED_CALLS: &[libc::c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_chdir,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone, // see `refuse_processes`
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_connect,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_ioctl,
    libc::SYS_kill,
    libc::SYS_linkat,
    libc::SYS_listen,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_prlimit64,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer,
    libc::SYS_setpriority,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_splice,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_sysinfo,
    libc::SYS_tee,
    libc::SYS_tgkill,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The same, of processors that have had them from of old.
#[cfg(target_arch = "x86_64")]
const ALLOWED_OLD_CALLS: &[libc::c_long] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getrlimit,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_setrlimit,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_time,
    libc::SYS_unlink,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OLD_CALLS: &[libc::c_long] = &[];

/// Whether there is a sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sandbox {
    /// There is none.
    #[default]
    Off,
    /// As much of it as the kernel has; what it has not is logged.
    On,
    /// The whole of it, or the server does not start.
    Required,
}

/// A wall of the sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wall {
    /// `PR_SET_NO_NEW_PRIVS`.
    NoNewPrivileges,
    /// capabilities(7).
    Capabilities,
    /// landlock(7), Linux 5.13.
    Landlock,
    /// seccomp(2).
    Seccomp,
}

impl fmt::Display for Wall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Wall::NoNewPrivileges => "no new privileges",
            Wall::Capabilities => "no capabilities",
            Wall::Landlock => "landlock",
            Wall::Seccomp => "seccomp",
        })
    }
}

/// A wall that does not stand, or not whole, with the reason.
pub type Missing = (Wall, String);

/// Builds the walls around the calling thread and those that it starts from now on. To be called
/// when the user has been changed and before there are other threads. Returns what is missing.
pub fn enter(writable: &[PathBuf]) -> Vec<Missing> {
    let walls = [
        (Wall::NoNewPrivileges, no_new_privileges()),
        (Wall::Capabilities, drop_capabilities()),
        (Wall::Landlock, restrict_files(writable)),
        (Wall::Seccomp, allow_calls()),
    ];
    walls
        .into_iter()
        .filter_map(|(wall, built)| Some((wall, built.err()?)))
        .collect()
}

/// What must be done while the process is still root's: a program that root starts later gets no
/// capability back. Elsewhere it fails, and there is nothing to drop.
pub fn prepare() {
    for capability in caps::all() {
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
}

fn no_new_privileges() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| error.to_string())
}

fn drop_capabilities() -> Result<(), String> {
    let sets = [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ];
    for set in sets {
        caps::clear(None, set).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn restrict_files(writable: &[PathBuf]) -> Result<(), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let write = AccessFs::from_write(LANDLOCK_RULES);
    let mut ruleset = Ruleset::default()
        .handle_access(write | AccessFs::Execute)
        .and_then(|ruleset| ruleset.create())
        .map_err(|error| text(&error))?;
    let inside = write & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for folder in writable {
        // One that is not there cannot be written to anyway.
        let Ok(folder) = PathFd::new(folder) else {
            continue;
        };
        ruleset = ruleset
            .add_rule(PathBeneath::new(folder, inside))
            .map_err(|error| text(&error))?;
    }
    let null = PathFd::new(Path::new("/dev/null")).map_err(|error| text(&error))?;
    let status = ruleset
        .add_rule(PathBeneath::new(null, AccessFs::WriteFile))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| text(&error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("the kernel does not have it".to_owned()),
    }
}

/// Lets the calls of the list pass. Calls of the x32 kind, which have numbers of their own, are not
/// in it; those of another processor's kind end the process.
fn allow_calls() -> Result<(), String> {
    refused_calls::answer().map_err(|error| error.to_string())?;
    refuse_processes()?;
    let allowed = ALLOWED_CALLS.iter().chain(ALLOWED_OLD_CALLS);
    let rules = allowed.map(|call| (*call, Vec::new())).collect();
    // The last one: it does not let another filter be put in force.
    let refuse = if refused_calls::IS_ANSWERED {
        SeccompAction::Trap
    } else {
        SeccompAction::Errno(libc::EPERM as u32)
    };
    apply(rules, refuse, SeccompAction::Allow)
}

/// clone(2) makes threads, which are wanted, and processes, which are not. C libraries call it with
/// every signal blocked, and a signal could not tell them that it is refused: the kernel does.
fn refuse_processes() -> Result<(), String> {
    let (width, thread) = (SeccompCmpArgLen::Qword, libc::CLONE_THREAD as u64);
    let makes_process = SeccompCondition::new(0, width, SeccompCmpOp::MaskedEq(thread), 0)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())?;
    let rules = BTreeMap::from([(libc::SYS_clone, vec![makes_process])]);
    let refuse = |errno: libc::c_int| SeccompAction::Errno(errno as u32);
    apply(rules, SeccompAction::Allow, refuse(libc::EPERM))?;
    // What clone3(2) would make cannot be seen from here: as if the kernel did not have it, so
    // that the C library takes clone(2).
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(newer, SeccompAction::Allow, refuse(libc::ENOSYS))
}

/// Puts a filter in force: what is done with calls of the list, and with all others.
fn apply(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    listed: SeccompAction,
) -> Result<(), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| text(&error))?;
    let filter = SeccompFilter::new(rules, others, listed, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| text(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| text(&error))
}

/// Has the log told of every system call that the sandbox refuses, each number once.
pub fn tell(log: &ErrorLog) -> io::Result<()> {
    let log = log.clone();
    let tell = move || {
        let mut told = BTreeSet::new();
        while let Ok(number) = refused_calls::next() {
            if told.insert(number) {
                log.event(
                    Level::Alert,
                    format_args!("the sandbox refused system call {number} with EPERM"),
                );
            }
        }
    };
    let thread = thread::Builder::new().name("sandbox".to_owned());
    thread.spawn(tell).map(|_| ())
}

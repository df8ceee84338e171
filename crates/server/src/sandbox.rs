//! The sandbox of the serving process: what it will never need, it gives up before it serves.
//!
//! * No new privileges: a set-user-id program gives it none.
//! * No capabilities, neither now nor by a program it would start.
//! * Landlock: files may be read; they may be written, made and removed only in the folders that
//!   the configuration names for it; nothing may be executed.
//! * seccomp: system calls that start programs, trace, mount, load into the kernel, change the
//!   user or the clock fail with `EPERM`.
//!
//! The list of calls says what is forbidden, not what is allowed: a server whose libraries change
//! must not die of a new call. Nothing here knows a request.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

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

/// The newest rules that are known here; an older kernel enforces those that it knows.
const LANDLOCK_RULES: ABI = ABI::V5;

/// Calls that serving needs at no time.
const FORBIDDEN_CALLS: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_capset,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setreuid,
    libc::SYS_settimeofday,
    libc::SYS_setuid,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// The same, of processors that have had them from of old.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD_CALLS: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD_CALLS: &[libc::c_long] = &[];

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
        (Wall::Seccomp, forbid_calls()),
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

fn forbid_calls() -> Result<(), String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = FORBIDDEN_CALLS
        .iter()
        .chain(FORBIDDEN_OLD_CALLS)
        .map(|call| (*call, Vec::new()))
        .collect();
    // clone(2) makes threads, which are wanted, and processes, which are not.
    let makes_process = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64),
        0,
    )
    .and_then(|condition| SeccompRule::new(vec![condition]))
    .map_err(|error| error.to_string())?;
    rules.insert(libc::SYS_clone, vec![makes_process]);
    apply(rules, libc::EPERM)?;
    // What clone3(2) would make cannot be seen from here: as if the kernel did not have it, so
    // that the C library takes clone(2).
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(newer, libc::ENOSYS)
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> Result<(), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| text(&error))?;
    let refuse = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| text(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| text(&error))
}

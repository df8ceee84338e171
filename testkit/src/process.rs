//! Other processes: their children, and signals by number. Never by name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Between two looks at a thread that is held.
const HOLD_LOOK: Duration = Duration::from_millis(5);

/// What ptrace(2) tells of, as nix leaves it: numbers.
const EVENT_FORK: i32 = nix::libc::PTRACE_EVENT_FORK;
const EVENT_VFORK: i32 = nix::libc::PTRACE_EVENT_VFORK;
const EVENT_EXEC: i32 = nix::libc::PTRACE_EVENT_EXEC;

/// The path of an installed program, looked for also where the PATH of plain users does not lead:
/// Debian's nginx is in `/usr/sbin`. `None` where it is not installed.
pub fn find_program(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name.as_ref()))
        .find(|path| path.is_file())
}

/// Sends a signal; false where there is no such process (any more) or it is not ours.
pub fn signal(pid: u32, signal: Signal) -> bool {
    i32::try_from(pid).is_ok_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
}

/// Whether a process is stopped, by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    state(pid).is_some_and(|state| matches!(state, 'T' | 't'))
}

/// Whether there is such a process, a zombie left out.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Whether there is nothing left of a process: each of its threads has ended, and its parent knows.
pub fn is_gone(pid: u32) -> bool {
    state(pid).is_none()
}

/// Whether every thread of a process has ended, its parent knowing it or not.
pub fn has_ended(pid: u32) -> bool {
    !is_alive(pid) && threads(pid).len() <= 1
}

/// The direct children of every thread of a process, in the order in which they were started.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    children
}

/// The letter by which the kernel names the state of a process.
fn state(pid: u32) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The threads of a process with their names.
pub fn threads(pid: u32) -> Vec<(u32, String)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let thread = |task: std::fs::DirEntry| {
        let number = task.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        Some((number, name.trim().to_owned()))
    };
    tasks.flatten().filter_map(thread).collect()
}

/// Which moment a thread is stopped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Whatever it does.
    Any,
    /// When it has just begun to work on something, as if it looped then. It is waited for.
    Awake,
}

/// Stops one thread of another process, as a debugger does, while `meanwhile` says so; the others
/// run on. `meanwhile` is asked every few milliseconds once the thread is stopped.
///
/// # Errors
/// The kernel does not permit it, or there is no such thread.
pub fn hold_thread(
    thread: u32,
    moment: Moment,
    mut meanwhile: impl FnMut() -> bool,
) -> nix::Result<()> {
    let number = thread;
    let thread = Pid::from_raw(i32::try_from(thread).map_err(|_| nix::Error::ESRCH)?);
    ptrace::seize(thread, ptrace::Options::empty())?;
    let look = |flags| waitpid(thread, Some(WaitPidFlag::__WALL | flags));
    ptrace::interrupt(thread)?;
    look(WaitPidFlag::empty())?;
    // From one system call to the next, until it is in one that work consists of.
    while moment == Moment::Awake && !serves(number) {
        ptrace::syscall(thread, None)?;
        look(WaitPidFlag::empty())?;
    }
    while meanwhile() {
        std::thread::sleep(HOLD_LOOK);
        // A thread that is killed meanwhile must be let go, or its process is never quite gone.
        match look(WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
    match ptrace::detach(thread, None) {
        Ok(()) | Err(nix::Error::ESRCH) => {}
        Err(error) => return Err(error),
    }
    // Should it have been killed just now, this lets go of it.
    let _ = look(WaitPidFlag::WNOHANG);
    Ok(())
}

/// Lets a process go on that has stopped itself, until it starts another program as its child.
/// That one is stopped before its first instruction and stays so; its number comes back.
///
/// # Errors
/// The kernel does not permit it, or the process ends before.
pub fn stop_first_child(pid: u32) -> nix::Result<u32> {
    let parent = Pid::from_raw(i32::try_from(pid).map_err(|_| nix::Error::ESRCH)?);
    let look = |process: Pid| waitpid(process, Some(WaitPidFlag::__WALL));
    let starts = ptrace::Options::PTRACE_O_TRACEFORK
        | ptrace::Options::PTRACE_O_TRACEVFORK
        | ptrace::Options::PTRACE_O_TRACEEXEC;
    ptrace::seize(parent, starts)?;
    kill(parent, Signal::SIGCONT)?;
    let child = loop {
        match look(parent)? {
            WaitStatus::PtraceEvent(_, _, EVENT_FORK | EVENT_VFORK) => {
                break Pid::from_raw(ptrace::getevent(parent)? as i32);
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(parent, signal)?,
            WaitStatus::PtraceEvent(..) => ptrace::cont(parent, None)?,
            _ => return Err(nix::Error::ECHILD),
        }
    };
    ptrace::cont(parent, None)?;
    loop {
        match look(child)? {
            WaitStatus::PtraceEvent(_, _, EVENT_EXEC) => break,
            WaitStatus::Stopped(_, signal) => ptrace::cont(child, signal)?,
            WaitStatus::PtraceEvent(..) => ptrace::cont(child, None)?,
            _ => return Err(nix::Error::ECHILD),
        }
    }
    // It is pending when the child is let go of, so that nothing is done before it.
    kill(child, Signal::SIGSTOP)?;
    ptrace::detach(child, None)?;
    // The parent is let go of too; what it is being told just then, it is told.
    ptrace::interrupt(parent)?;
    let told = match look(parent)? {
        WaitStatus::Stopped(_, signal) => Some(signal),
        _ => None,
    };
    ptrace::detach(parent, told)?;
    u32::try_from(child.as_raw()).map_err(|_| nix::Error::ESRCH)
}

/// Whether a stopped thread is in a system call that serves a client. In any other one, or in none,
/// it may be about to wait for events, or hold a lock that others need.
fn serves(thread: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let number = text.split_ascii_whitespace().next().unwrap_or_default();
    let calls = [
        nix::libc::SYS_accept4,
        nix::libc::SYS_recvfrom,
        nix::libc::SYS_sendto,
        nix::libc::SYS_sendmsg,
    ];
    calls.iter().any(|call| call.to_string() == number)
}

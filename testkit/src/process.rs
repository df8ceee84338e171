//! Other processes: their children, and signals by process number, never by name.

use std::path::{Path, PathBuf};
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The pause between two checks of a held thread.
const HOLD_LOOK: Duration = Duration::from_millis(5);

/// The events of ptrace(2), as numbers, since nix has no type for them.
const EVENT_FORK: i32 = nix::libc::PTRACE_EVENT_FORK;
const EVENT_VFORK: i32 = nix::libc::PTRACE_EVENT_VFORK;
const EVENT_EXEC: i32 = nix::libc::PTRACE_EVENT_EXEC;

/// The path of an installed program; it is also searched in folders outside of a plain user's PATH:
/// Debian's nginx is in `/usr/sbin`. `None` if it is not installed.
pub fn find_program(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name.as_ref()))
        .find(|path| path.is_file())
}

/// Sends a signal; false if there is no such process or it is not ours.
pub fn signal(pid: u32, signal: Signal) -> bool {
    i32::try_from(pid).is_ok_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
}

/// Whether a process is stopped, by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    state(pid).is_some_and(|state| matches!(state, 'T' | 't'))
}

/// Whether there is such a process that is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Whether a process has ended and was reaped.
pub fn is_gone(pid: u32) -> bool {
    state(pid).is_none()
}

/// Whether every thread of a process has ended, reaped or not.
pub fn has_ended(pid: u32) -> bool {
    !is_alive(pid) && threads(pid).len() <= 1
}

/// The direct children of every thread of a process, in the order of their start.
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

/// Has one thread of another process loop for ever from its next piece of work on, as a fault in a
/// program would: it goes on at an instruction that jumps to itself, which stands where the program
/// began and nothing comes by again. `disturb` gives it work until then.
///
/// # Errors
/// The kernel does not permit it, or there is no such thread.
#[cfg(target_arch = "x86_64")]
pub fn spin_thread(process: u32, thread: u32, mut disturb: impl FnMut() + Send) -> nix::Result<()> {
    let entry = entry_point(process).ok_or(nix::Error::ESRCH)?;
    let tid = Pid::from_raw(i32::try_from(thread).map_err(|_| nix::Error::ESRCH)?);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                disturb();
            }
        });
        // Only the thread that traces may do so.
        let spun = begin_spin(tid, thread, entry);
        is_over.store(true, Ordering::SeqCst);
        spun
    })
}

#[cfg(target_arch = "x86_64")]
fn begin_spin(tid: Pid, thread: u32, entry: u64) -> nix::Result<()> {
    /// `jmp` to itself.
    const LOOP: [u8; 2] = [0xeb, 0xfe];
    ptrace::seize(tid, ptrace::Options::empty())?;
    let look = || waitpid(tid, Some(WaitPidFlag::__WALL));
    ptrace::interrupt(tid)?;
    look()?;
    while !serves(thread) {
        ptrace::syscall(tid, None)?;
        look()?;
    }
    // To the end of the call: its result changes the registers.
    ptrace::syscall(tid, None)?;
    look()?;
    let word = ptrace::read(tid, entry as ptrace::AddressType)?;
    let mut bytes = word.to_ne_bytes();
    bytes[..LOOP.len()].copy_from_slice(&LOOP);
    let word = std::ffi::c_long::from_ne_bytes(bytes);
    ptrace::write(tid, entry as ptrace::AddressType, word)?;
    let mut registers = ptrace::getregs(tid)?;
    registers.rip = entry;
    ptrace::setregs(tid, registers)?;
    ptrace::detach(tid, None)
}

/// The address at which a process began (`AT_ENTRY` of its auxiliary vector).
#[cfg(target_arch = "x86_64")]
fn entry_point(process: u32) -> Option<u64> {
    const AT_ENTRY: u64 = 9;
    let vector = std::fs::read(format!("/proc/{process}/auxv")).ok()?;
    let words = vector.as_chunks::<8>().0.iter().copied();
    let words: Vec<u64> = words.map(u64::from_ne_bytes).collect();
    let entry = words
        .as_chunks::<2>()
        .0
        .iter()
        .find(|pair| pair[0] == AT_ENTRY);
    entry.map(|pair| pair[1])
}

/// The letter of a process's state.
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

/// The state in which a thread is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Any state.
    Any,
    /// At the start of work, as if it looped there. This state is waited for.
    Awake,
}

/// Stops one thread of another process, as a debugger does, while `meanwhile` returns true; the
/// others continue. `meanwhile` is called every few milliseconds once the thread is stopped.
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
    // From one system call to the next, until it is in one that is part of serving.
    while moment == Moment::Awake && !serves(number) {
        ptrace::syscall(thread, None)?;
        look(WaitPidFlag::empty())?;
    }
    while meanwhile() {
        std::thread::sleep(HOLD_LOOK);
        // A thread that is killed meanwhile must be detached, or its process is never reaped.
        match look(WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
    match ptrace::detach(thread, None) {
        Ok(()) | Err(nix::Error::ESRCH) => {}
        Err(error) => return Err(error),
    }
    // This detaches a thread that was killed just now.
    let _ = look(WaitPidFlag::WNOHANG);
    Ok(())
}

/// Continues a process that has stopped itself, until it starts another program as its child. The
/// child is stopped before its first instruction and stays stopped; returns its number.
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
    // The signal is pending at the detach, so that nothing runs before it.
    kill(child, Signal::SIGSTOP)?;
    ptrace::detach(child, None)?;
    // The parent is detached too; a signal that it is getting is delivered.
    ptrace::interrupt(parent)?;
    let pending = match look(parent)? {
        WaitStatus::Stopped(_, signal) => Some(signal),
        _ => None,
    };
    ptrace::detach(parent, pending)?;
    u32::try_from(child.as_raw()).map_err(|_| nix::Error::ESRCH)
}

/// Whether a stopped thread is in a system call that serves a client. In another one, or in none,
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

//! Signals as input, not as interruptions (signalfd(2)): no handler runs in our process.

use std::{
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::{check, check_size, retry};

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The number (`libc::SIGHUP`, ...).
    pub number: i32,
    /// The process that sent it; 0 for the kernel.
    pub sender_process: i32,
}

/// A queue of signals, which are blocked in the calling thread (and in threads that it starts). It
/// must be made before any other thread exists; a child that is started later must unblock them.
#[derive(Debug)]
pub struct SignalQueue {
    descriptor: OwnedFd,
}

impl SignalQueue {
    /// Blocks and queues `numbers`; non-blocking, close-on-exec. A shell starts programs in the
    /// background with INT and QUIT ignored, and nohup with HUP: what was inherited is undone, for
    /// this process and those that it starts.
    pub fn new(numbers: &[i32]) -> io::Result<SignalQueue> {
        let set = block(numbers)?;
        for number in numbers {
            restore(*number)?;
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised and outlives the call.
        let descriptor = check(unsafe { libc::signalfd(-1, &set, flags) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(SignalQueue { descriptor })
    }

    /// The next signal; `None` if none waits.
    pub fn next(&self) -> io::Result<Option<Signal>> {
        let mut raw = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = mem::size_of::<libc::signalfd_siginfo>();
        let count = retry(|| {
            // SAFETY: `size` is the size of `raw`, which the kernel fills whole or not at all.
            check_size(unsafe {
                libc::read(self.descriptor.as_raw_fd(), raw.as_mut_ptr().cast(), size)
            })
        });
        match count {
            Ok(_) => {
                // SAFETY: integers only, zeroed before, whatever the kernel wrote is valid.
                let raw = unsafe { raw.assume_init() };
                Ok(Some(Signal {
                    number: raw.ssi_signo as i32,
                    sender_process: raw.ssi_pid as i32,
                }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Makes the process ignore a signal.
pub fn ignore(number: i32) -> io::Result<()> {
    set_action(number, libc::SIG_IGN)
}

/// Gives a signal the action that it has in a new process.
fn restore(number: i32) -> io::Result<()> {
    set_action(number, libc::SIG_DFL)
}

/// Sets `SIG_IGN` or `SIG_DFL`.
fn set_action(number: i32, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: neither action is a function that could run.
    let old = unsafe { libc::signal(number, action) };
    if old == libc::SIG_ERR {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sends a signal to a process; number 0 only checks whether the process exists.
pub fn send(process: i32, number: i32) -> io::Result<()> {
    // SAFETY: kill takes no pointers.
    check(unsafe { libc::kill(process, number) })?;
    Ok(())
}

/// Unblocks signals that the process's parent had blocked, in the calling thread and in threads
/// that it starts.
pub fn unblock(numbers: &[i32]) -> io::Result<()> {
    let mut set = empty_set();
    for number in numbers {
        // SAFETY: the set is initialised.
        check(unsafe { libc::sigaddset(&mut set, *number) })?;
    }
    // SAFETY: the set is initialised and outlives the call; no old set is asked for.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    match result {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn block(numbers: &[i32]) -> io::Result<libc::sigset_t> {
    let mut set = empty_set();
    for number in numbers {
        // SAFETY: the set is initialised.
        check(unsafe { libc::sigaddset(&mut set, *number) })?;
    }
    // SAFETY: the set is initialised and outlives the call; no old set is asked for.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    if result == 0 {
        Ok(set)
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set, and cannot fail with a valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

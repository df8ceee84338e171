//! What another thread is doing: it is asked by a signal, and writes its own return addresses down.
//!
//! The handler allocates nothing and takes no lock: it walks the stack by the tables that the
//! loader has found already (`_dl_find_object`, glibc 2.35), into room that is there. Names are
//! looked up afterwards by whoever asked. A thread that sleeps in the kernel without letting
//! signals in does not answer; then there is nothing to be had from here.

use std::{
    ffi::{CStr, c_void},
    io,
    mem::MaybeUninit,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use super::check;

/// Return addresses written down at most: deeper ones are of the loop around, which is known.
pub const FRAMES_MAX: usize = 48;

/// Between two looks whether the thread has answered.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// One at a time is asked.
static ASKING: Mutex<()> = Mutex::new(());
/// The thread whose answer is awaited, or 0: an answer that comes too late is not written.
static WANTED: AtomicI32 = AtomicI32::new(0);
static ANSWERED: AtomicI32 = AtomicI32::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];

fn number() -> i32 {
    // Behind those that C libraries keep for themselves.
    libc::SIGRTMIN() + 3
}

/// The calling thread's number, by which others may ask it.
pub fn thread_number() -> i32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Makes this process's threads answer. System calls that are interrupted go on by themselves, but
/// for waits with a time-out.
pub fn prepare() -> io::Result<()> {
    // The first walk loads what walking needs; it must not be in the handler.
    // SAFETY: nothing else walks in this thread; the closure only counts.
    unsafe { backtrace::trace_unsynchronized(|_| false) };
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zero bytes are a valid sigaction.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = answer as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the action is initialised, its handler keeps to what a handler may do, and no old
    // one is asked for.
    check(unsafe { libc::sigaction(number(), action, std::ptr::null_mut()) })?;
    Ok(())
}

/// The return addresses of a thread of this process, its innermost function first. `None` when it
/// has not answered within `patience`, or does not exist. [`prepare`] must have been called.
pub fn of_thread(thread: i32, patience: Duration) -> Option<Vec<usize>> {
    let _one = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    ANSWERED.store(0, SeqCst);
    WANTED.store(thread, SeqCst);
    // SAFETY: tgkill takes no pointers; the thread has a handler for this signal.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, number()) };
    let until = Instant::now() + patience;
    while sent == 0 && ANSWERED.load(SeqCst) != thread && Instant::now() < until {
        std::thread::sleep(LOOK_PAUSE);
    }
    let answered = ANSWERED.load(SeqCst) == thread;
    WANTED.store(0, SeqCst);
    answered.then(|| {
        let count = COUNT.load(SeqCst).min(FRAMES_MAX);
        FRAMES[..count]
            .iter()
            .map(|frame| frame.load(SeqCst))
            .collect()
    })
}

/// What an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This program, so many bytes behind its start.
    Program {
        /// Bytes.
        offset: usize,
    },
    /// A library.
    Library {
        /// The path.
        file: String,
        /// Bytes from its start.
        offset: usize,
        /// The function, where the library tells.
        function: Option<String>,
    },
    /// Nothing that is loaded.
    Unknown { address: usize },
}

/// Finds what an address belongs to (dladdr(3)). Allocates, and may take the loader's lock.
pub fn place(address: usize) -> Place {
    let Some(found) = object(address) else {
        return Place::Unknown { address };
    };
    let own = object(place as *const () as usize);
    let offset = address.wrapping_sub(found.dli_fbase as usize);
    if own.is_some_and(|own| own.dli_fbase == found.dli_fbase) {
        return Place::Program { offset };
    }
    let text = |text: *const libc::c_char| {
        if text.is_null() {
            return None;
        }
        // SAFETY: not NULL, it is a text of an object that stays loaded: nothing here unloads one.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    };
    Place::Library {
        file: text(found.dli_fname).unwrap_or_default(),
        offset,
        function: text(found.dli_sname),
    }
}

fn object(address: usize) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the pointer leads to a whole Dl_info; the address is only looked up.
    let is_found = unsafe { libc::dladdr(address as *const c_void, found.as_mut_ptr()) } != 0;
    // SAFETY: all zero bytes are a valid Dl_info, and dladdr fills it.
    is_found.then(|| unsafe { found.assume_init() })
}

/// The handler.
extern "C" fn answer(_: libc::c_int) {
    let thread = thread_number();
    if WANTED.load(SeqCst) != thread {
        return;
    }
    // SAFETY: the address of the calling thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let mut count = 0;
    // SAFETY: one thread at a time walks, the one that is wanted; the closure allocates nothing
    // and does not panic.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            if let Some(slot) = FRAMES.get(count) {
                slot.store(frame.ip() as usize, SeqCst);
                count += 1;
            }
            count < FRAMES_MAX
        });
    }
    COUNT.store(count, SeqCst);
    ANSWERED.store(thread, SeqCst);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

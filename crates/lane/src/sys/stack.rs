//! The stack of another thread: a signal makes the thread write down its own return addresses.
//!
//! The handler allocates nothing and takes no lock: it walks the stack with tables that the loader
//! has already found (`_dl_find_object`, glibc 2.35), into preallocated memory. The caller looks up
//! the names afterwards. A thread that sleeps uninterruptibly in the kernel does not answer, and
//! there is no stack then.

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

/// The most return addresses: deeper ones belong to the surrounding loop, which is known.
pub const FRAMES_MAX: usize = 48;

/// The pause between two checks for the thread's answer.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// One caller at a time.
static ASKING: Mutex<()> = Mutex::new(());
/// The thread whose answer is awaited, or 0: a late answer is not written.
static WANTED: AtomicI32 = AtomicI32::new(0);
static ANSWERED: AtomicI32 = AtomicI32::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];

fn number() -> i32 {
    // After those that C libraries reserve for themselves.
    libc::SIGRTMIN() + 3
}

/// The calling thread's number, for [`of_thread`].
pub fn thread_number() -> i32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Makes this process's threads answer. Interrupted system calls restart by themselves, except for
/// waits with a time-out.
pub fn prepare() -> io::Result<()> {
    // The first walk loads its tables; that must not happen in the handler. SAFETY: nothing else
    // walks in this thread; the closure only counts.
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

/// The return addresses of a thread of this process, its innermost function first. `None` if it has
/// not answered within `patience`, or does not exist. [`prepare`] must have been called.
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

/// The object that contains an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This program.
    Program {
        /// The distance from its start, in bytes.
        offset: usize,
    },
    /// A library.
    Library {
        /// The path.
        file: String,
        /// The distance from its start, in bytes.
        offset: usize,
        /// The function, if the library names it.
        function: Option<String>,
    },
    /// No loaded object.
    Unknown { address: usize },
}

/// Finds the object that contains an address (dladdr(3)). Allocates, and may take the loader's
/// lock.
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
    // SAFETY: the pointer points to a whole Dl_info; the address is only looked up.
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

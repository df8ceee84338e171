//! PCRE2: regular expressions in Perl's syntax, with a limit on the cost of a match.
//!
//! The usual binding has no limits and no callouts, and allocates memory for every match. A lane
//! needs more: a match ends after a known number of steps, it can continue in the interpreter when
//! the stack of compiled code is used up, and its memory belongs to the thread.
//!
//! PCRE2's own limit counts backtracking from one starting position, and starts again at the next;
//! between two counts it may scan the whole subject. So it does not bound the time of a match. Code
//! compiled with [`Counting::Steps`] has a callout before each item of the pattern, and the callout
//! counts: one step for the item, and more for a long scan of the subject.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use pcre2_sys as ffi;

/// The bytes of the subject that a match may scan for one step. A step without a scan takes 10 to
/// 20 ns, and compiled code scans this many bytes in that time.
const BYTES_PER_STEP: usize = 16;

/// The initial stack of compiled code; it grows if needed.
const STACK_BYTES_FIRST: usize = 32 * 1024;

/// The largest stack of compiled code, unless [`use_stack`] was called: enough for 40,000
/// repetitions of a group, more than the default size of a request head in bytes.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// The initial number of groups in a thread's match data: nginx's patterns have ten.
const PAIRS_FIRST: u32 = 16;

/// The unit that a compiled pattern counts in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Backtracking, from each starting position separately, as in PCRE2.
    Backtracks,
    /// All steps: slower by a factor of 2 to 10.
    Steps,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Code {
    raw: NonNull<ffi::pcre2_code_8>,
    groups: u32,
    counting: Counting,
}

// SAFETY: PCRE2 only reads a compiled pattern, and its documentation allows threads to share it.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// Why a pattern cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// PCRE2's text.
    pub message: String,
    /// The offset of the error in the pattern, in bytes.
    pub offset: usize,
}

/// The limits of a match.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Backtracks from one starting position.
    pub backtracks: u32,
    /// The remaining steps: [`Counting::Steps`] subtracts from them.
    pub steps: u64,
    /// The steps of one item of the pattern, if it may do more than one thing.
    pub steps_per_item: u64,
    /// Memory of the interpreter, in KiB.
    pub heap_kib: u32,
    /// Whether to use the interpreter, which needs no stack.
    pub interpreted: bool,
}

/// Why a match ended without a result: PCRE2's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchFailure(pub i32);

impl MatchFailure {
    /// The limit of steps or backtracking.
    pub const LIMIT: MatchFailure = MatchFailure(ffi::PCRE2_ERROR_MATCHLIMIT);

    /// Whether more steps or more memory could give a result.
    pub fn is_limit(self) -> bool {
        matches!(
            self.0,
            ffi::PCRE2_ERROR_MATCHLIMIT
                | ffi::PCRE2_ERROR_CALLOUT
                | ffi::PCRE2_ERROR_HEAPLIMIT
                | ffi::PCRE2_ERROR_DEPTHLIMIT
        )
    }

    /// Whether the stack of compiled code was used up.
    pub fn is_stack(self) -> bool {
        self.0 == ffi::PCRE2_ERROR_JIT_STACKLIMIT
    }

    /// PCRE2's text. Allocates.
    pub fn message(self) -> String {
        match self.0 {
            ffi::PCRE2_ERROR_CALLOUT => message(ffi::PCRE2_ERROR_MATCHLIMIT),
            code => message(code),
        }
    }
}

impl Code {
    /// Compiles a pattern, which the interpreter runs. Allocates.
    ///
    /// # Errors
    /// PCRE2's error.
    pub fn compile(
        pattern: &[u8],
        caseless: bool,
        counting: Counting,
    ) -> Result<Code, CompileError> {
        let mut options = 0;
        if caseless {
            options |= ffi::PCRE2_CASELESS;
        }
        if counting == Counting::Steps {
            options |= ffi::PCRE2_AUTO_CALLOUT;
        }
        let (mut code, mut offset) = (0, 0);
        // SAFETY: pointer and length are of one slice, both results are written to variables that
        // live, and no context is the default one.
        let raw = unsafe {
            ffi::pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                options,
                &mut code,
                &mut offset,
                ptr::null_mut(),
            )
        };
        let Some(raw) = NonNull::new(raw) else {
            let message = message(code);
            return Err(CompileError { message, offset });
        };
        let mut compiled = Code {
            raw,
            groups: 0,
            counting,
        };
        compiled.groups = compiled.number(ffi::PCRE2_INFO_CAPTURECOUNT);
        Ok(compiled)
    }

    /// Adds machine code where the system supports it: it runs far faster, and takes far longer to
    /// make than the rest. Allocates.
    pub fn with_machine_code(self) -> Code {
        // Without machine code the interpreter goes on running the pattern. SAFETY: the pattern is
        // compiled, and no other thread has it yet.
        unsafe { ffi::pcre2_jit_compile_8(self.raw.as_ptr(), ffi::PCRE2_JIT_COMPLETE) };
        self
    }

    /// The number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.groups as usize
    }

    /// The size of the compiled pattern in bytes, without machine code.
    pub fn size_bytes(&self) -> usize {
        let mut bytes = 0_usize;
        self.info(ffi::PCRE2_INFO_SIZE, &mut bytes);
        bytes
    }

    /// Whether it can match only at the start of a subject.
    pub fn is_anchored(&self) -> bool {
        self.number(ffi::PCRE2_INFO_ALLOPTIONS) & ffi::PCRE2_ANCHORED != 0
    }

    /// Whether it reads the subject as UTF-8.
    pub fn is_utf(&self) -> bool {
        self.number(ffi::PCRE2_INFO_ALLOPTIONS) & ffi::PCRE2_UTF != 0
    }

    /// Whether it has back references.
    pub fn has_back_references(&self) -> bool {
        self.number(ffi::PCRE2_INFO_BACKREFMAX) > 0
    }

    /// The named groups: number and name. Allocates.
    pub fn names(&self) -> Vec<(usize, String)> {
        let count = self.number(ffi::PCRE2_INFO_NAMECOUNT) as usize;
        let entry_bytes = self.number(ffi::PCRE2_INFO_NAMEENTRYSIZE) as usize;
        let mut table: *const u8 = ptr::null();
        self.info(ffi::PCRE2_INFO_NAMETABLE, &mut table);
        if table.is_null() || count == 0 || entry_bytes < 3 {
            return Vec::new();
        }
        // SAFETY: PCRE2 has a table of `count` entries of that size, which lives as long as the
        // compiled pattern does.
        let table = unsafe { std::slice::from_raw_parts(table, count * entry_bytes) };
        let entries = table.chunks_exact(entry_bytes).map(|entry| {
            let number = usize::from(u16::from_be_bytes([entry[0], entry[1]]));
            let name = entry[2..].split(|byte| *byte == 0).next();
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            (number, name.into_owned())
        });
        entries.collect()
    }

    /// Finds the first match. `groups` gets the ranges of the groups, the whole match first; it is
    /// unchanged without a match. The steps are subtracted from `limits.steps`.
    ///
    /// # Errors
    /// There is no result: the caller must treat it neither as a match nor as no match.
    pub fn search(
        &self,
        subject: &[u8],
        limits: &mut Limits,
        groups: &mut Vec<Option<(usize, usize)>>,
    ) -> Result<bool, MatchFailure> {
        ROOM.with_borrow_mut(|room| {
            let pairs = self.groups.saturating_add(1);
            let room = match room {
                Some(room) if room.pairs >= pairs => room,
                room => {
                    *room = None;
                    room.insert(Room::new(pairs).ok_or(NO_MEMORY)?)
                }
            };
            room.search(self, subject, limits, groups)
        })
    }

    fn number(&self, what: u32) -> u32 {
        let mut number = 0_u32;
        self.info(what, &mut number);
        number
    }

    /// Reads a fact whose type, in PCRE2's documentation, is `T`.
    fn info<T>(&self, what: u32, answer: &mut T) {
        // SAFETY: the pattern is compiled; callers have a variable of the type that is written.
        unsafe { ffi::pcre2_pattern_info_8(self.raw.as_ptr(), what, ptr::from_mut(answer).cast()) };
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: made by pcre2_compile, freed once.
        unsafe { ffi::pcre2_code_free_8(self.raw.as_ptr()) };
    }
}

/// Gives compiled code a stack of up to `bytes` in this thread.
pub fn use_stack(bytes: usize) {
    STACK_BYTES.set(bytes);
    forget_room();
}

/// Frees the memory that this thread keeps for its next match: a large match needs much.
pub fn forget_room() {
    ROOM.set(None);
}

/// A non-null pointer for an empty subject.
static EMPTY: [u8; 1] = [0];

const NO_MEMORY: MatchFailure = MatchFailure(ffi::PCRE2_ERROR_NOMEMORY);

thread_local! {
    static ROOM: RefCell<Option<Room>> = const { RefCell::new(None) };
    static STACK_BYTES: Cell<usize> = const { Cell::new(STACK_BYTES_MAX) };
}

/// The memory of a thread for matches, for any pattern without more groups.
struct Room {
    context: NonNull<ffi::pcre2_match_context_8>,
    data: NonNull<ffi::pcre2_match_data_8>,
    stack: *mut ffi::pcre2_jit_stack_8,
    pairs: u32,
}

impl Room {
    /// `None` if there is no memory.
    fn new(pairs: u32) -> Option<Room> {
        let pairs = pairs.max(PAIRS_FIRST);
        // SAFETY: no general context is the default one; a null result is looked at.
        let context = NonNull::new(unsafe { ffi::pcre2_match_context_create_8(ptr::null_mut()) })?;
        // SAFETY: as above.
        let Some(data) =
            NonNull::new(unsafe { ffi::pcre2_match_data_create_8(pairs, ptr::null_mut()) })
        else {
            // SAFETY: made above, not used any more.
            unsafe { ffi::pcre2_match_context_free_8(context.as_ptr()) };
            return None;
        };
        let bytes = STACK_BYTES.get();
        // Without a stack of its own, compiled code uses 32 KB of the thread's. SAFETY: the sizes
        // are in order; a null result means that there is no stack.
        let stack = unsafe {
            ffi::pcre2_jit_stack_create_8(STACK_BYTES_FIRST.min(bytes), bytes, ptr::null_mut())
        };
        if !stack.is_null() {
            // SAFETY: context and stack were made above; the context is freed before the stack.
            unsafe { ffi::pcre2_jit_stack_assign_8(context.as_ptr(), None, stack.cast()) };
        }
        Some(Room {
            context,
            data,
            stack,
            pairs,
        })
    }

    fn search(
        &mut self,
        code: &Code,
        subject: &[u8],
        limits: &mut Limits,
        groups: &mut Vec<Option<(usize, usize)>>,
    ) -> Result<bool, MatchFailure> {
        let context = self.context.as_ptr();
        let mut count = Count {
            left: limits.steps,
            per_item: limits.steps_per_item,
            position: 0,
        };
        let counts = code.counting == Counting::Steps;
        let (call, data): (Callout, *mut c_void) = if counts {
            (Some(count_step), ptr::from_mut(&mut count).cast())
        } else {
            (None, ptr::null_mut())
        };
        let options = if limits.interpreted {
            ffi::PCRE2_NO_JIT
        } else {
            0
        };
        // An empty slice has no valid address, and some versions read there nevertheless.
        let start = match subject {
            [] => EMPTY.as_ptr(),
            subject => subject.as_ptr(),
        };
        // SAFETY: the context lives; `count` lives until the callout is taken away again, below.
        unsafe {
            ffi::pcre2_set_match_limit_8(context, limits.backtracks);
            ffi::pcre2_set_heap_limit_8(context, limits.heap_kib);
            pcre2_set_callout_8(context, call, data);
        }
        // SAFETY: pointer and length are of one slice, or of a static byte and none of it; pattern,
        // match data and context live, and the match data has room for all groups of the pattern.
        let result = unsafe {
            ffi::pcre2_match_8(
                code.raw.as_ptr(),
                start,
                subject.len(),
                0,
                options,
                self.data.as_ptr(),
                context,
            )
        };
        // SAFETY: the context lives.
        unsafe { pcre2_set_callout_8(context, None, ptr::null_mut()) };
        if counts {
            limits.steps = count.left;
        }
        match result {
            ffi::PCRE2_ERROR_NOMATCH => Ok(false),
            result if result > 0 => {
                self.groups(code, groups);
                Ok(true)
            }
            // Zero would mean that the match data are too small, which cannot happen.
            result => Err(MatchFailure(result)),
        }
    }

    fn groups(&self, code: &Code, groups: &mut Vec<Option<(usize, usize)>>) {
        let count = code.group_count() + 1;
        // SAFETY: the match data has at least `count` pairs, and a match has written them.
        let offsets = unsafe {
            let offsets = ffi::pcre2_get_ovector_pointer_8(self.data.as_ptr());
            std::slice::from_raw_parts(offsets, 2 * count)
        };
        groups.clear();
        groups.extend(
            offsets
                .chunks_exact(2)
                .map(|pair| match (pair[0], pair[1]) {
                    (ffi::PCRE2_UNSET, _) | (_, ffi::PCRE2_UNSET) => None,
                    (start, end) => Some((start, end)),
                }),
        );
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: all three were made by `new` and are freed once; a null stack is left alone.
        unsafe {
            ffi::pcre2_match_data_free_8(self.data.as_ptr());
            ffi::pcre2_match_context_free_8(self.context.as_ptr());
            ffi::pcre2_jit_stack_free_8(self.stack);
        }
    }
}

/// The state of the callout.
struct Count {
    left: u64,
    per_item: u64,
    /// The position of the last item in the subject.
    position: usize,
}

/// The beginning of PCRE2's `pcre2_callout_block`; later versions only add to its end.
#[repr(C)]
struct CalloutBlock {
    version: u32,
    callout_number: u32,
    capture_top: u32,
    capture_last: u32,
    offset_vector: *mut usize,
    mark: *const u8,
    subject: *const u8,
    subject_bytes: usize,
    match_start: usize,
    position: usize,
}

type Callout = Option<unsafe extern "C" fn(*mut CalloutBlock, *mut c_void) -> c_int>;

unsafe extern "C" {
    /// The binding omits this function, but links the library that has it.
    fn pcre2_set_callout_8(
        context: *mut ffi::pcre2_match_context_8,
        callout: Callout,
        data: *mut c_void,
    ) -> c_int;
}

/// Called before each item of the pattern.
unsafe extern "C" fn count_step(block: *mut CalloutBlock, data: *mut c_void) -> c_int {
    // SAFETY: PCRE2 hands over its block and what was set together with this function: a `Count`
    // that lives during the match and that no other code uses meanwhile.
    let (position, count) = unsafe { ((*block).position, &mut *data.cast::<Count>()) };
    let walked = position.abs_diff(count.position) / BYTES_PER_STEP;
    count.position = position;
    let cost = count.per_item.saturating_add(walked as u64);
    match count.left.checked_sub(cost) {
        Some(left) => {
            count.left = left;
            0
        }
        None => {
            count.left = 0;
            ffi::PCRE2_ERROR_CALLOUT
        }
    }
}

/// PCRE2's text for one of its numbers.
fn message(code: c_int) -> String {
    // By its documentation 120 bytes are enough for every message.
    let mut buffer = [0_u8; 256];
    // SAFETY: pointer and length are of one buffer.
    let length = unsafe { ffi::pcre2_get_error_message_8(code, buffer.as_mut_ptr(), buffer.len()) };
    let text = usize::try_from(length)
        .ok()
        .and_then(|length| buffer.get(..length));
    match text {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => format!("error {code}"),
    }
}

//! What a silent lane was doing, for the log: its last request, where it is in the kernel, and the
//! functions it is in.
//!
//! Names are looked up in a thread of its own, since that may take longer than clients wait.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use turnpike_http::Quoted;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::symbols;
use turnpike_lane::sys::stack;

use crate::lanes::lane::Facts;

/// How long a thread may take to write its stack down: it has to get a CPU first.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes of the line with the stack: what nginx's own log lines hold.
const STACK_BYTES_MAX: usize = 1800;

/// One report at a time: when lanes go silent by the dozen, the first tells enough.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// Has the log told what a lane is doing now.
pub(super) fn begin(lane: usize, facts: &Facts, log: &ErrorLog) {
    if IS_BUSY.swap(true, Ordering::AcqRel) {
        return;
    }
    let (facts, own_log) = (facts.clone(), log.clone());
    let narrate = move || {
        narrate(lane, &facts, &own_log);
        IS_BUSY.store(false, Ordering::Release);
    };
    let started = thread::Builder::new()
        .name("report".to_owned())
        .spawn(narrate);
    if started.is_err() {
        IS_BUSY.store(false, Ordering::Release);
    }
}

fn narrate(lane: usize, facts: &Facts, log: &ErrorLog) {
    let task = format!("/proc/self/task/{}", facts.thread);
    let read = |name: &str| fs::read_to_string(format!("{task}/{name}")).unwrap_or_default();
    let state = thread_state(facts.thread);
    let wait = read("wchan");
    let wait = match wait.trim() {
        "" | "0" => "not waiting in the kernel".to_owned(),
        place => format!("waiting in {place}"),
    };
    let call = call(&read("syscall"));
    match facts.doing.read() {
        Some((connection, line)) => log.event(
            Level::Warn,
            format_args!(
                "lane {lane}: thread state \"{state}\", {wait}, {call}; its last request was \
                 \"{}\" of connection {connection}",
                Quoted(&line)
            ),
        ),
        None => log.event(
            Level::Warn,
            format_args!(
                "lane {lane}: thread state \"{state}\", {wait}, {call}; it has had no request yet"
            ),
        ),
    }
    match stack::of_thread(facts.thread, PATIENCE) {
        Some(frames) => {
            let names = names(&frames);
            log.event(Level::Warn, format_args!("lane {lane} is in {names}"));
        }
        None => log.event(
            Level::Warn,
            format_args!("lane {lane} does not report which functions it is in"),
        ),
    }
}

/// The kernel's word for the state of a thread of this process; `unknown` where it is gone.
pub(super) fn thread_state(thread: i32) -> String {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"));
    state(&status.unwrap_or_default()).to_owned()
}

/// The kernel's word for a thread's state, from `/proc`'s `status`.
fn state(status: &str) -> &str {
    let line = status.lines().find_map(|line| line.strip_prefix("State:"));
    let word = line.and_then(|line| line.split(['(', ')']).nth(1));
    word.unwrap_or("unknown")
}

/// The system call a thread is in, from `/proc`'s `syscall`.
fn call(text: &str) -> String {
    match text.split_ascii_whitespace().next() {
        Some("running") | Some("-1") | None => "in no system call".to_owned(),
        Some(number) => format!("in system call {number}"),
    }
}

/// Functions from the innermost to the outermost, without those that only ask.
fn names(frames: &[usize]) -> String {
    let mut text = String::new();
    for name in symbols::describe(frames) {
        if name.contains("sys::stack::") || name.starts_with("backtrace::") {
            // What is in front of these is the walk itself.
            text.clear();
            continue;
        }
        if text.len() + name.len() > STACK_BYTES_MAX {
            return text;
        }
        if !text.is_empty() {
            text.push_str(" < ");
        }
        text.push_str(&name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(state("Name:\tx\nState:\tD (disk sleep)\n"), "disk sleep");
        assert_eq!(state(""), "unknown");
        assert_eq!(call("running\n"), "in no system call");
        assert_eq!(call("0 0x3 0x7ff 0x0\n"), "in system call 0");
    }
}

//! The pipes of a lane, by which bytes pass from one socket to another inside the kernel.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use crate::sys::pipe::Pipe;

/// Pipes in use at a time, for peers that read slowly: each has two descriptors and holds up to
/// [`BYTES_MAX`] of the kernel's memory. What else there is to pass on is copied.
const IN_USE_MAX: usize = 64;

/// Empty pipes that are kept for later: a turn of the lane seldom needs more.
const IDLE_MAX: usize = 8;

/// Bytes that are moved through a pipe at a time: so many that the two calls cost little, and so
/// few that one connection does not keep the others of its lane waiting.
pub const BYTES_MAX: usize = 256 * 1024;

/// The pipes of a lane.
#[derive(Default)]
pub struct Pipes {
    idle: RefCell<Vec<Pipe>>,
    in_use: Cell<usize>,
}

/// A pipe in use. Unless it is given back, it is closed, with what it holds.
pub struct Lent {
    /// Empty at first.
    pub pipe: Pipe,
    counted: Counted,
}

/// Counts a pipe for as long as it is in use.
struct Counted(Rc<Pipes>);

impl Drop for Counted {
    fn drop(&mut self) {
        let in_use = &self.0.in_use;
        in_use.set(in_use.get() - 1);
    }
}

impl Pipes {
    /// An empty pipe; `None`: too many are in use, or the kernel gives none.
    pub fn lend(self: &Rc<Self>) -> Option<Lent> {
        if self.in_use.get() >= IN_USE_MAX {
            return None;
        }
        let pipe = self.idle.borrow_mut().pop();
        let pipe = pipe.map_or_else(new, Ok).ok()?;
        self.in_use.set(self.in_use.get() + 1);
        let counted = Counted(Rc::clone(self));
        Some(Lent { pipe, counted })
    }
}

/// A new pipe. Each of its places takes a page, or what of one a segment holds: the usual 16 places
/// would be full of 64 KB.
fn new() -> io::Result<Pipe> {
    let pipe = Pipe::new()?;
    pipe.ask_for_room(BYTES_MAX as i32);
    Ok(pipe)
}

impl Lent {
    /// Gives the pipe back, empty.
    pub fn give_back(self) {
        let Self { pipe, counted } = self;
        let mut idle = counted.0.idle.borrow_mut();
        if idle.len() < IDLE_MAX {
            idle.push(pipe);
        }
    }
}

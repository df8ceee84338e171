//! Commands from other threads to a lane: a queue and an eventfd that wakes the lane.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::descriptor::Waker;

/// A lane's mailbox. Commands are rare (reload, quit, reopen), so a lock costs nothing.
pub struct Mailbox<C> {
    letters: Mutex<Letters<C>>,
    waker: Waker,
}

struct Letters<C> {
    queue: VecDeque<C>,
    /// Whether the lane reads no more commands.
    closed: bool,
}

impl<C> Mailbox<C> {
    /// An empty mailbox.
    ///
    /// # Errors
    /// The error of eventfd(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            letters: Mutex::new(Letters {
                queue: VecDeque::new(),
                closed: false,
            }),
            waker: Waker::new()?,
        })
    }

    /// Adds a command and wakes the lane. `false`: the lane has ended, and the command is dropped.
    pub fn send(&self, command: C) -> bool {
        self.try_send(command).is_ok()
    }

    /// Adds a command and wakes the lane; returns the command if the lane has ended.
    ///
    /// # Errors
    /// The command itself.
    pub fn try_send(&self, command: C) -> Result<(), C> {
        let mut letters = self.letters();
        if letters.closed {
            return Err(command);
        }
        letters.queue.push_back(command);
        drop(letters);
        // It fails only if the counter is full, and then the lane is being woken already.
        let _ = self.waker.wake();
        Ok(())
    }

    /// Wakes the lane without a command.
    pub fn wake(&self) {
        // As in `try_send`.
        let _ = self.waker.wake();
    }

    /// Takes the next command out.
    pub fn receive(&self) -> Option<C> {
        self.letters().queue.pop_front()
    }

    /// Closes the mailbox unless it holds unread commands. Returns whether it is closed: all
    /// earlier commands have been read then, and later ones are returned to their senders.
    pub fn close_if_empty(&self) -> bool {
        let mut letters = self.letters();
        letters.closed |= letters.queue.is_empty();
        letters.closed
    }

    /// Closes the mailbox and drops its unread commands.
    pub fn close(&self) {
        let mut letters = self.letters();
        letters.closed = true;
        letters.queue.clear();
    }

    /// Resets the wake-up; called before the mailbox is emptied.
    ///
    /// # Errors
    /// The error of read(2).
    pub fn acknowledge(&self) -> io::Result<()> {
        self.waker.drain().map(|_| ())
    }

    fn letters(&self) -> MutexGuard<'_, Letters<C>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> AsFd for Mailbox<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

//! Commands from other threads to a lane: a short queue and an eventfd that wakes the lane.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::descriptor::Waker;

/// A lane's letter box. Commands are rare (reload, quit, reopen), so a lock is no cost.
pub struct Mailbox<C> {
    letters: Mutex<Letters<C>>,
    waker: Waker,
}

struct Letters<C> {
    queue: VecDeque<C>,
    /// Nobody will read what comes now.
    closed: bool,
}

impl<C> Mailbox<C> {
    /// An empty box.
    ///
    /// # Errors
    /// When the kernel gives no eventfd.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            letters: Mutex::new(Letters {
                queue: VecDeque::new(),
                closed: false,
            }),
            waker: Waker::new()?,
        })
    }

    /// Puts a command in and wakes the lane. `false`: the lane has ended, and the command is gone.
    pub fn send(&self, command: C) -> bool {
        self.try_send(command).is_ok()
    }

    /// Puts a command in and wakes the lane; gives it back when the lane has ended.
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
        // It fails only when the counter is full, and then the lane is being woken.
        let _ = self.waker.wake();
        Ok(())
    }

    /// Wakes the lane without a command: it is to look elsewhere.
    pub fn wake(&self) {
        // As in `try_send`.
        let _ = self.waker.wake();
    }

    /// Takes the next command out.
    pub fn receive(&self) -> Option<C> {
        self.letters().queue.pop_front()
    }

    /// Takes nothing any more, unless something is still unread. Returns whether it is closed: what
    /// was sent before will have been read, and what is sent later goes back to its sender.
    pub fn close_if_empty(&self) -> bool {
        let mut letters = self.letters();
        letters.closed |= letters.queue.is_empty();
        letters.closed
    }

    /// Takes nothing any more, and forgets what is unread.
    pub fn close(&self) {
        let mut letters = self.letters();
        letters.closed = true;
        letters.queue.clear();
    }

    /// Forgets that the lane was woken; called before the box is emptied.
    ///
    /// # Errors
    /// What read(2) says.
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

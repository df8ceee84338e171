//! Commands from other threads to a lane: a short queue and an eventfd that wakes the lane.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use crate::sys::descriptor::Waker;

/// A lane's letter box. Commands are rare (reload, quit, reopen), so a lock is no cost.
pub struct Mailbox<C> {
    letters: Mutex<VecDeque<C>>,
    waker: Waker,
}

impl<C> Mailbox<C> {
    /// An empty box.
    ///
    /// # Errors
    /// When the kernel gives no eventfd.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            letters: Mutex::default(),
            waker: Waker::new()?,
        })
    }

    /// Puts a command in and wakes the lane.
    ///
    /// # Errors
    /// When the lane could not be woken; the command stays in the box.
    pub fn send(&self, command: C) -> io::Result<()> {
        self.letters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(command);
        self.waker.wake()
    }

    /// Takes the next command out.
    pub fn receive(&self) -> Option<C> {
        self.letters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Forgets that the lane was woken; called before the box is emptied.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn acknowledge(&self) -> io::Result<()> {
        self.waker.drain().map(|_| ())
    }
}

impl<C> AsFd for Mailbox<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

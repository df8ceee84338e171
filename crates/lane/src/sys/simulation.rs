//! Where a simulator of a lane takes part in its system calls.
//!
//! The simulator's peers live on the lane's own thread. They act while the lane waits for events,
//! their time is the lane's time, and they may shorten or refuse what the lane sends and receives,
//! as a kernel may. Sockets, epoll instances and files stay the kernel's own, so that nothing about
//! edges and buffers is a guess. Without the feature `simulation` every function here is empty.

#[cfg(feature = "simulation")]
pub use hooks::*;

/// Faults that a simulator can put into the lane, to prove that it would find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An event of a socket does not reach the connection that waits for it.
    LostWakeUp,
    /// A response that was sent whole is sent once more.
    AnswerTwice,
    /// A buffer is not given back at the end of its request.
    BufferKept,
}

/// Whether the lane is to do wrong here. Never, outside a simulator.
#[inline]
pub fn is_faulty(fault: Fault) -> bool {
    #[cfg(feature = "simulation")]
    return hooks::with_world(false, |world| world.is_faulty(fault));
    #[cfg(not(feature = "simulation"))]
    {
        let _ = fault;
        false
    }
}

/// How long the lane may wait in its runtime, in milliseconds: not past a peer's next act.
#[inline]
pub fn pause_ms(most_ms: u64) -> u64 {
    #[cfg(feature = "simulation")]
    return hooks::with_world(most_ms, |world| world.pause_ms(most_ms));
    #[cfg(not(feature = "simulation"))]
    most_ms
}

#[cfg(feature = "simulation")]
mod hooks {
    use std::cell::RefCell;
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

    use super::Fault;
    use crate::sys::epoll::{Epoll, EventBuffer, Interest};

    /// The world around a simulated lane: its peers and its time.
    pub trait World {
        /// Monotonic time in nanoseconds.
        fn now_ns(&mut self) -> u64;
        /// Milliseconds since 1970.
        fn unix_ms(&mut self) -> u64;
        /// Lets the peers do what they want to do by now; says whether any did, or the lane has
        /// entered the kernel since this was asked last.
        ///
        /// # Errors
        /// The simulation has gone on for too long; the lane ends.
        fn act(&mut self) -> io::Result<bool>;
        /// The lane sleeps: time goes on to a peer's next act, at most by `most_ms`. Returns by
        /// how much.
        fn pass_ms(&mut self, most_ms: u64) -> u64;
        /// How long the lane may wait in its runtime.
        fn pause_ms(&mut self, most_ms: u64) -> u64;
        /// Events are handed to the lane; the token of one to add that has no reason.
        fn spurious(&mut self) -> Option<u64>;
        /// A descriptor is registered under this token with the lane's epoll instance; `None`: no
        /// more.
        fn registered(&mut self, descriptor: RawFd, token: Option<u64>);
        /// How many of so many bytes the lane may send.
        ///
        /// # Errors
        /// What the kernel would say.
        fn may_send(&mut self, socket: RawFd, bytes: usize) -> io::Result<usize>;
        /// So many were taken.
        fn sent(&mut self, socket: RawFd, result: &io::Result<usize>);
        /// So many were received; what the lane is told of it.
        ///
        /// # Errors
        /// What the kernel has said, or would say.
        fn received(
            &mut self,
            socket: RawFd,
            result: io::Result<usize>,
            peeked: bool,
        ) -> io::Result<usize>;
        /// A client's connection was accepted.
        fn accepted(&mut self, socket: RawFd);
        /// The lane connects to the unix socket of that path.
        ///
        /// # Errors
        /// What the kernel would say.
        fn may_connect(&mut self, path: &[u8]) -> io::Result<()>;
        /// The lane has connected there.
        fn connected(&mut self, socket: RawFd, path: &[u8]);
        /// Whether the lane is to do wrong here.
        fn is_faulty(&mut self, fault: Fault) -> bool;
    }

    thread_local! {
        static WORLD: RefCell<Option<Box<dyn World>>> = const { RefCell::new(None) };
    }

    /// Puts this thread's lane into a world, or takes it out.
    pub fn enter(world: Option<Box<dyn World>>) {
        WORLD.with(|cell| *cell.borrow_mut() = world);
    }

    /// Events that a [`Lookout`] takes at a time; the others wait for its next look.
    const LOOK_EVENTS_MAX: usize = 64;

    /// Says which of the peers' own sockets have something to read, so that they need not try.
    pub struct Lookout {
        epoll: Epoll,
        events: EventBuffer,
    }

    impl Lookout {
        /// One that watches nothing yet.
        ///
        /// # Errors
        /// When the kernel gives no epoll instance.
        pub fn new() -> io::Result<Lookout> {
            let events = EventBuffer::with_capacity(LOOK_EVENTS_MAX);
            Epoll::new().map(|epoll| Lookout { epoll, events })
        }

        /// Watches a socket until it is closed. Tells of changes: its owner reads until nothing is
        /// left.
        ///
        /// # Errors
        /// What epoll_ctl(2) says.
        pub fn watch(&self, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
            let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
            self.epoll
                .kernel_control(libc::EPOLL_CTL_ADD, socket, interest, token)
        }

        /// The tokens of the sockets that have something now.
        ///
        /// # Errors
        /// What epoll_wait(2) says.
        pub fn look(&mut self) -> io::Result<impl Iterator<Item = u64> + '_> {
            self.epoll.kernel_wait(&mut self.events, 0)?;
            Ok(self.events.iter().map(|event| event.token))
        }
    }

    /// The number by which the kernel tells the file of a descriptor from all others; `None`: it
    /// is not open.
    pub fn inode(descriptor: RawFd) -> Option<u64> {
        // SAFETY: all zero bytes are a valid stat.
        let mut metadata: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer leads to a whole stat; a number that is not open is an error.
        (unsafe { libc::fstat(descriptor, &mut metadata) } == 0).then_some(metadata.st_ino)
    }

    /// Whether this thread's lane is simulated.
    pub(crate) fn is_on() -> bool {
        WORLD.with(|cell| cell.borrow().is_some())
    }

    pub(crate) fn with_world<T>(otherwise: T, ask: impl FnOnce(&mut dyn World) -> T) -> T {
        WORLD.with(|cell| match cell.borrow_mut().as_mut() {
            Some(world) => ask(world.as_mut()),
            None => otherwise,
        })
    }

    /// Lets the futures and the peers go on until none has anything left to do at this time. Says
    /// whether the lane should look for events before it waits.
    ///
    /// # Errors
    /// As [`World::act`].
    pub(crate) async fn settle() -> io::Result<bool> {
        let mut acted = false;
        if is_on() {
            tokio::task::yield_now().await;
            while with_world(Ok(false), |world| world.act())? {
                acted = true;
                tokio::task::yield_now().await;
            }
        }
        Ok(acted)
    }

    pub(in crate::sys) fn may_send(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
        with_world(Ok(bytes), |world| world.may_send(socket.as_raw_fd(), bytes))
    }

    pub(in crate::sys) fn sent(
        socket: BorrowedFd<'_>,
        result: io::Result<usize>,
    ) -> io::Result<usize> {
        with_world((), |world| world.sent(socket.as_raw_fd(), &result));
        result
    }

    pub(in crate::sys) fn received(
        socket: BorrowedFd<'_>,
        result: io::Result<usize>,
        peeked: bool,
    ) -> io::Result<usize> {
        if !is_on() {
            return result;
        }
        with_world(Ok(0), |world| {
            world.received(socket.as_raw_fd(), result, peeked)
        })
    }
}

//! The hooks of a simulator in a lane's system calls.
//!
//! The simulator's peers run on the lane's own thread. They act while the lane waits for events,
//! their time is the lane's time, and they may shorten or refuse the lane's sends and receives, as
//! a kernel may. Sockets, epoll instances and files are real, so that the behaviour of edges and
//! buffers is exact. Without the feature `simulation` every function here is empty.

#[cfg(feature = "simulation")]
pub use hooks::*;

/// Faults that a simulator can inject into the lane, to prove that it would detect them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An event of a socket does not reach the connection that waits for it.
    LostWakeUp,
    /// A complete response is sent once more.
    AnswerTwice,
    /// A buffer is not returned at the end of its request.
    BufferKept,
    /// A connection of HTTP/2 asks its socket again and again while a stream is about to send,
    /// which gets no turn for that.
    SenderNotWoken,
    /// The end of one direction of a relay is not passed on.
    EndNotRelayed,
    /// A datagram for another lane or process is lost.
    ForwardLost,
    /// A flow that has ended stays in the directory.
    FlowKept,
    /// A lane takes a packet of another's connection of QUIC for its own.
    PlaceMisread,
}

/// Whether to inject the fault here. Always false outside of a simulator.
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

/// The longest wait of the lane in its runtime, in milliseconds: not after a peer's next action.
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

    /// The environment of a simulated lane: its peers and its time.
    pub trait World {
        /// Monotonic time in nanoseconds.
        fn now_ns(&mut self) -> u64;
        /// Milliseconds since 1970.
        fn unix_ms(&mut self) -> u64;
        /// Lets the peers act up to the current time; returns whether any did, or whether the lane
        /// has entered the kernel since the last call.
        ///
        /// # Errors
        /// The simulation has taken too long; the lane ends.
        fn act(&mut self) -> io::Result<bool>;
        /// The lane sleeps: the time advances to a peer's next action, at most by `most_ms`.
        /// Returns the time that has passed.
        fn pass_ms(&mut self, most_ms: u64) -> u64;
        /// The longest wait of the lane in its runtime.
        fn pause_ms(&mut self, most_ms: u64) -> u64;
        /// Events are passed to the lane; returns the token of a spurious one to add.
        fn spurious(&mut self) -> Option<u64>;
        /// A descriptor is registered under this token with the lane's epoll instance; `None`: it
        /// is no longer registered.
        fn registered(&mut self, descriptor: RawFd, token: Option<u64>);
        /// The number of bytes, of `bytes`, that the lane may send.
        ///
        /// # Errors
        /// A simulated error of the kernel.
        fn may_send(&mut self, socket: RawFd, bytes: usize) -> io::Result<usize>;
        /// The result of a send.
        fn sent(&mut self, socket: RawFd, result: &io::Result<usize>);
        /// The result of a receive; returns the result for the lane.
        ///
        /// # Errors
        /// The kernel's error, or a simulated one.
        fn received(
            &mut self,
            socket: RawFd,
            result: io::Result<usize>,
            peeked: bool,
        ) -> io::Result<usize>;
        /// A client's connection was accepted.
        fn accepted(&mut self, socket: RawFd);
        /// The lane connects to the unix socket with this path.
        ///
        /// # Errors
        /// A simulated error of the kernel.
        fn may_connect(&mut self, path: &[u8]) -> io::Result<()>;
        /// The lane has connected to the path.
        fn connected(&mut self, socket: RawFd, path: &[u8]);
        /// Whether to inject the fault here.
        fn is_faulty(&mut self, fault: Fault) -> bool;
    }

    thread_local! {
        static WORLD: RefCell<Option<Box<dyn World>>> = const { RefCell::new(None) };
    }

    /// Puts this thread's lane into a world, or removes it.
    pub fn enter(world: Option<Box<dyn World>>) {
        WORLD.with(|cell| *cell.borrow_mut() = world);
    }

    /// The most events that a [`Lookout`] takes at a time; the others wait for the next call.
    const LOOK_EVENTS_MAX: usize = 64;

    /// A poller of the peers' own sockets, so that they need not try to read.
    pub struct Lookout {
        epoll: Epoll,
        events: EventBuffer,
    }

    impl Lookout {
        /// A poller without sockets.
        ///
        /// # Errors
        /// The error of epoll_create1(2).
        pub fn new() -> io::Result<Lookout> {
            let events = EventBuffer::with_capacity(LOOK_EVENTS_MAX);
            Epoll::new().map(|epoll| Lookout { epoll, events })
        }

        /// Watches a socket until it is closed. It reports changes: the owner must read until the
        /// socket is empty.
        ///
        /// # Errors
        /// The error of epoll_ctl(2).
        pub fn watch(&self, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
            let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
            self.epoll
                .kernel_control(libc::EPOLL_CTL_ADD, socket, interest, token)
        }

        /// The tokens of the sockets with input.
        ///
        /// # Errors
        /// The error of epoll_wait(2).
        pub fn look(&mut self) -> io::Result<impl Iterator<Item = u64> + '_> {
            self.epoll.kernel_wait(&mut self.events, 0)?;
            Ok(self.events.iter().map(|event| event.token))
        }
    }

    /// The inode number, which identifies the file of a descriptor; `None` if it is not open.
    pub fn inode(descriptor: RawFd) -> Option<u64> {
        // SAFETY: all zero bytes are a valid stat.
        let mut metadata: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer points to a whole stat; a number that is not open is an error.
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

    /// Runs the futures and the peers until none has anything left to do at this time. Returns
    /// whether the lane should check for events before it waits.
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

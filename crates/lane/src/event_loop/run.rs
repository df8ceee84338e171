//! Runs an event loop to its end: bare while nothing is driven, and nested in a tokio runtime
//! otherwise.

use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use super::{Driven, EventHandler, EventLoop, TICK_MS};
use crate::clock::Clock;
use crate::sys::epoll::Epoll;
use crate::sys::{readiness, simulation};
use crate::turns::{self, IdleTurns};

/// The time without a future after which the runtime no longer waits for the lane's events: while
/// it does, the kernel tells the runtime's epoll instance of each of them. Beginning and ending it
/// takes system calls, which a lane that has futures time and again should not make each time.
const WAITS_KEPT_MS: u64 = 1_000;

/// Runs the lane until its handler has finished. Driven futures notify `returned` when they end, so
/// that the connections they return are parked at once.
///
/// # Errors
/// An error of epoll or the runtime, which ends the lane.
pub fn run<R: EventHandler>(
    event_loop: &mut EventLoop,
    handler: &mut R,
    returned: &Rc<Notify>,
) -> io::Result<()> {
    let mut runtime: Option<Runtime> = None;
    while !handler.finished() {
        if handler.driven() == 0 {
            let sleep_ms = event_loop.sleep_ms(handler);
            event_loop.turn(handler, sleep_ms)?;
            if let Some(runtime) = &mut runtime {
                runtime.rest(event_loop.clock.now_ms());
            }
            continue;
        }
        let runtime = match &mut runtime {
            Some(runtime) => runtime,
            none => none.insert(Runtime::new()?),
        };
        runtime.drive(event_loop, handler, returned)?;
    }
    Ok(())
}

/// What a lane drives futures with. It is made for the first one.
struct Runtime {
    /// Waits end before the runtime that they are registered with.
    waits: Option<Waits>,
    runtime: LocalRuntime,
    /// When the lane last had a future.
    driven_ms: u64,
}

/// What the runtime waits for on behalf of the lane's loop.
struct Waits {
    /// The registration of the loop's epoll instance.
    events: AsyncFd<Rc<Epoll>>,
    /// The timer is kept, so that the runtime always has one that is due soon: a new timer that is
    /// due before all others wakes the runtime by a system call, though it is not asleep.
    tick: Pin<Box<Sleep>>,
}

impl Runtime {
    fn new() -> io::Result<Self> {
        Ok(Self {
            waits: None,
            runtime: new_runtime()?,
            driven_ms: 0,
        })
    }

    /// Takes turns until no future is driven.
    fn drive<R: EventHandler>(
        &mut self,
        event_loop: &mut EventLoop,
        handler: &mut R,
        returned: &Rc<Notify>,
    ) -> io::Result<()> {
        let Self { waits, runtime, .. } = self;
        runtime.block_on(async {
            let waits = match waits {
                Some(waits) => waits,
                none => none.insert(Waits::begin(&event_loop.epoll)?),
            };
            nested(event_loop, handler, returned, waits).await
        })?;
        self.driven_ms = event_loop.clock.now_ms();
        Ok(())
    }

    /// Ends the waits of a lane that has had no future for a while.
    fn rest(&mut self, now_ms: u64) {
        if self.waits.is_some() && now_ms >= self.driven_ms + WAITS_KEPT_MS {
            self.waits = None;
        }
    }
}

impl Waits {
    fn begin(epoll: &Rc<Epoll>) -> io::Result<Self> {
        Ok(Self {
            events: readiness::register_epoll(Rc::clone(epoll), Interest::READABLE)?,
            tick: Box::pin(tokio::time::sleep(pause())),
        })
    }
}

/// The longest wait while futures are driven.
fn pause() -> Duration {
    Duration::from_millis(simulation::pause_ms(TICK_MS))
}

/// A future that updates the lane's clock whenever it is polled, however long it has waited, and
/// that ends when it has had its turns.
pub(super) struct Watched {
    clock: Rc<Clock>,
    future: Driven,
    turns: IdleTurns,
}

impl Watched {
    pub(super) fn new(clock: Rc<Clock>, future: Driven) -> Self {
        Self {
            clock,
            future,
            turns: IdleTurns::default(),
        }
    }
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.clock.update();
        let Self { future, turns, .. } = &mut *self;
        let polled = turns.during(|| future.as_mut().poll(context));
        if polled.is_pending() && turns.are_spent() {
            turns::end(std::mem::replace(future, Box::pin(std::future::ready(()))));
            return Poll::Ready(());
        }
        polled
    }
}

fn new_runtime() -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all();
    #[cfg(feature = "simulation")]
    builder.start_paused(simulation::is_on());
    builder.build_local(LocalOptions::default())
}

/// Takes turns while futures are driven; the runtime's other tasks run in between.
async fn nested<R: EventHandler>(
    event_loop: &mut EventLoop,
    handler: &mut R,
    returned: &Rc<Notify>,
    waits: &mut Waits,
) -> io::Result<()> {
    let Waits { events, tick } = waits;
    if tick.deadline() <= Instant::now() {
        tick.as_mut().reset(Instant::now() + pause());
    }
    loop {
        // The turn parks every connection that has come back, so nothing need tell of it again.
        pin!(returned.notified()).enable();
        let handled = event_loop.turn(handler, 0)?;
        for future in event_loop.drives.drain(..) {
            let clock = Rc::clone(&event_loop.clock);
            tokio::task::spawn_local(Watched::new(clock, future));
        }
        if handler.driven() == 0 || handler.finished() {
            return Ok(());
        }
        if handled > 0 {
            tokio::task::yield_now().await;
            continue;
        }
        #[cfg(feature = "simulation")]
        if simulation::settle().await? {
            continue;
        }
        event_loop.gates.asleep(handler.connections());
        // A simulation's pause ends with the next action of a peer.
        if cfg!(feature = "simulation") || tick.is_elapsed() {
            tick.as_mut().reset(Instant::now() + pause());
        }
        if !event_loop.deadlines.is_empty() {
            let sleep_ms = event_loop.sleep_ms(handler);
            let ends = Instant::now() + Duration::from_millis(sleep_ms as u64);
            if ends < tick.deadline() {
                tick.as_mut().reset(ends);
            }
        }
        tokio::select! {
            biased;
            guard = events.readable() => guard?.clear_ready(),
            () = returned.notified() => {}
            () = &mut *tick => {}
        }
    }
}

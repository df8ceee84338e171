//! Runs an event loop to its end: bare while nothing is driven, and nested in a tokio runtime
//! otherwise.

use std::io;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::Interest;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Driven, EventHandler, EventLoop, TICK_MS};
use crate::clock::Clock;
use crate::sys::{readiness, simulation};

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
    let mut runtime: Option<LocalRuntime> = None;
    while !handler.finished() {
        if handler.driven() == 0 {
            let sleep_ms = event_loop.sleep_ms(handler);
            event_loop.turn(handler, sleep_ms)?;
            continue;
        }
        let runtime = match &mut runtime {
            Some(runtime) => runtime,
            none => none.insert(new_runtime()?),
        };
        runtime.block_on(nested(event_loop, handler, returned))?;
    }
    Ok(())
}

/// A future that updates the lane's clock whenever it is polled, however long it has waited.
pub(super) struct OnTime {
    pub(super) clock: Rc<Clock>,
    pub(super) future: Driven,
}

impl Future for OnTime {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.clock.update();
        self.future.as_mut().poll(context)
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
) -> io::Result<()> {
    let descriptor = event_loop.as_fd().try_clone_to_owned()?;
    let ready = readiness::register(descriptor, Interest::READABLE)?;
    let pause = || Duration::from_millis(simulation::pause_ms(TICK_MS));
    // It is kept, so that the runtime always has a timer that is due soon: a new timer that is due
    // before all others wakes the runtime by a system call, though it is not asleep.
    let mut tick = pin!(tokio::time::sleep(pause()));
    loop {
        let events = event_loop.turn(handler, 0)?;
        for future in event_loop.drives.drain(..) {
            let clock = Rc::clone(&event_loop.clock);
            tokio::task::spawn_local(OnTime { clock, future });
        }
        if handler.driven() == 0 || handler.finished() {
            return Ok(());
        }
        if events > 0 {
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
        if event_loop.has_brief_waits() {
            let brief_ms = event_loop.sleep_ms(handler);
            let ends = Instant::now() + Duration::from_millis(brief_ms as u64);
            if ends < tick.deadline() {
                tick.as_mut().reset(ends);
            }
        }
        tokio::select! {
            biased;
            guard = ready.readable() => guard?.clear_ready(),
            () = returned.notified() => {}
            () = &mut tick => {}
        }
    }
}

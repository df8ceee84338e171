//! The future of a connection while it has to wait: for answers, for the socket, or for the end of
//! what its client sends.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use turnpike_lane::timeout::within;
use turnpike_lane::transport::Transport;
use turnpike_lane::turns;

use super::connection::{Http2Connection, READ_BYTES, Turn};
use crate::counters::CloseReason;
use crate::h1::peer::end_of_input;
use crate::streams::shared::{OUTPUT_BYTES_MAX, SHORT_REST_BYTES};

/// Bytes of frames that wait for the socket before nothing more is read: answers to PING and the
/// like would grow without end for a client that takes nothing.
const UNSENT_BYTES_MAX: usize = 256 * 1024;

// Where bodies fill the output, frames of the client are still read.
const _: () = assert!(UNSENT_BYTES_MAX > OUTPUT_BYTES_MAX + SHORT_REST_BYTES);

/// How long a client without open streams is waited for when the lane ends, in milliseconds: GOAWAY
/// was sent, and what the client sent before it is under way.
const ENDING_GRACE_MS: u64 = 1_000;

/// Bytes that are read and thrown away while a connection ends: more than sockets and networks
/// hold of what the client had sent before it got GOAWAY. A flood is not read for longer.
const ENDING_BYTES_MAX: usize = 4 * 1024 * 1024;

const _: () = assert!(UNSENT_BYTES_MAX <= ENDING_BYTES_MAX);

/// Whether what the client still sends is read before the connection is closed, so that a reset
/// takes nothing from it.
pub(crate) fn lingers(reason: CloseReason) -> bool {
    matches!(
        reason,
        CloseReason::Answered
            | CloseReason::IdleTimeout
            | CloseReason::Drained
            | CloseReason::Refused
    )
}

impl Http2Connection {
    /// Serves the connection until it ends, or until it may be parked again: `None`.
    pub(crate) async fn drive(&mut self) -> Option<CloseReason> {
        let reason = match self.ending {
            Some(reason) => reason,
            None => self.run().await?,
        };
        self.shared.client_left();
        if lingers(reason) {
            self.linger().await;
        }
        Some(reason)
    }

    async fn run(&mut self) -> Option<CloseReason> {
        loop {
            turns::take().await;
            match self.take_turn() {
                // What there is to read is read below.
                Turn::Idle if !self.watch.is_readable() => return None,
                Turn::Idle | Turn::Waits => {}
                // Whoever reads the body may widen the window: as in nginx, it is run first.
                Turn::WantsRun => {
                    self.run_fresh().await;
                    continue;
                }
                Turn::WantsPause => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Turn::Ended(reason) => return Some(reason),
            }
            if let Err(reason) = self.wait().await {
                return Some(reason);
            }
        }
    }

    /// Waits for the client, for answers, or for the time.
    async fn wait(&mut self) -> Result<(), CloseReason> {
        let shared = Rc::clone(&self.shared);
        let watch = Rc::clone(&self.watch);
        let reads = self.shared.unsent_bytes() < UNSENT_BYTES_MAX;
        // While a stream fills the output, nothing is written: it says when it has done so.
        let fills = shared.is_filling() && !self.is_faulty;
        let writes = self.blocked_since_ms.is_some() && !fills;
        let pause_ms = self.deadline_ms().map(|deadline_ms| {
            deadline_ms
                .saturating_sub(self.opening.serving.lane.clock.now_ms())
                .max(1)
        });
        let late = async {
            match pause_ms {
                Some(pause_ms) => tokio::time::sleep(Duration::from_millis(pause_ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = watch.is_to_close() => Err(why.reason()),
            () = watch.readable(), if reads => self.read(),
            () = shared.work.notified() => Ok(()),
            writable = self.waited.writable(0), if writes => {
                writable.map_err(|error| CloseReason::of(&error))
            }
            () = late => self.is_late(),
        }
    }

    /// Waits until the last request that has a body was run as far as it goes without it.
    async fn run_fresh(&self) {
        while !self.has_run_fresh() {
            self.shared.work.notified().await;
        }
    }

    /// Writes all of the output.
    async fn flush_all(&self) -> io::Result<()> {
        let timeout_ms = self.opening.serving.settings().send_timeout_ms;
        within(timeout_ms, async {
            loop {
                match self.flush() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.waited.writable(0).await?;
                    }
                    flushed => return flushed,
                }
            }
        })
        .await
    }

    /// Ends our side and reads what the client still sends, so that nothing is taken from it by a
    /// reset.
    async fn linger(&mut self) {
        let _ = self.flush_all().await;
        let transport: &Transport = self.waited.transport();
        if transport.shutdown_write().is_err() {
            return;
        }
        let mut waste = Vec::new();
        let mut wasted_bytes = 0;
        let _ = within(ENDING_GRACE_MS, async {
            while wasted_bytes < ENDING_BYTES_MAX {
                waste.clear();
                self.watch.readable().await;
                match end_of_input(transport.try_read(&mut waste, READ_BYTES)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.emptied(),
                    Ok(0) | Err(_) => break,
                    Ok(count) => wasted_bytes += count,
                }
            }
            Ok(())
        })
        .await;
    }
}

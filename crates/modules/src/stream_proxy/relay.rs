//! Bytes of a session, both ways. Each direction has one buffer, which is sent before it is filled
//! again: whoever takes nothing is sent nothing, and nothing is read for him.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::time::Duration;

use turnpike_lane::log::{Errno, Level};
use turnpike_stream::client::Client;
use turnpike_stream::session::Session;
use turnpike_stream::upstream::Try;
use turnpike_upstream::Connection;

use super::plan::Passing;
use super::rate::{Rate, Room};

/// A session while its bytes are passed on.
pub(super) struct Relay<'a> {
    passing: &'a Passing,
    session: &'a Session,
    client: &'a Client,
    connection: &'a Connection,
    upload: Rate,
    download: Rate,
    /// When something was read or sent last, in the lane's monotonic milliseconds.
    active_ms: Cell<u64>,
    /// Directions that have ended, where each ends on its own.
    ended: Cell<u8>,
}

/// Why a relay ends.
enum End {
    /// The client has sent its last, or cannot be reached.
    Client,
    /// The server has.
    Upstream,
    /// Nothing happened for too long.
    Idle,
}

impl<'a> Relay<'a> {
    pub(super) fn new(
        passing: &'a Passing,
        session: &'a Session,
        client: &'a Client,
        connection: &'a Connection,
        [upload, download]: [Rate; 2],
    ) -> Self {
        Self {
            passing,
            session,
            client,
            connection,
            upload,
            download,
            active_ms: Cell::new(session.lane.clock.now_ms()),
            ended: Cell::new(0),
        }
    }

    /// Passes bytes on until the session ends; `first` was read from the client already.
    pub(super) async fn run(&self, first: Vec<u8>) {
        // In no fixed order: a direction that never has to wait must not hold the other up.
        let end = tokio::select! {
            end = self.down() => end,
            end = self.up(first) => end,
            end = self.idle() => end,
        };
        match end {
            End::Client => self
                .session
                .log(Level::Info, format_args!("client disconnected")),
            End::Upstream => self
                .session
                .log(Level::Info, format_args!("upstream disconnected")),
            End::Idle => self.session.log(
                Level::Info,
                format_args!("connection timed out (110: Connection timed out)"),
            ),
        }
    }

    /// From the client to the server.
    async fn up(&self, mut buffer: Vec<u8>) -> End {
        loop {
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                match self.connection.write(&[IoSlice::new(rest)], 0).await {
                    Ok(sent) => {
                        rest = &rest[sent..];
                        self.note(|one| &one.bytes_sent, sent);
                    }
                    Err(error) => return self.failed("send()", &error, End::Upstream),
                }
            }
            buffer.clear();
            let read = self.session.bytes_received.get();
            let room = self.room(&self.upload, read).await;
            match self.client.read(&mut buffer, room).await {
                Ok(0) if self.passing.half_close => {
                    if self.connection.shutdown_write().is_err() {
                        return End::Upstream;
                    }
                    return self.ended(End::Client).await;
                }
                Ok(0) => return End::Client,
                Ok(count) => {
                    self.active();
                    let received = self.session.bytes_received.get() + count as u64;
                    self.session.bytes_received.set(received);
                    pause(self.upload.pause_ms(count)).await;
                }
                Err(error) => return self.failed("recv()", &error, End::Client),
            }
        }
    }

    /// From the server to the client.
    async fn down(&self) -> End {
        let mut buffer = Vec::new();
        loop {
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                match self.client.write(rest).await {
                    Ok(sent) => {
                        rest = &rest[sent..];
                        self.active();
                        let all = self.session.bytes_sent.get() + sent as u64;
                        self.session.bytes_sent.set(all);
                    }
                    Err(error) => return self.failed("send()", &error, End::Client),
                }
            }
            buffer.clear();
            let room = self
                .room(&self.download, self.connection.bytes_received())
                .await;
            match self.connection.read(&mut buffer, room, 0).await {
                Ok(0) if self.passing.half_close => {
                    if self.client.shutdown_write().is_err() {
                        return End::Client;
                    }
                    return self.ended(End::Upstream).await;
                }
                Ok(0) => return End::Upstream,
                Ok(count) => {
                    self.first_byte();
                    self.note(|one| &one.bytes_received, count);
                    pause(self.download.pause_ms(count)).await;
                }
                Err(error) => return self.failed("recv()", &error, End::Upstream),
            }
        }
    }

    /// Waits until nothing was read or sent for too long.
    async fn idle(&self) -> End {
        let timeout_ms = self.passing.idle_timeout_ms;
        if timeout_ms == 0 {
            return std::future::pending().await;
        }
        loop {
            let due_ms = self.active_ms.get() + timeout_ms;
            let now_ms = self.session.lane.clock.now_ms();
            if now_ms >= due_ms {
                return End::Idle;
            }
            pause(due_ms - now_ms).await;
        }
    }

    /// One direction has ended, and the other goes on; the second one ends the session.
    async fn ended(&self, end: End) -> End {
        self.active();
        self.ended.set(self.ended.get() + 1);
        match self.ended.get() {
            1 => std::future::pending().await,
            _ => end,
        }
    }

    /// How much may be read next, once anything may be.
    async fn room(&self, rate: &Rate, read: u64) -> usize {
        loop {
            let now_ms = self.session.lane.clock.now_ms();
            match rate.room(now_ms, read, self.passing.buffer_bytes) {
                Room::Bytes(bytes) => return bytes,
                Room::Pause(pause_ms) => pause(pause_ms).await,
            }
        }
    }

    fn failed(&self, call: &str, error: &io::Error, end: End) -> End {
        let errno = Errno(error);
        self.session
            .log(Level::Info, format_args!("{call} failed {errno}"));
        end
    }

    fn active(&self) {
        self.active_ms.set(self.session.lane.clock.now_ms());
    }

    fn note(&self, counter: impl Fn(&Try) -> &Cell<u64>, count: usize) {
        self.active();
        if let Some(one) = self.session.tries.last() {
            let counter = counter(one);
            counter.set(counter.get() + count as u64);
        }
    }

    fn first_byte(&self) {
        if let Some(one) = self.session.tries.last()
            && one.first_byte_ms.get().is_none()
        {
            let now_ms = self.session.lane.clock.now_ms();
            one.first_byte_ms
                .set(Some(now_ms.saturating_sub(one.started_ms)));
        }
    }
}

async fn pause(pause_ms: u64) {
    if pause_ms > 0 {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}

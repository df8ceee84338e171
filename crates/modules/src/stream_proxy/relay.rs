//! Bytes of a session, both ways. Each direction has one buffer, which is sent before it is filled
//! again: whoever takes nothing is sent nothing, and nothing is read for him.

use std::cell::Cell;
use std::io::{self, IoSlice};

use turnpike_lane::log::{Errno, Level};
use turnpike_stream::client::Connected;
use turnpike_stream::session::Session;
use turnpike_stream::upstream::Try;
use turnpike_upstream::{Connection, Picked};

use super::activity::{Activity, pause};
use super::plan::Passing;
use super::rate::Rate;

/// A session while its bytes are passed on.
pub(super) struct Relay<'a> {
    passing: &'a Passing,
    session: &'a Session,
    client: &'a Connected,
    picked: &'a Picked,
    connection: &'a Connection,
    upload: Rate,
    download: Rate,
    activity: Activity,
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
        client: &'a Connected,
        (picked, connection): (&'a Picked, &'a Connection),
        [upload, download]: [Rate; 2],
    ) -> Self {
        Self {
            passing,
            session,
            client,
            picked,
            connection,
            upload,
            download,
            activity: Activity::new(session.lane.clock.clone(), passing.idle_timeout_ms),
            ended: Cell::new(0),
        }
    }

    /// Passes bytes on until the session ends; `first` was read from the client already.
    pub(super) async fn run(&self, first: Vec<u8>) {
        // In no fixed order: a direction that never has to wait must not hold the other up.
        let end = tokio::select! {
            end = self.down() => end,
            end = self.up(first) => end,
            () = self.activity.idle() => End::Idle,
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
            if let Err(error) = self.connection.flush(0).await {
                return self.failed("send()", &error, End::Upstream);
            }
            buffer.clear();
            let clock = &self.session.lane.clock;
            let read = self.session.bytes_received.get();
            let room_max = self.passing.buffer_bytes;
            let room = self.upload.next_room(clock, read, room_max).await;
            match self.client.read(&mut buffer, room).await {
                Ok(0) if self.passing.half_close => {
                    if self.connection.shutdown_write().is_err() {
                        return End::Upstream;
                    }
                    return self.ended(End::Client).await;
                }
                Ok(0) => return End::Client,
                Ok(count) => {
                    self.activity.note();
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
                        self.activity.note();
                        let all = self.session.bytes_sent.get() + sent as u64;
                        self.session.bytes_sent.set(all);
                    }
                    Err(error) => return self.failed("send()", &error, End::Client),
                }
            }
            buffer.clear();
            let clock = &self.session.lane.clock;
            let read = self.connection.bytes_received();
            let room_max = self.passing.buffer_bytes;
            let room = self.download.next_room(clock, read, room_max).await;
            match self.connection.read(&mut buffer, room, 0).await {
                Ok(0) if self.passing.half_close => {
                    if self.client.shutdown_write().is_err() {
                        return End::Client;
                    }
                    return self.ended(End::Upstream).await;
                }
                Ok(0) => return End::Upstream,
                Ok(count) => {
                    let now_ms = clock.now_ms();
                    if let Some(one) = self.session.tries.last()
                        && one.note_first_byte(now_ms)
                    {
                        self.picked.header_received(now_ms);
                    }
                    self.note(|one| &one.bytes_received, count);
                    pause(self.download.pause_ms(count)).await;
                }
                Err(error) => return self.failed("recv()", &error, End::Upstream),
            }
        }
    }

    /// One direction has ended, and the other goes on; the second one ends the session.
    async fn ended(&self, end: End) -> End {
        self.activity.note();
        self.ended.set(self.ended.get() + 1);
        match self.ended.get() {
            1 => std::future::pending().await,
            _ => end,
        }
    }

    fn failed(&self, call: &str, error: &io::Error, end: End) -> End {
        let errno = Errno(error);
        self.session
            .log(Level::Info, format_args!("{call} failed {errno}"));
        end
    }

    fn note(&self, counter: impl Fn(&Try) -> &Cell<u64>, count: usize) {
        self.activity.note();
        if let Some(one) = self.session.tries.last() {
            let counter = counter(one);
            counter.set(counter.get() + count as u64);
        }
    }
}

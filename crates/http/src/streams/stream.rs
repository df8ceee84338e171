//! A stream, as the client of the exchange that answers its request.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use tokio::sync::Notify;
use turnpike_lane::timeout::within;
use turnpike_lane::turns;
use turnpike_wire::message::Fields;

use super::frames::{Indexing, Priority, StreamId};
use super::shared::Shared;
use crate::arrived::Arrived;
use crate::interim::InterimHead;
use crate::running::Running;
use crate::traffic::Traffic;

/// A client's stream.
pub struct Stream {
    pub(crate) id: StreamId,
    pub(crate) shared: Rc<Shared>,
    /// What has come of the body; its window limits it.
    body: RefCell<Vec<u8>>,
    request: Cell<RequestProgress>,
    /// The fields behind the body.
    trailers: Cell<Fields>,
    /// Whether the request asks for a tunnel (RFC 8441): what comes is no body.
    asks_for_tunnel: bool,
    /// Whether its exchange was run as far as it goes without waiting.
    has_run: Cell<bool>,
    window: Cell<BodyWindow>,
    /// Bytes that the window has grown by beyond that, since the reader had to wait for the client.
    grown_bytes: Cell<usize>,
    /// Whether the client has gone, or does not want the answer any more.
    is_gone: Cell<bool>,
    /// Notified when something came, or the client went.
    changed: Notify,
    /// Where the answer waits for windows or the output.
    waits_at: Cell<Option<SendPlace>>,
    /// Notified when the answer may go on.
    pub(super) room: Notify,
    turn: Cell<u64>,
    /// The request, once a future answers it.
    pub(crate) running: RefCell<Option<Running>>,
    /// Notified when the request is to be closed, by an operator or for others.
    pub(super) closing: Notify,
    /// The request's place among those of the lane.
    pub(super) place: Cell<LanePlace>,
    pub(crate) traffic: Traffic,
    priority: Cell<Priority>,
}

/// What has come of a request behind its head.
///
/// ```text
///  Coming ──the last frame──► Whole
///    ├── not as long as announced ──► Malformed
///    └── RST_STREAM, or the connection ends ──► Cut
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestProgress {
    /// The client has not ended its side of the stream.
    Coming,
    /// All of it has come, though the reader may not have taken it.
    Whole,
    /// The body is not as long as it was announced.
    Malformed,
    /// The rest will never come.
    Cut,
}

/// The window of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyWindow {
    /// As large as the client learnt by SETTINGS: nobody reads yet.
    Preread,
    /// As large as the reader's buffer. What is read is granted again.
    Widened,
    /// Kept open, so that what is read grants nothing.
    Open,
}

/// A request's place among those of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LanePlace {
    /// The request has it.
    Held,
    /// The request is closed since others need it.
    Yielded,
    /// The request has ended.
    Free,
}

/// A place among the streams that want to send (RFC 9218 section 10): the urgent first; of these,
/// what is wanted whole, one behind another; then what is of use in parts, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SendPlace {
    urgency: u8,
    incremental: bool,
    order: u64,
}

/// What has come of a body.
pub(crate) enum BodyPart {
    Some,
    /// The body is not as long as it was announced.
    Malformed,
    /// The client has gone.
    Gone,
}

impl Stream {
    /// The stream of a request. `is_whole`: nothing follows its head.
    pub(crate) fn new(
        id: StreamId,
        shared: &Rc<Shared>,
        is_whole: bool,
        asks_for_tunnel: bool,
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            shared: Rc::clone(shared),
            body: RefCell::default(),
            request: Cell::new(if is_whole {
                RequestProgress::Whole
            } else {
                RequestProgress::Coming
            }),
            trailers: Cell::default(),
            asks_for_tunnel,
            has_run: Cell::new(false),
            window: Cell::new(BodyWindow::Preread),
            grown_bytes: Cell::new(0),
            is_gone: Cell::new(false),
            changed: Notify::new(),
            waits_at: Cell::new(None),
            room: Notify::new(),
            turn: Cell::new(shared.next_turn()),
            running: RefCell::default(),
            closing: Notify::new(),
            place: Cell::new(LanePlace::Held),
            traffic: Traffic::new(shared.now_ms()),
            priority: Cell::new(shared.frames.borrow().priority(id)),
        })
    }

    /// A part of the body has come.
    pub(crate) fn body_arrived(&self, data: &[u8], ends: bool) {
        self.shared.moved(self, data.len());
        self.body.borrow_mut().extend_from_slice(data);
        if ends {
            self.request.set(RequestProgress::Whole);
        }
        self.changed.notify_waiters();
    }

    /// The body ends by trailers.
    pub(crate) fn ended_by(&self, trailers: Fields) {
        self.trailers.set(trailers);
        self.request.set(RequestProgress::Whole);
        self.changed.notify_waiters();
    }

    /// The body is not as long as it was announced.
    pub(crate) fn body_is_malformed(&self) {
        self.request.set(RequestProgress::Malformed);
        self.changed.notify_waiters();
    }

    /// The client does not want the answer any more.
    pub(crate) fn client_left(&self) {
        self.is_gone.set(true);
        if self.request.get() == RequestProgress::Coming {
            self.request.set(RequestProgress::Cut);
        }
        self.changed.notify_waiters();
        self.room.notify_one();
    }

    /// Notes that the stream's exchange has begun to run.
    pub(super) fn runs(&self) {
        self.has_run.set(true);
        self.shared.work.notify_one();
    }

    pub(crate) fn has_run(&self) -> bool {
        self.has_run.get()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Whether the client has sent the whole request.
    pub(super) fn is_whole(&self) -> bool {
        self.request.get() == RequestProgress::Whole
    }

    /// Whether the answer waits for windows or the output.
    pub(super) fn waits_for_room(&self) -> bool {
        self.waits_at.get().is_some()
    }

    /// Whether an upstream server is asked for the request.
    pub(super) fn is_at_upstream(&self) -> bool {
        let running = self.running.borrow();
        running
            .as_ref()
            .is_some_and(|running| running.activity.has_upstream_place())
    }

    /// Closes the request, as its place is needed. That is free at once.
    pub(super) fn give_way(&self) {
        if let Some(running) = &*self.running.borrow() {
            running.activity.set_upstream_place(None);
        }
        self.closing.notify_one();
    }

    /// Whether the request is closed since its place is needed.
    pub(super) fn gives_way_to_others(&self) -> bool {
        self.place.get() == LanePlace::Yielded
    }

    /// Whether the request asks for a tunnel.
    pub(crate) fn asks_for_tunnel(&self) -> bool {
        self.asks_for_tunnel
    }

    /// Where the stream stands among those that want to send.
    fn place(&self) -> SendPlace {
        let Priority {
            urgency,
            incremental,
        } = self.priority.get();
        let order = if incremental {
            self.turn.get()
        } else {
            self.id
        };
        SendPlace {
            urgency,
            incremental,
            order,
        }
    }

    /// The last place whose stream sends before this one sends again: those that are of use in
    /// parts share their turn.
    pub(super) fn last_place_before(&self) -> SendPlace {
        let place = self.place();
        if place.incremental {
            SendPlace {
                order: u64::MAX,
                ..place
            }
        } else {
            SendPlace {
                order: place.order.saturating_sub(1),
                ..place
            }
        }
    }

    /// The client gives the stream another priority.
    pub(crate) fn prioritize(&self, priority: Priority) {
        let waits = self.stops_waiting();
        self.priority.set(priority);
        if waits {
            self.waits();
        }
    }

    fn waits(&self) {
        let place = self.place();
        self.waits_at.set(Some(place));
        self.shared.waits(place, self.id);
    }

    /// The answer does not wait for room any more; returns whether it did.
    pub(super) fn stops_waiting(&self) -> bool {
        let waited_at = self.waits_at.take();
        if let Some(place) = waited_at {
            self.shared.waits_no_more(place, self.id);
        }
        waited_at.is_some()
    }

    /// Takes what has come of the body behind what is there; `None`: nothing has. `has_waited`:
    /// whoever takes it had to wait for it.
    fn take_body(&self, arrived: &mut Arrived, has_waited: bool) -> Option<BodyPart> {
        let mut body = self.body.borrow_mut();
        match self.request.get() {
            RequestProgress::Malformed => return Some(BodyPart::Malformed),
            RequestProgress::Coming if body.is_empty() => return None,
            RequestProgress::Cut if body.is_empty() => return Some(BodyPart::Gone),
            RequestProgress::Coming | RequestProgress::Cut | RequestProgress::Whole => {}
        }
        let count = body.len();
        if count > 0 {
            turns::moved();
        }
        arrived.add(&body, count as u64);
        body.clear();
        if self.is_whole() {
            arrived.set_trailers(self.trailers.take());
            arrived.set_whole();
        } else {
            self.grant(count, has_waited);
        }
        Some(BodyPart::Some)
    }

    /// Lets the client send as much again as was taken of what has come. If whoever took it had to
    /// wait for the client, the window grows by as much: it is twice as wide after each round trip,
    /// until it holds the client back no more.
    fn grant(&self, taken_bytes: usize, has_waited: bool) {
        if self.window.get() == BodyWindow::Open {
            return;
        }
        let grown_bytes = if has_waited {
            self.shared.grow_windows(taken_bytes)
        } else {
            0
        };
        self.grown_bytes.set(self.grown_bytes.get() + grown_bytes);
        let granted = u32::try_from(taken_bytes + grown_bytes).unwrap_or(u32::MAX);
        self.shared.frames.borrow_mut().grant(self.id, granted);
        self.shared.work.notify_one();
    }

    /// Gives back what the window has grown by, once the stream has ended.
    pub(super) fn take_growth(&self) -> usize {
        self.grown_bytes.take()
    }

    /// Takes what has come of a tunnel behind what `buffer` holds; `None`: nothing has.
    /// `has_waited` as for a body.
    pub(super) fn take_bytes(
        &self,
        buffer: &mut Vec<u8>,
        has_waited: bool,
    ) -> Option<io::Result<usize>> {
        let mut body = self.body.borrow_mut();
        match (body.len(), self.is_gone.get(), self.is_whole()) {
            (0, true, _) => return Some(Err(io::ErrorKind::ConnectionReset.into())),
            (0, false, true) => return Some(Ok(0)),
            (0, false, false) => return None,
            _ => {}
        }
        let count = body.len();
        turns::moved();
        buffer.append(&mut body);
        if !self.is_whole() {
            self.grant(count, has_waited);
        }
        Some(Ok(count))
    }

    /// Waits until something comes, or the client goes.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The whole body is read as fast as it comes: nothing holds the client back.
    pub(crate) fn open_window(&self) {
        if self.widens(BodyWindow::Open) {
            self.shared.frames.borrow_mut().open_stream_window(self.id);
            self.shared.work.notify_one();
        }
    }

    /// The body is read as fast as somebody takes it, who has a buffer of so many bytes. What is
    /// read is granted again.
    pub(crate) fn widen_window(&self, buffer_bytes: usize) {
        if self.widens(BodyWindow::Widened) {
            let mut frames = self.shared.frames.borrow_mut();
            frames.allow_buffer(self.id, buffer_bytes);
            self.shared.work.notify_one();
        }
    }

    /// Notes that the window is widened; `false`: it was before, or nothing more comes.
    fn widens(&self, window: BodyWindow) -> bool {
        let widens = !self.is_whole() && self.window.get() == BodyWindow::Preread;
        if widens {
            self.window.set(window);
        }
        widens
    }

    /// Waits for more of the body.
    ///
    /// # Errors
    /// `TimedOut` after `timeout_ms`.
    pub(crate) async fn read_body(
        &self,
        arrived: &mut Arrived,
        timeout_ms: u64,
    ) -> io::Result<BodyPart> {
        within(timeout_ms, async {
            let mut has_waited = false;
            loop {
                if let Some(part) = self.take_body(arrived, has_waited) {
                    return Ok(part);
                }
                has_waited = true;
                self.changed.notified().await;
            }
        })
        .await
    }

    /// Ends when the client does not want the answer any more.
    pub(crate) async fn gone(&self) {
        while !self.is_gone.get() {
            self.changed.notified().await;
        }
    }

    /// Sends an interim head; returns its bytes.
    pub(crate) fn send_interim(&self, head: &InterimHead<'_>) -> u64 {
        let mut digits = [b'0'; 3];
        let mut rest = head.status;
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        let mut frames = self.shared.frames.borrow_mut();
        let sent = frames.send_head(self.id, false, &mut |block| {
            block.field(b":status", &digits, Indexing::WhenRepeated);
            for (name, value) in head.fields.iter() {
                block.field(name, value, Indexing::No);
            }
        });
        self.shared.work.notify_one();
        sent as u64
    }

    /// Waits until the answer may go on.
    ///
    /// # Errors
    /// `TimedOut` after `timeout_ms`; `ConnectionReset` when the client has gone.
    pub(super) async fn wait_for_room(&self, timeout_ms: u64) -> io::Result<()> {
        within(timeout_ms, async {
            if !self.is_gone.get() {
                self.turn.set(self.shared.next_turn());
                self.waits();
                self.shared.work.notify_one();
                self.room.notified().await;
            }
            self.stops_waiting();
            if self.is_gone.get() {
                Err(io::ErrorKind::ConnectionReset.into())
            } else {
                Ok(())
            }
        })
        .await
    }
}

//! What the future of a connection and those of its answers share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use turnpike_lane::clock::Clock;

use super::frames::{Frames, ResetReason, StreamId};
use super::places::{Need, StreamPlaces};
use super::stream::{LanePlace, SendPlace, Stream};
use crate::running::{RequestId, Running};
use crate::traffic::Pace;

/// Bytes of frames that wait for the socket before bodies wait too: a few round trips of a fast
/// connection, and what a slow one holds at most beside its windows.
pub(crate) const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that the windows of a connection's streams grow by, all together: what a fast network has
/// under way in a round trip. More would be kept for readers that stop.
const GROWTH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes of the rest of an answer that the output is written for at once.
pub(crate) const SHORT_REST_BYTES: usize = 32 * 1024;

const _: () = assert!(SHORT_REST_BYTES <= OUTPUT_BYTES_MAX);

/// What tells a connection that it has something to do: its future waits for that, or the lane's
/// loop is told.
#[derive(Default)]
pub(crate) struct Work {
    notify: Notify,
    /// Tells the loop; `None`: a future waits.
    wake: Option<Box<dyn Fn()>>,
}

impl Work {
    /// Work of a connection that no future has.
    pub(crate) fn told_by(wake: impl Fn() + 'static) -> Self {
        Self {
            notify: Notify::new(),
            wake: Some(Box::new(wake)),
        }
    }

    /// There is something to do.
    pub(crate) fn notify_one(&self) {
        match &self.wake {
            Some(wake) => wake(),
            None => self.notify.notify_one(),
        }
    }

    /// Ends when there is something to do.
    pub(crate) fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

/// A connection, for its future and for its answers.
pub(crate) struct Shared {
    pub(super) frames: Rc<RefCell<dyn Frames>>,
    /// Streams whose requests are not answered yet, by their numbers.
    streams: RefCell<Vec<Rc<Stream>>>,
    /// The streams whose answers wait for room, in the order in which they get it.
    waiting: RefCell<BTreeSet<(SendPlace, StreamId)>>,
    /// Notified when the connection has something to do.
    pub(crate) work: Work,
    /// The stream that was let go on last, and has not sent since.
    sender: Cell<Option<StreamId>>,
    /// Counts the turns of streams that share a priority.
    turns: Cell<u64>,
    /// Bytes that the windows of streams have grown by.
    grown_bytes: Cell<usize>,
    clock: Rc<Clock>,
    places: Rc<StreamPlaces>,
    /// The connection's number among those of the lane.
    number: usize,
    /// Streams that count among the lane's places.
    placed: Cell<usize>,
    /// When a byte of a body was last moved, in the lane's monotonic milliseconds.
    moved_ms: Cell<u64>,
    /// Until when the connection is closed neither by a drain nor for others, in the same time.
    kept_until_ms: Cell<u64>,
    /// Whether the connection is to end, as its place is needed.
    is_leaving: Cell<bool>,
}

impl Shared {
    pub(crate) fn new(
        frames: Rc<RefCell<dyn Frames>>,
        clock: &Rc<Clock>,
        places: &Rc<StreamPlaces>,
        work: Work,
    ) -> Rc<Self> {
        Rc::new_cyclic(|shared| Self {
            clock: Rc::clone(clock),
            places: Rc::clone(places),
            number: places.add(Weak::clone(shared)),
            placed: Cell::new(0),
            moved_ms: Cell::new(clock.now_ms()),
            kept_until_ms: Cell::new(0),
            is_leaving: Cell::new(false),
            frames,
            streams: RefCell::default(),
            waiting: RefCell::default(),
            work,
            sender: Cell::new(None),
            turns: Cell::new(0),
            grown_bytes: Cell::new(0),
        })
    }

    /// Takes up a stream, whose number is higher than those of all before it.
    pub(crate) fn begin(&self, stream: &Rc<Stream>) {
        self.places.began(self.placed.get());
        self.placed.set(self.placed.get() + 1);
        self.streams.borrow_mut().push(Rc::clone(stream));
    }

    /// Whether all requests are answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.borrow().is_empty()
    }

    /// The client has gone: nobody wants the answers any more.
    pub(crate) fn client_left(&self) {
        for stream in self.streams.borrow().iter() {
            stream.client_left();
        }
    }

    /// The stream of that number, where its request is not answered yet.
    pub(crate) fn stream(&self, id: StreamId) -> Option<Rc<Stream>> {
        let streams = self.streams.borrow();
        let at = streams.binary_search_by_key(&id, |stream| stream.id).ok()?;
        streams.get(at).cloned()
    }

    /// Whether the request of a stream is not answered yet.
    pub(crate) fn holds(&self, stream: &Stream) -> bool {
        self.stream(stream.id).is_some()
    }

    /// A stream's answer waits for room at this place.
    pub(super) fn waits(&self, place: SendPlace, id: StreamId) {
        self.waiting.borrow_mut().insert((place, id));
    }

    /// A stream's answer does not wait at this place any more.
    pub(super) fn waits_no_more(&self, place: SendPlace, id: StreamId) {
        self.waiting.borrow_mut().remove(&(place, id));
    }

    /// Bytes of frames that wait for the socket.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.frames.borrow_mut().unsent_bytes()
    }

    /// Whether bodies may add to the output.
    pub(crate) fn has_room(&self) -> bool {
        self.unsent_bytes() < OUTPUT_BYTES_MAX
    }

    /// Bytes of a stream's body that are worth having now, to be sent in frames of `chunk_bytes`:
    /// what windows and output take, and one frame only where others share the turn. A short rest
    /// is worth having whole.
    pub(super) fn room_bytes(&self, stream: &Stream, chunk_bytes: usize) -> usize {
        let output_bytes = self.unsent_bytes();
        let room_bytes = match OUTPUT_BYTES_MAX.saturating_sub(output_bytes) {
            0 => return 0,
            _ if !self.may_go_on(stream) => chunk_bytes,
            left => left.max(SHORT_REST_BYTES).max(chunk_bytes),
        };
        room_bytes.min(self.frames.borrow().window(stream.id))
    }

    /// Makes ready to take more frames.
    pub(super) fn prepare_output(&self) {
        self.frames.borrow_mut().prepare_output();
    }

    /// Calls for every request that is answered by a future.
    pub(crate) fn each_running(&self, mut does: impl FnMut(&Running)) {
        for stream in self.streams.borrow().iter() {
            if let Some(running) = &*stream.running.borrow() {
                does(running);
            }
        }
    }

    /// Closes the request of that name; returns whether there is one.
    pub(crate) fn close(&self, id: RequestId) -> bool {
        let streams = self.streams.borrow();
        let is_meant = |stream: &&Rc<Stream>| {
            let running = stream.running.borrow();
            running.as_ref().is_some_and(|running| running.id() == id)
        };
        let stream = streams.iter().find(is_meant);
        stream
            .inspect(|stream| stream.closing.notify_one())
            .is_some()
    }

    /// The number of the next turn.
    pub(super) fn next_turn(&self) -> u64 {
        self.turns.set(self.turns.get() + 1);
        self.turns.get()
    }

    /// Lets the window of a stream grow by as much as is left, at most so many bytes; returns how
    /// much that is.
    pub(super) fn grow_windows(&self, bytes_max: usize) -> usize {
        let grown_bytes = self.grown_bytes.get();
        let bytes = bytes_max.min(GROWTH_BYTES_MAX.saturating_sub(grown_bytes));
        self.grown_bytes.set(grown_bytes + bytes);
        bytes
    }

    /// Whether a stream is about to send: the output is written once no other can add to it, so
    /// that one call carries the answers of many streams.
    pub(crate) fn is_filling(&self) -> bool {
        self.sender.get().is_some()
    }

    /// Lets the stream that is due next go on, where anything can be sent. Returns whether there is
    /// one.
    pub(crate) fn wake_sender(&self) -> bool {
        if !self.has_room() {
            return false;
        }
        let next = {
            let (waiting, frames) = (self.waiting.borrow(), self.frames.borrow());
            let mut due = waiting.iter().map(|(_, id)| *id);
            if frames.is_window_closed() {
                None
            } else {
                due.find(|id| frames.window(*id) > 0)
            }
        };
        let Some(next) = next.and_then(|id| self.stream(id)) else {
            return false;
        };
        next.stops_waiting();
        next.room.notify_one();
        self.sender.set(Some(next.id));
        true
    }

    /// A stream has sent what it could for now: the next one is let go on while the output has
    /// room; then the connection's future writes.
    pub(super) fn has_sent(&self, stream: &Stream) {
        self.sends_no_more(stream);
        if !self.is_filling() && !self.wake_sender() {
            self.work.notify_one();
        }
    }

    fn sends_no_more(&self, stream: &Stream) {
        if self.sender.get() == Some(stream.id) {
            self.sender.set(None);
        }
    }

    /// Whether a stream may send on, no other one being due before it, nor sharing its turn.
    pub(super) fn may_go_on(&self, stream: &Stream) -> bool {
        let waiting = self.waiting.borrow();
        let frames = self.frames.borrow();
        let mut due = waiting.range(..(stream.last_place_before(), StreamId::MAX));
        !due.any(|(_, id)| frames.window(*id) > 0)
    }

    /// The request of a stream is answered, or never will be.
    pub(super) fn ended(&self, stream: &Stream) {
        self.sends_no_more(stream);
        stream.stops_waiting();
        let grown_bytes = self.grown_bytes.get();
        let left = grown_bytes.saturating_sub(stream.take_growth());
        self.grown_bytes.set(left);
        self.give_place_back(stream, LanePlace::Free);
        let mut streams = self.streams.borrow_mut();
        if let Ok(at) = streams.binary_search_by_key(&stream.id, |other| other.id) {
            streams.remove(at);
        }
        self.work.notify_one();
    }

    /// Whether another request may begin on the connection, of a lane with that many
    /// `worker_connections`.
    pub(crate) fn has_place(&self, connections_max: usize) -> bool {
        let now_ms = self.clock.now_ms();
        self.places
            .has_place(self.placed.get(), connections_max, now_ms)
    }

    fn give_place_back(&self, stream: &Stream, place: LanePlace) {
        if stream.place.get() == LanePlace::Held {
            stream.place.set(place);
            self.placed.set(self.placed.get() - 1);
            self.places.ended(self.placed.get());
        }
    }

    /// The lane's monotonic milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Bytes of a stream's body have moved.
    pub(super) fn moved(&self, stream: &Stream, bytes: usize) {
        let now_ms = self.clock.now_ms();
        stream.traffic.moved(bytes, now_ms);
        if bytes > 0 {
            self.moved_ms.set(now_ms);
        }
    }

    /// How many requests whose clients have that pace would give way.
    pub(super) fn giving_way(&self, pace: Pace, need: Need, now_ms: u64) -> usize {
        let streams = self.streams.borrow();
        let gives_way = |stream: &&Rc<Stream>| self.gives_way(stream, pace, need, now_ms);
        streams.iter().filter(gives_way).count()
    }

    /// Lets up to `most` of these give way, those first that have moved no byte for longest.
    /// Returns how many there were.
    pub(super) fn give_way(&self, pace: Pace, need: Need, now_ms: u64, most: usize) -> u64 {
        let streams = self.streams.borrow();
        let gives_way = |stream: &&Rc<Stream>| self.gives_way(stream, pace, need, now_ms);
        let mut found: Vec<&Rc<Stream>> = streams.iter().filter(gives_way).collect();
        found.sort_by_key(|stream| stream.traffic.moved_ms());
        found.truncate(most);
        for stream in &found {
            self.give_place_back(stream, LanePlace::Yielded);
            stream.give_way();
        }
        found.len() as u64
    }

    fn gives_way(&self, stream: &Stream, pace: Pace, need: Need, now_ms: u64) -> bool {
        let is_needed = match need {
            // The first request of a connection has no place that others could have.
            Need::Place => self.placed.get() > 1,
            Need::Upstream => stream.is_at_upstream(),
        };
        stream.place.get() == LanePlace::Held && is_needed && self.pace(stream, now_ms) == pace
    }

    /// The pace of a request's client, where it is the client that the request waits for.
    fn pace(&self, stream: &Stream, now_ms: u64) -> Pace {
        let frames = self.frames.borrow();
        let may_client_send = !stream.is_whole() && frames.may_receive(stream.id);
        if !stream.waits_for_room() && !may_client_send {
            return Pace::Steady;
        }
        let is_in_turn = stream.waits_for_room()
            && frames.window(stream.id) > 0
            && !stream.traffic.is_long_ago(self.moved_ms.get(), now_ms);
        match stream.traffic.pace(now_ms) {
            // Its client takes the bytes of others, and this one is due behind them.
            Pace::Stalled if is_in_turn => Pace::Slow,
            pace => pace,
        }
    }

    /// Whether the connection only waits for its next request, or for more than `late_ms` for the
    /// end of what its client begins with.
    pub(crate) fn is_at_rest(&self, now_ms: u64, late_ms: u64) -> bool {
        let is_late = || now_ms.saturating_sub(self.moved_ms.get()) >= late_ms;
        self.is_idle()
            && self.kept_until_ms.get() <= now_ms
            && (self.frames.borrow().is_open() || is_late())
    }

    /// Keeps the connection until that time (`keepalive_min_timeout`).
    pub(crate) fn keep_until(&self, until_ms: u64) {
        self.kept_until_ms.set(until_ms);
    }

    /// Until when the connection is kept.
    pub(crate) fn kept_until_ms(&self) -> u64 {
        self.kept_until_ms.get()
    }

    /// Whether the connection has requests, and no client of any moves it; since when, in the
    /// lane's monotonic milliseconds.
    pub(crate) fn stalled_since_ms(&self, now_ms: u64) -> Option<u64> {
        let streams = self.streams.borrow();
        let is_stalled = |stream: &Rc<Stream>| self.pace(stream, now_ms) == Pace::Stalled;
        let last_ms = streams.iter().map(|stream| stream.traffic.moved_ms()).max();
        last_ms.filter(|_| streams.iter().all(is_stalled))
    }

    /// Has the connection end as soon as it has no requests, as its place is needed.
    pub(crate) fn leave(&self) {
        self.is_leaving.set(true);
        self.work.notify_one();
    }

    /// Whether the connection is to end.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// Ends a stream that has no whole answer.
    pub(crate) fn reset(&self, id: StreamId, reason: ResetReason) {
        self.frames.borrow_mut().reset(id, reason);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.places.remove(self.number, self.placed.get());
    }
}

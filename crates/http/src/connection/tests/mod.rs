//! Lanes that end while connections are on their way to them.

#![allow(clippy::unwrap_used)]

mod only_http;

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_conf::ConfError;
use turnpike_lane::event_loop::{EventHandler as _, EventLoop, Mailbox, WatchedSocket};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::socket::{self, More, PeerAddress};
use turnpike_lane::turns;

use super::connections::Ending;
use super::return_queue::Left;
use super::slot::{DrivenWork, Slot};
use super::slots::Place;
use super::{SuccessorLink, offer, take_connections};
use crate::client::Client;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::phase::{Awaiting, Handler, HandlerPlace, Verdict, Waiting, Work};
use crate::plan::{Family, LocationDraft, Plan, ReadLocation};
use crate::response::{Body, BodyFailed, BodyStream, LocalFuture};
use crate::testing;

pub(super) use only_http::Command;
use only_http::{GATE, OnlyHttp};

/// A lane without a thread: the test takes its turns.
pub(super) struct Lane {
    pub(super) event_loop: EventLoop,
    pub(super) connections: OnlyHttp,
    pub(super) mailbox: Arc<Mailbox<Command>>,
}

fn plan() -> Arc<Plan> {
    Arc::new(testing::plan("server { listen 127.0.0.1:80; }").unwrap())
}

impl Lane {
    fn new() -> Lane {
        Lane::serving(plan())
    }

    pub(super) fn serving(plan: Arc<Plan>) -> Lane {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (connections, event_loop) = OnlyHttp::begin(plan, &mailbox);
        Lane {
            event_loop,
            connections,
            mailbox,
        }
    }

    /// A client whose connection this lane has accepted and that has sent nothing yet.
    pub(super) fn client(&mut self) -> UnixStream {
        let (client, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        self.connections
            .accepted(&mut self.event_loop, GATE, ours.into(), PeerAddress::Unix);
        client
    }

    pub(super) fn tell(&mut self, command: Command) {
        assert!(self.mailbox.send(command));
        self.turn();
    }

    fn leave(&mut self, successor: &Lane) {
        self.tell(Command::Leave {
            plan: plan(),
            successor: successor.mailbox.clone(),
        });
    }

    pub(super) fn turn(&mut self) {
        self.event_loop.turn(&mut self.connections, 0).unwrap();
    }

    /// Serves until the lane has the command to end.
    pub(super) fn run(&mut self) {
        self.connections.run(&mut self.event_loop);
    }

    /// Whether the client's request is answered by this lane.
    fn answers(&mut self, client: &mut UnixStream) -> bool {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write_all(request).unwrap();
        self.turn();
        let mut answer = [0; 4096];
        client.set_nonblocking(true).unwrap();
        let count = client.read(&mut answer).unwrap_or(0);
        answer[..count].starts_with(b"HTTP/1.1 ")
    }
}

#[test]
fn a_draining_lane_ends_only_when_nothing_is_on_its_way_to_it() {
    let (mut leaving, mut draining) = (Lane::new(), Lane::new());
    let mut client = leaving.client();
    draining.tell(Command::Quit { successor: None });
    leaving.leave(&draining);
    assert_eq!(leaving.connections.connections(), 0);
    assert!(!draining.connections.finished(), "a letter is unread");
    draining.turn();
    assert!(draining.answers(&mut client));
    draining.turn();
    assert!(draining.connections.finished());
}

#[test]
fn a_connection_stays_where_it_is_when_its_heir_has_ended() {
    let (mut leaving, mut draining) = (Lane::new(), Lane::new());
    let mut client = leaving.client();
    draining.tell(Command::Quit { successor: None });
    assert!(draining.connections.finished());
    leaving.leave(&draining);
    assert_eq!(leaving.connections.connections(), 1);
    assert!(leaving.answers(&mut client));
}

#[test]
fn connections_that_wait_for_a_request_move_to_the_process_after() {
    let (mut before, mut after) = (Lane::new(), Lane::new());
    let (mut fresh, mut idle, mut half) = (before.client(), before.client(), before.client());
    assert!(before.answers(&mut idle));
    half.write_all(b"GET / HT").unwrap();
    before.turn();
    let (link, theirs) = link();
    let mailbox = after.mailbox.clone();
    let thread = std::thread::spawn(move || {
        let take = |moving| mailbox.send(Command::Adopt(moving));
        take_connections(theirs.as_fd(), take, |lost| {
            panic!("{lost} connections lost")
        })
    });
    before.tell(Command::Quit {
        successor: Some(link),
    });
    assert_eq!(
        before.connections.connections(),
        1,
        "a half-read head stays"
    );
    half.write_all(b"TP/1.1\r\nHost: a\r\nX: ").unwrap();
    half.write_all(b"\r\n\r\n").unwrap();
    before.turn();
    assert!(before.connections.finished());
    drop(before);
    thread.join().unwrap().unwrap();
    after.turn();
    assert_eq!(after.connections.connections(), 2);
    for client in [&mut fresh, &mut idle] {
        assert!(after.answers(client));
        assert!(after.answers(client));
    }
    let requests = |(_, slot): (u32, &Slot)| slot.parked().unwrap().connection.facts.requests;
    let mut requests: Vec<u64> = after.connections.slots.iter().map(requests).collect();
    requests.sort_unstable();
    assert_eq!(requests, [2, 3], "those before the move are counted");
}

#[test]
fn connections_stay_where_no_process_takes_them() {
    let (ours, _theirs) = descriptor::packet_pair().unwrap();
    assert!(SuccessorLink::new(ours).is_none(), "it has offered nothing");
    let (without_listen, _other_end) = link_for(&[]);
    let (with_ended_process, ended) = link();
    drop(ended);
    for successor in [without_listen, with_ended_process] {
        let mut lane = Lane::new();
        let mut client = lane.client();
        let successor = Some(successor);
        lane.tell(Command::Quit { successor });
        assert_eq!(lane.connections.connections(), 1);
        lane.connections.tick(&mut lane.event_loop);
        assert_eq!(come_due(&mut lane), 0, "only the time of a drain is given");
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn connections_wait_for_room_in_the_link_to_the_process_after() {
    let (successor, theirs) = link();
    let mut lane = Lane::new();
    let mut client = lane.client();
    while socket::send(successor.socket(), &[0; 4096], More::No).is_ok() {}
    let successor = Some(successor);
    lane.tell(Command::Quit { successor });
    lane.connections.tick(&mut lane.event_loop);
    assert_eq!(come_due(&mut lane), 1, "there is no room");
    let mut buffer = [0; 4096];
    while socket::receive(theirs.as_fd(), &mut buffer).is_ok() {}
    lane.connections.tick(&mut lane.event_loop);
    assert_eq!(lane.connections.connections(), 0);
    let mut sockets = Vec::new();
    descriptor::receive_packet_with(theirs.as_fd(), &mut buffer, &mut sockets).unwrap();
    drop(lane);
    client.write_all(b"x").unwrap();
    assert_eq!(sockets.len(), 1);
}

/// A link to a process that has the listen of these tests, and its other end.
fn link() -> (Arc<SuccessorLink>, OwnedFd) {
    link_for(&[plan().listens[0].address.clone()])
}

fn link_for(listens: &[ListenAddress]) -> (Arc<SuccessorLink>, OwnedFd) {
    let (ours, theirs) = descriptor::packet_pair().unwrap();
    offer(theirs.as_fd(), listens.iter()).unwrap();
    (Arc::new(SuccessorLink::new(ours).unwrap()), theirs)
}

/// Runs a lane until a client's only request has ended; returns what the client got.
fn ask_and_end(lane: &mut Lane) -> Vec<u8> {
    let mut client = lane.client();
    let mailbox = lane.mailbox.clone();
    let client = std::thread::spawn(move || {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write_all(request).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        mailbox.send(Command::Quit { successor: None });
        answer
    });
    lane.run();
    client.join().unwrap()
}

/// Lets the deadline of a lane's first connection pass; returns how many are left.
fn come_due(lane: &mut Lane) -> usize {
    let (_, slot) = lane.connections.slots.iter_mut().next().unwrap();
    let Slot::Parked(parked) = slot else {
        panic!("it is not parked");
    };
    parked.deadline_ms = 1;
    lane.connections.due(&mut lane.event_loop, 0);
    lane.connections.connections()
}

#[test]
fn an_answer_that_promised_to_keep_the_connection_is_held_to_it() {
    let mut lane = Lane::new();
    let mut client = lane.client();
    assert!(lane.answers(&mut client));
    // As if a future had sent that answer, and came back with the connection after the drain's
    // beginning.
    let parked = lane.connections.slots.take_parked(0).unwrap();
    let exchange = lane.connections.exchange(&parked.connection);
    let Lane {
        event_loop,
        connections,
        ..
    } = &mut lane;
    let inserted = connections.driven_slot(
        event_loop,
        Place::At(0),
        parked.connection,
        DrivenWork::None,
    );
    let (slot, connection) = inserted.unwrap();
    lane.tell(Command::Quit { successor: None });
    let return_queue = lane.connections.return_queue.clone();
    return_queue.give_back(slot, Left::Connection(connection, exchange));
    lane.turn();
    assert!(!lane.connections.finished());
    assert!(lane.answers(&mut client));
    lane.turn();
    assert!(lane.connections.finished());
}

/// An answer that fails us whatever happens.
struct Panicking(WatchedSocket);

impl Awaiting for Panicking {
    fn watched_socket(&self) -> &WatchedSocket {
        &self.0
    }
    fn deadline_ms(&self) -> u64 {
        1
    }
    fn needs_client(&self) -> bool {
        true
    }
    fn ready(self: Box<Self>, _: &mut Exchange) -> Verdict {
        panic!("on purpose")
    }
    fn timed_out(self: Box<Self>, _: &mut Exchange) -> Verdict {
        panic!("on purpose")
    }
    fn abandoned(self: Box<Self>, _: &mut Exchange) {}
    fn into_waiting(self: Box<Self>) -> Box<dyn Waiting> {
        panic!("on purpose")
    }
}

#[test]
fn a_panic_costs_its_connection_and_no_place() {
    type Event = fn(&mut Lane);
    let events: [Event; 2] = [
        |lane| {
            lane.connections
                .watched_socket_ready(&mut lane.event_loop, 0)
        },
        |lane| {
            let begun_ms = lane.event_loop.clock.now_ms();
            while lane.event_loop.clock.now_ms() <= begun_ms + 1 {
                lane.event_loop.clock.update();
            }
            lane.connections.due(&mut lane.event_loop, 0);
        },
    ];
    for happens in events {
        let mut lane = Lane::new();
        let _client = lane.client();
        let (_server, ours) = UnixStream::pair().unwrap();
        let watched_socket = lane
            .event_loop
            .watched_sockets()
            .admit(ours.as_fd())
            .unwrap();
        let connection = lane.connections.slots.take_parked(0).unwrap().connection;
        let exchange = lane.connections.exchange(&connection);
        let Lane {
            event_loop,
            connections,
            ..
        } = &mut lane;
        connections.await_answer(
            event_loop,
            Place::At(0),
            connection,
            exchange,
            Box::new(Panicking(watched_socket)),
        );
        assert_eq!(lane.connections.connections(), 1);
        happens(&mut lane);
        assert_eq!(lane.connections.connections(), 0);
        assert_eq!(lane.connections.lane.counters.panics.value(), 1);
        assert_eq!(lane.connections.lane.counters.writing.value(), 0);
    }
}

#[test]
fn a_drain_does_not_count_the_time_in_which_its_lane_was_held_up() {
    let mut lane = Lane::new();
    let _client = lane.client();
    lane.tell(Command::Quit { successor: None });
    lane.connections.ticked_ms = 0;
    assert_eq!(come_due(&mut lane), 1);
    // Not for ever: it began when the machine was started.
    let begun = std::mem::replace(
        &mut lane.connections.ending,
        Ending::Draining {
            since_ms: 0,
            successor: None,
        },
    );
    assert_eq!(come_due(&mut lane), 0);
    lane.connections.ending = begun;
    let _client = lane.client();
    lane.connections.ticked_ms = lane.event_loop.clock.now_ms();
    assert_eq!(come_due(&mut lane), 0);
}

#[test]
fn an_idle_connection_is_kept_for_its_least_time() {
    // The text of the server, whether it is closed for others, and its time in a drain.
    let cases = [
        ("", true, 0..=1_000),
        ("keepalive_min_timeout 60s;", false, 50_000..=60_000),
        (
            "keepalive_timeout 1s; keepalive_min_timeout 60s;",
            false,
            50_000..=60_000,
        ),
        (
            "keepalive_timeout 10s; keepalive_min_timeout 1ms;",
            true,
            0..=1_000,
        ),
    ];
    for (text, is_closed, time_ms) in cases {
        let text = format!("server {{ listen 127.0.0.1:80; {text} }}");
        let plan = Arc::new(testing::plan(&text).unwrap());
        let idle = || {
            let mut lane = Lane::serving(plan.clone());
            let mut client = lane.client();
            assert!(lane.answers(&mut client));
            let begun_ms = lane.event_loop.clock.now_ms();
            while lane.event_loop.clock.now_ms() <= begun_ms + 1 {
                lane.event_loop.clock.update();
            }
            (lane, client)
        };
        let (mut lane, _client) = idle();
        let (connections, event_loop) = (&mut lane.connections, &mut lane.event_loop);
        assert_eq!(connections.make_room(event_loop), is_closed, "{text}");
        let (mut lane, _client) = idle();
        // The second look must not shorten the time.
        lane.tell(Command::Quit { successor: None });
        lane.connections.hurry_waiting(&mut lane.event_loop);
        let Some(parked) = lane.connections.slots.parked(0) else {
            panic!("it is parked: {text}");
        };
        let left_ms = parked.deadline_ms - lane.event_loop.clock.now_ms();
        assert!(time_ms.contains(&left_ms), "{text}: {left_ms}");
    }
}

/// `^/(a+)+$` needs some millions of steps for this path: more than a lane takes for a request.
const HEAVY: &[u8] = b"GET /aaaaaaaaaaaaaaaaaaaab HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn others_are_served_while_a_heavy_match_is_off_the_lane() {
    let text = "server { listen 127.0.0.1:80; location ~ ^/(a+)+$ { internal; } }";
    let mut lane = Lane::serving(Arc::new(testing::plan(text).unwrap()));
    let hold = crate::regex::Hold::new();
    let (mut heavy, mut others) = (lane.client(), [lane.client(), lane.client()]);
    let mailbox = lane.mailbox.clone();
    let clients = std::thread::spawn(move || {
        let answer = |client: &mut UnixStream| {
            let mut bytes = [0; 4096];
            let count = client.read(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..count]).into_owned()
        };
        heavy.write_all(HEAVY).unwrap();
        while crate::regex::Hold::waiting() == 0 {
            std::thread::yield_now();
        }
        // It waits off the lane now, and will as long as it is held.
        for other in &mut others {
            let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
            other.write_all(request).unwrap();
            assert!(answer(other).starts_with("HTTP/1.1 403 "));
        }
        heavy.set_nonblocking(true).unwrap();
        let error = heavy.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        heavy.set_nonblocking(false).unwrap();
        drop(hold);
        assert!(answer(&mut heavy).starts_with("HTTP/1.1 404 "));
        mailbox.send(Command::Quit { successor: None });
    });
    lane.run();
    clients.join().unwrap();
}

/// Takes turns without end.
#[derive(Default)]
pub(super) struct Restless;

impl Handler for Restless {
    fn handle(&self, _: &mut Exchange) -> Verdict {
        Verdict::Wait(Box::new(Restless))
    }
}

impl Work for Restless {
    async fn run(self, _: &mut Exchange, _: Client<'_>) -> Verdict {
        loop {
            turns::take().await;
        }
    }
}

#[test]
fn a_request_that_moves_no_byte_costs_its_connection() {
    let text = "server { listen 127.0.0.1:80; }";
    let plan = testing::plan_with(&[testing::answering::<Restless>()], text).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    assert_eq!(ask_and_end(&mut lane), b"");
    assert_eq!(lane.connections.connections(), 0);
    let counters = &lane.connections.lane.counters;
    assert_eq!(counters.panics.value(), 1);
    assert_eq!(counters.closed[CloseReason::Failed as usize].value(), 1);
    assert_eq!(counters.writing.value(), 0);
}

/// A body whose first piece fails, in the turn or in a task.
struct Failing {
    is_in_turn: bool,
}

/// How many of these were ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

impl BodyStream for Failing {
    fn next<'a>(
        &'a mut self,
        _: &'a mut Exchange,
        _: Client<'a>,
        _: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async { Err(BodyFailed) })
    }
    fn ready(&mut self, _: &mut Exchange, _: &mut Vec<u8>) -> Option<Result<bool, BodyFailed>> {
        Some(Err(BodyFailed))
    }
    fn may_end_at_once(&self) -> bool {
        self.is_in_turn
    }
    fn ended(&mut self, _: &mut Exchange) {
        ENDED.fetch_add(1, Relaxed);
    }
}

impl Handler for Failing {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let is_in_turn = self.is_in_turn;
        exchange.response.set_status(200);
        let body = Body::Stream(Box::new(Failing { is_in_turn }));
        exchange.response.set_body(body);
        Verdict::Respond
    }
}

fn answer(draft: &mut LocationDraft, handler: Failing) -> Result<(), ConfError> {
    draft.add_handler(HandlerPlace::Answer, Arc::new(handler));
    Ok(())
}

#[test]
fn a_body_whose_first_piece_fails_is_ended() {
    let families: [ReadLocation; 2] = [
        |_, _, draft| answer(draft, Failing { is_in_turn: true }),
        |_, _, draft| answer(draft, Failing { is_in_turn: false }),
    ];
    for (number, location) in (1..).zip(families) {
        let family = Family {
            location,
            ..Family::NONE
        };
        let plan = testing::plan_with(&[family], "server { listen 127.0.0.1:80; }").unwrap();
        let mut lane = Lane::serving(Arc::new(plan));
        assert_eq!(ask_and_end(&mut lane), b"");
        assert_eq!(ENDED.load(Relaxed), number);
    }
}

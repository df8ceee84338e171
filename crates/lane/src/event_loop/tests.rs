//! Tests of tokens that change their socket in the middle of a turn, of timers, and of futures.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;

use super::*;
use crate::gate::AcceptMode;
use crate::sys::process::monotonic_ns;
use crate::sys::socket::Kind;
use crate::turns;

/// Stands for an accepted connection among the tokens that were ready.
const ACCEPTED: u32 = u32::MAX;

/// Closes the other socket of the first ready one, and gives its token to a third.
struct Heirloom {
    sockets: Vec<Option<UnixStream>>,
    fresh: Option<UnixStream>,
    seen: Vec<(u32, bool)>,
}

impl EventHandler for Heirloom {
    fn accepted(&mut self, _: &mut EventLoop, _: GateNumber, _: OwnedFd, _: PeerAddress) {
        self.seen.push((ACCEPTED, false));
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.seen.push((token, closed));
        let Some(fresh) = self.fresh.take() else {
            return;
        };
        let other = 1 - token;
        self.sockets[other as usize] = None;
        event_loop.watch(fresh.as_fd(), other).unwrap();
        self.sockets[other as usize] = Some(fresh);
    }

    fn watched_socket_ready(&mut self, _: &mut EventLoop, _: u32) {}
    fn due(&mut self, _: &mut EventLoop, _: u32) {}
    fn turn_ended(&mut self, _: &mut EventLoop) {}
    fn tick(&mut self, _: &mut EventLoop) {}
    fn commands(&mut self, _: &mut EventLoop) {}
    fn connections(&self) -> usize {
        2
    }
    fn driven(&self) -> usize {
        0
    }
    fn make_room(&mut self, _: &mut EventLoop) -> bool {
        false
    }
    fn accept_failed(&mut self, _: &mut EventLoop, _: GateNumber, _: &io::Error) {}
    fn finished(&self) -> bool {
        false
    }
}

fn event_loop() -> (EventLoop, Mailbox<()>) {
    let mailbox = Mailbox::new().unwrap();
    let event_loop = EventLoop::new(Rc::new(Clock::new()), mailbox.as_fd()).unwrap();
    (event_loop, mailbox)
}

#[test]
fn an_event_of_a_former_socket_is_dropped() {
    let (mut event_loop, _mailbox) = event_loop();
    let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
    let (ours, mut theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut ours = ours.into_iter();
    let mut handler = Heirloom {
        sockets: ours.by_ref().take(2).map(Some).collect(),
        fresh: ours.next(),
        seen: Vec::new(),
    };
    for (token, socket) in handler.sockets.iter().enumerate() {
        event_loop
            .watch(socket.as_ref().unwrap().as_fd(), token as u32)
            .unwrap();
    }
    for stream in &theirs[..2] {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(event_loop.turn(&mut handler, 0).unwrap(), 2);
    let [(first, true)] = handler.seen[..] else {
        panic!("{:?}", handler.seen);
    };
    // An event of the new socket is delivered.
    theirs[2].write_all(b"x").unwrap();
    assert_eq!(event_loop.turn(&mut handler, 0).unwrap(), 1);
    assert_eq!(handler.seen, [(first, true), (1 - first, false)]);
}

#[test]
fn connections_that_are_ready_come_before_new_ones() {
    let (mut event_loop, _mailbox) = event_loop();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let gate = LaneGate {
        number: GateNumber {
            owner: Owner(0),
            place: 0,
        },
        socket: Arc::new(listener.into()),
        mode: AcceptMode::Shared,
        kind: Kind::Stream,
    };
    event_loop
        .set_gates(vec![gate], AcceptSettings::default())
        .unwrap();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    event_loop.watch(ours.as_fd(), 0).unwrap();
    let mut handler = Heirloom {
        sockets: vec![Some(ours)],
        fresh: None,
        seen: Vec::new(),
    };
    // The gate is the first in the kernel's list.
    let _client = TcpStream::connect(address).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(event_loop.turn(&mut handler, 0).unwrap(), 2);
    assert_eq!(handler.seen, [(0, false), (ACCEPTED, false)]);
}

#[test]
fn a_watched_socket_gets_no_event_of_its_predecessor() {
    let (event_loop, _mailbox) = event_loop();
    let watched_sockets = event_loop.watched_sockets();
    let (before, after) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    drop(watched_sockets.admit(before.0.as_fd()).unwrap());
    let watched_socket = watched_sockets.admit(after.0.as_fd()).unwrap();
    watched_socket.awaited_by(7);
    assert_eq!(watched_sockets.event(0, true), None);
    assert!(!watched_socket.is_closed());
    event_loop.turns.set(event_loop.turns.get() + 1);
    assert_eq!(watched_sockets.event(0, true), Some(7));
    assert!(watched_socket.is_closed());
}

#[test]
fn input_without_a_waiter_is_remembered_once() {
    let (event_loop, _mailbox) = event_loop();
    let watched_sockets = event_loop.watched_sockets();
    let pair = UnixStream::pair().unwrap();
    let watched_socket = watched_sockets.admit(pair.0.as_fd()).unwrap();
    event_loop.turns.set(event_loop.turns.get() + 1);
    watched_socket.awaited_by(7);
    assert_eq!(watched_sockets.event(0, false), Some(7));
    assert!(!watched_socket.take_spoken());
    watched_socket.leave();
    assert_eq!(watched_sockets.event(0, false), None);
    assert!(watched_socket.take_spoken());
    assert!(!watched_socket.take_spoken());
}

/// Notes when its timers are due, and ends once all have been.
struct Alarms {
    driven: usize,
    told: Vec<(u64, u64)>,
    expected: usize,
}

impl EventHandler for Alarms {
    fn numbered_timer_due(&mut self, event_loop: &mut EventLoop, _: Owner, number: u64) {
        self.told.push((number, event_loop.clock.now_ms()));
    }
    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.told
            .push((u64::from(token), event_loop.clock.now_ms()));
    }
    fn finished(&self) -> bool {
        self.told.len() == self.expected
    }
    fn driven(&self) -> usize {
        self.driven
    }
    fn connections(&self) -> usize {
        1
    }
    fn accepted(&mut self, _: &mut EventLoop, _: GateNumber, _: OwnedFd, _: PeerAddress) {}
    fn ready(&mut self, _: &mut EventLoop, _: u32, _: bool) {}
    fn watched_socket_ready(&mut self, _: &mut EventLoop, _: u32) {}
    fn turn_ended(&mut self, _: &mut EventLoop) {}
    fn tick(&mut self, _: &mut EventLoop) {}
    fn commands(&mut self, _: &mut EventLoop) {}
    fn make_room(&mut self, _: &mut EventLoop) -> bool {
        false
    }
    fn accept_failed(&mut self, _: &mut EventLoop, _: GateNumber, _: &io::Error) {}
}

#[test]
fn exact_deadlines_end_the_wait_of_the_bare_loop_and_of_the_nested_one() {
    for driven in [0, 1] {
        let (mut event_loop, _mailbox) = event_loop();
        let now_ms = event_loop.clock.now_ms();
        let mut timers = Vec::new();
        for (number, after_ms) in [(0, 6), (1, 2), (2, 4), (3, 3), (4, 20)] {
            let timer = event_loop.numbered_timer(Owner(1), number).unwrap();
            event_loop.deadlines.set(&timer, now_ms + after_ms);
            timers.push(timer);
        }
        event_loop.deadlines.clear(&timers[3]);
        timers.extend(event_loop.wait_until(9, now_ms + 5));
        let mut handler = Alarms {
            driven,
            told: Vec::new(),
            expected: 5,
        };
        run::run(&mut event_loop, &mut handler, &Rc::new(Notify::new())).unwrap();
        let told: Vec<u64> = handler.told.iter().map(|(number, _)| *number).collect();
        assert_eq!(told, [1, 2, 9, 0, 4], "{driven}");
        for ((_, at_ms), after_ms) in handler.told.iter().zip([2, 4, 5, 6, 20]) {
            assert!(*at_ms >= now_ms + after_ms, "{driven}: before its time");
        }
        assert_eq!(timers.len(), 6);
        for timer in timers {
            event_loop.deadlines.remove(timer);
        }
        assert_eq!(event_loop.deadlines.timers(), 0, "{driven}");
    }
}

#[test]
fn waits_that_are_not_brief_need_no_timer() {
    let (mut event_loop, _mailbox) = event_loop();
    let now_ms = event_loop.clock.now_ms();
    assert_eq!(event_loop.wait_until(0, now_ms + BRIEF_MS_MAX + 1), None);
    let handler = Alarms {
        driven: 0,
        told: Vec::new(),
        expected: 1,
    };
    assert_eq!(event_loop.sleep_ms(&handler), TICK_MS as i32);
    let timer = event_loop.numbered_timer(Owner(1), 0).unwrap();
    assert_eq!(event_loop.sleep_ms(&handler), TICK_MS as i32);
    event_loop.deadlines.set(&timer, now_ms);
    assert_eq!(event_loop.sleep_ms(&handler), 0);
    event_loop.deadlines.remove(timer);
}

#[test]
fn a_driven_future_sees_the_current_time_when_it_resumes() {
    let clock = Rc::new(Clock::new());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (sees, sees_in) = (Rc::clone(&clock), Rc::clone(&seen));
    let future = std::future::poll_fn(move |_| {
        sees_in.borrow_mut().push(sees.now_ns());
        Poll::Pending
    });
    let mut driven = run::Watched::new(Rc::clone(&clock), Box::pin(future));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        let before_ns = clock.now_ns();
        while monotonic_ns() <= before_ns {}
        assert!(Pin::new(&mut driven).poll(&mut context).is_pending());
    }
    let seen = seen.borrow();
    assert!(seen[0] < seen[1], "{seen:?}");
    assert!(clock.now_ns() == seen[1]);
}

/// A future that takes turns without end, as many in a poll as it may. It notes what it is dropped
/// for.
fn restless(moves: bool, is_ending: Rc<Cell<Option<bool>>>) -> Driven {
    struct Noted(Rc<Cell<Option<bool>>>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.set(Some(turns::is_ending()));
        }
    }
    let noted = Noted(is_ending);
    Box::pin(async move {
        let _noted = noted;
        for _ in 0..1_200_000 {
            turns::take().await;
            if moves {
                turns::moved();
            }
        }
    })
}

#[test]
fn a_driven_future_is_ended_where_it_moves_no_byte() {
    for (moves, is_ended) in [(false, true), (true, false)] {
        let is_ending = Rc::new(Cell::new(None));
        let future = restless(moves, Rc::clone(&is_ending));
        let driven = run::Watched::new(Rc::new(Clock::new()), future);
        let other_ran = Rc::new(Cell::new(false));
        let runs = Rc::clone(&other_ran);
        let before = turns::spent_polls();
        let mut builder = Builder::new_current_thread();
        let runtime = builder.build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async {
            let driven = tokio::task::spawn_local(driven);
            tokio::task::spawn_local(async move { runs.set(true) });
            tokio::task::yield_now().await;
            assert!(other_ran.get(), "the lane was kept");
            driven.await.unwrap();
        });
        assert_eq!(is_ending.get(), Some(is_ended), "{moves}");
        assert_eq!(turns::spent_polls() > before, is_ended, "{moves}");
        assert!(!turns::is_ending());
    }
}

use std::cell::RefCell;
use std::rc::Rc;

use turnpike_lane::clock::Clock;
use turnpike_wire::h2::{Connection, ConnectionRules, PREFACE, RequestReader};
use turnpike_wire::message::HeadRules;

use super::{Lack, Need, StreamPlaces};
use crate::h2::frames::Http2Frames;
use crate::streams::shared::{Shared, Work};
use crate::streams::stream::Stream;

/// A client whose requests have bodies that may come.
struct Client {
    shared: Rc<Shared>,
    streams: Vec<Rc<Stream>>,
}

impl Client {
    /// With a request for each of `moves`: when its client has moved how many bytes, in
    /// milliseconds after its begin.
    fn with(places: &Rc<StreamPlaces>, clock: &Rc<Clock>, moves: &[(u64, usize)]) -> Client {
        let mut wire = Connection::new(ConnectionRules {
            streams_max: 128,
            stream_window: 65_535,
            head: HeadRules::default(),
        });
        let mut input = PREFACE.to_vec();
        for stream in numbers(moves.len()) {
            // HEADERS that end neither the stream nor with another frame: POST https://a/.
            input.extend_from_slice(&[0, 0, 6, 1, 4, 0, 0, 0, stream as u8]);
            input.extend_from_slice(b"\x83\x87\x84\x01\x01a");
        }
        let mut reader = RequestReader::default();
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            let step = wire.receive(rest, &mut reader, 0).expect("frames in order");
            rest = &rest[step.consumed..];
        }
        let frames = Rc::new(RefCell::new(Http2Frames::new(wire, &Rc::default())));
        let shared = Shared::new(frames, clock, places, Work::default());
        let streams = numbers(moves.len()).zip(moves).map(|(number, move_of)| {
            let stream = Stream::new(number, &shared, false, false);
            shared.begin(&stream);
            let (moved_ms, bytes) = *move_of;
            stream.traffic.moved(bytes, clock.now_ms() + moved_ms);
            stream
        });
        let streams = streams.collect();
        Client { shared, streams }
    }

    /// The requests that have given way.
    fn gave_way(&self) -> Vec<u64> {
        let gave_way = self.streams.iter().filter(|one| one.gives_way_to_others());
        gave_way.map(|stream| stream.id).collect()
    }

    fn end(&self) {
        self.streams
            .iter()
            .for_each(|stream| self.shared.ended(stream));
    }
}

/// The numbers of the first streams of a client.
fn numbers(count: usize) -> impl Iterator<Item = u64> {
    (0..count).map(|at| 2 * at as u64 + 1)
}

/// A quarter of the default of `send_timeout`.
const LATER_MS: u64 = 15_000;

#[test]
fn stalled_requests_give_way_before_slow_ones_and_those_that_move_never() {
    let (places, clock) = (Rc::<StreamPlaces>::default(), Rc::new(Clock::new()));
    let now_ms = clock.now_ms() + LATER_MS;
    let still = (0, 0);
    let (just_now, at_speed) = ((14_000, 1), (14_000, 1_000_000));
    let clients = [
        Client::with(&places, &clock, &[still, just_now, still, still]),
        Client::with(&places, &clock, &[still, still]),
        Client::with(&places, &clock, &[just_now, just_now, at_speed]),
        Client::with(&places, &clock, &[still]),
        Client::with(&places, &clock, &[at_speed; 5]),
    ];
    let rounds: &[(bool, [&[u64]; 5])] = &[
        (true, [&[1, 5, 7], &[], &[], &[], &[]]),
        (true, [&[1, 5, 7], &[1, 3], &[], &[], &[]]),
        // No client stands still any more that has more than one request.
        (true, [&[1, 5, 7], &[1, 3], &[1, 3], &[], &[]]),
        (false, [&[1, 5, 7], &[1, 3], &[1, 3], &[], &[]]),
    ];
    for (has_made_room, gave_way) in rounds {
        assert_eq!(places.make_room(Need::Place, now_ms), *has_made_room);
        assert_eq!(clients.each_ref().map(Client::gave_way), *gave_way);
    }
    assert_eq!(
        places.take_lack(Need::Place),
        Lack {
            closed_stalled: 5,
            closed_slow: 2,
            refused: 0,
        }
    );
    clients.iter().for_each(Client::end);
}

#[test]
fn the_first_request_of_a_connection_needs_no_place() {
    let (places, clock) = (Rc::<StreamPlaces>::default(), Rc::new(Clock::new()));
    let clients = [17, 1, 1].map(|count| Client::with(&places, &clock, &vec![(0, 0); count]));
    let has_place = |client: &Client| client.shared.has_place(1);
    // One of `worker_connections` has 16 places.
    assert_eq!(
        clients.each_ref().map(has_place),
        [false, false, false],
        "all have a request, and no place is left"
    );
    let fourth = Client::with(&places, &clock, &[]);
    assert!(fourth.shared.has_place(1));
    let [first, second, third] = &clients;
    first.shared.ended(&first.streams[16]);
    assert!(has_place(second));
    second.end();
    third.end();
    assert_eq!(places.busy_connections(), 1);
    first.end();
    assert_eq!(places.busy_connections(), 0);
    assert_eq!(places.take_lack(Need::Place).refused, 3);
}

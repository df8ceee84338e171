//! Lanes keep their numbers, and show what they did last.

use super::*;

#[test]
fn a_lane_that_comes_again_counts_on() {
    let all = AllCounters::default();
    let (first, second) = (all.add_lane(0), all.add_lane(1));
    second.requests.add();
    drop(second);
    let again = all.add_lane(1);
    assert_eq!((again.requests.value(), all.lanes().len()), (1, 2));
    // One that is still finishing writes its own.
    let beside = all.add_lane(1);
    beside.requests.add();
    first.requests.add();
    assert_eq!(all.total(|lane| &lane.requests), 3);
    let numbers: Vec<usize> = all.numbered().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 1]);
}

#[test]
fn the_last_request_is_told_by_its_first_line() {
    let doing = Doing::default();
    assert_eq!(doing.read(), None);
    let long = [b"GET /", &[b'x'; 200][..]].concat();
    let cases: [(&[u8], &[u8]); 4] = [
        (&long, &long[..NOTED_BYTES]),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1"),
        (b"GET /12345678 H", b"GET /12345678 H"),
        (b"", b""),
    ];
    for (number, (head, line)) in (1..).zip(cases) {
        doing.note(number, head);
        assert_eq!(doing.read(), Some((number, line.to_vec())));
    }
}

//! What the matches of a request share.

#![allow(clippy::unwrap_used)]

use crate::engine::Outcome;
use crate::testing;

#[test]
fn patterns_of_one_request_share_its_allowance() {
    let subject = [b"/0123456789".to_vec(), b"ab/".repeat(200)].concat();
    let mut locations = String::new();
    for number in 0..50 {
        // What the automaton cannot rule out.
        locations += &format!("location ~ \"(.*)/(.*)/(.*)/(?={number})\" {{ }}\n");
    }
    let plan = testing::plan(&format!("server {{ listen 127.0.0.1:80; {locations} }}")).unwrap();
    let request = [
        b"GET ".as_slice(),
        &subject,
        b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ]
    .concat();
    let mut exchange = testing::exchange(plan, &request);
    *exchange.walk.path_mut() = subject;
    let outcome = exchange.run();
    assert!(matches!(outcome, Outcome::Wait(_)), "the lane goes on");
    assert_eq!(exchange.evaluation.turn().borrow().allowance.steps, 0);
}

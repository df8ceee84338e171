//! The pool of exchanges holds no more than it may.

#![allow(clippy::unwrap_used)]

use super::POOL_BYTES_MAX;
use crate::testing;

#[test]
fn exchanges_are_kept_up_to_a_number_of_bytes() {
    let plan = testing::plan_with(&[], "server { listen 127.0.0.1:1; }").unwrap();
    let exchange = testing::exchange(plan, b"");
    let (lane, plan, client) = (
        &exchange.lane,
        &exchange.plan,
        exchange.requester.connection(),
    );
    lane.use_plan(plan);
    const BUFFER_BYTES: usize = 32 * 1024;
    let many = POOL_BYTES_MAX / BUFFER_BYTES + 1;
    let mut all: Vec<_> = (0..many).map(|_| lane.exchange(plan, client)).collect();
    for exchange in &mut all {
        exchange.sending.output().reserve_exact(BUFFER_BYTES);
        exchange.rooms.hold(1_u8);
    }
    for exchange in all {
        lane.recycle(exchange);
    }
    let kept = lane.buffers.exchanges.borrow().idle.len();
    assert!(kept < many && kept > many / 2, "{kept} of {many}");
    assert!(lane.buffers.exchanges.borrow().bytes <= POOL_BYTES_MAX);
    // What comes back is clear, and its room is still there.
    let mut again = lane.exchange(plan, client);
    assert!(again.sending.output().is_empty() && again.rooms.take_held::<u8>().is_none());
    assert!(again.sending.output().capacity() >= BUFFER_BYTES);
}

#[test]
fn what_spare_boxes_and_matches_hold_counts_or_is_let_go() {
    let plan = testing::plan_with(&[], "server { listen 127.0.0.1:1; }").unwrap();
    let exchange = testing::exchange(plan, b"");
    let (lane, plan) = (&exchange.lane, &exchange.plan);
    lane.use_plan(plan);
    let mut other = lane.exchange(plan, exchange.requester.connection());
    const HELD_BYTES: usize = 1 << 20;
    other.rooms.keep_spare(Box::new(1_u8), HELD_BYTES);
    let subject = vec![b'x'; HELD_BYTES];
    let captures = other.evaluation.captures();
    captures.borrow_mut().set(&subject, &[Some((0, 1))]);
    lane.recycle(other);
    let kept_bytes = lane.buffers.exchanges.borrow().bytes;
    let expected = HELD_BYTES..HELD_BYTES + HELD_BYTES / 2;
    assert!(expected.contains(&kept_bytes), "{kept_bytes}");
}

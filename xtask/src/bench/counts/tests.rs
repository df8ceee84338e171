//! How calls are shown.

use super::{Calls, Mode};

#[test]
fn waiting_is_counted_separately() {
    let by_name = [
        ("accept4", 1.0),
        ("epoll_wait", 0.5),
        ("recvfrom", 1.25),
        ("brk", 0.001),
    ];
    let by_name = by_name.map(|(name, calls)| (name.to_owned(), calls)).into();
    let calls = Calls {
        server: "x".to_owned(),
        mode: Mode::KeepAlive,
        by_name,
    };
    assert_eq!((calls.working(), calls.waiting()), (2.251, 0.5));
    assert_eq!(calls.names(), "recvfrom 1.25, accept4");
}

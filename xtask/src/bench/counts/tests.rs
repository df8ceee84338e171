//! strace's table, and how calls are shown.

use super::{ACCEPTED_NOBODY, Calls, Mode, counts};

#[test]
fn the_table_is_read() {
    let table = "\
    calls    errors syscall
--------- --------- ----------------
     2010        10 accept4
     2000           close
       30           epoll_wait
--------- --------- ----------------
     4040        10 total
";
    let counts: Vec<(String, u64)> = counts(table).into_iter().collect();
    let expected = [
        ("accept4", 2000),
        (ACCEPTED_NOBODY, 10),
        ("close", 2000),
        ("epoll_wait", 30),
    ];
    assert_eq!(
        counts,
        expected.map(|(name, calls)| (name.to_owned(), calls))
    );
}

#[test]
fn waiting_is_told_apart() {
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

//! strace's table.

use super::{ACCEPTED_NOBODY, counts};

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

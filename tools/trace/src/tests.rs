//! strace's table, and a program from its start to its end.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::{ACCEPTED_NOBODY, counts, run};

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
fn a_program_is_counted_from_its_start() {
    let report = std::env::temp_dir().join(format!("turnpike-trace-{}", std::process::id()));
    let arguments = ["-c", "echo said; exit 3"].map(str::to_owned);
    let (output, counts) = run(Path::new("sh"), &arguments, &report).unwrap();
    std::fs::remove_file(&report).unwrap();
    assert_eq!(output.stdout, b"said\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(counts.get("execve"), Some(&1));
}

use super::{FailedSuite, PANIC_LINES_MAX, PANICS_MAX};

const STDOUT: &str = "
running 3 tests
test a::fits ... ok
test a::breaks ... FAILED
test b::differs ... FAILED

failures:

---- a::breaks stdout ----

thread 'a::breaks' (21247) panicked at crates/a/src/tests.rs:79:60:
called `Result::unwrap()` on an `Err` value: Os { code: 32 }
stack backtrace:
   0: __rustc::rust_begin_unwind

---- b::differs stdout ----

thread 'b::differs' (21248) panicked at crates/b/src/tests.rs:1:2:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    a::breaks
    b::differs

test result: FAILED. 1 passed; 2 failed; 0 ignored
";

#[test]
fn failed_tests_and_their_panics_are_found() {
    let stderr = "a server's line\nthread 'helper' (3) panicked at origin.rs:1:1:\nno port\n";
    let failed = FailedSuite::new("crates/a suite", "exit status: 101", STDOUT, stderr);
    assert_eq!(failed.title, "crates/a suite: a::breaks, b::differs");
    let expected = [
        "thread 'a::breaks' (21247) panicked at crates/a/src/tests.rs:79:60:\n\
         called `Result::unwrap()` on an `Err` value: Os { code: 32 }",
        "thread 'b::differs' (21248) panicked at crates/b/src/tests.rs:1:2:\n\
         assertion `left == right` failed\n  left: 1\n right: 2",
        "thread 'helper' (3) panicked at origin.rs:1:1:\nno port",
    ];
    assert_eq!(failed.panics, expected);
}

#[test]
fn a_suite_that_was_killed_shows_how() {
    let failed = FailedSuite::new("a suite", "signal: 9 (SIGKILL)", "\nrunning 3 tests\n", "");
    assert_eq!(
        failed.title,
        "a suite: no test by name (signal: 9 (SIGKILL))"
    );
    assert_eq!(failed.panics, [""; 0]);
}

#[test]
fn many_and_long_panics_are_limited() {
    let one = format!(
        "thread 'a' (1) panicked at a.rs:1:1:\n{}\n",
        "x\n".repeat(50)
    );
    let failed = FailedSuite::new("a suite", "", &one.repeat(50), &one.repeat(50));
    assert_eq!(failed.panics.len(), PANICS_MAX);
    let longest = failed
        .panics
        .iter()
        .map(|panic| panic.lines().count())
        .max();
    assert_eq!(longest, Some(PANIC_LINES_MAX));
}

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};
use std::time::Duration;

use super::{Report, passed};

#[test]
fn the_harness_result_is_read() {
    let cases = [
        ("\ntest result: ok. 12 passed; 0 failed; 0 ignored\n", 12),
        (
            "test a ... FAILED\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n",
            3,
        ),
        ("nothing", 0),
    ];
    for (stdout, expected) in cases {
        assert_eq!(passed(stdout), expected, "{stdout}");
    }
}

#[test]
fn skipped_tests_are_no_passed_ones() {
    let mut report = Report::default();
    let output = Output {
        status: ExitStatus::from_raw(0),
        stdout: b"test result: ok. 5 passed; 0 failed\n".to_vec(),
        stderr: b"skipped: a_test needs root (CAP_SYS_ADMIN)\nother\n".to_vec(),
    };
    report.add("a suite", &output, Duration::ZERO);
    assert_eq!(
        (report.passed, report.skipped, report.failed.len()),
        (4, 1, 0)
    );
    let failing = Output {
        status: ExitStatus::from_raw(101 << 8),
        ..output
    };
    report.add("a suite", &failing, Duration::ZERO);
    assert_eq!(report.failed.len(), 1);
}

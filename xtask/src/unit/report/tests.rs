use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::super::job::Ended;
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

fn ended(group: &str, status: Result<i32, &str>) -> Ended {
    Ended {
        group: group.to_owned(),
        name: format!("{group}::a_test"),
        status: status.map(ExitStatus::from_raw).map_err(str::to_owned),
        stdout: "test result: ok. 5 passed; 0 failed\n".to_owned(),
        stderr: "skipped: a_test needs root (CAP_SYS_ADMIN)\nother\n".to_owned(),
        time: Duration::ZERO,
    }
}

#[test]
fn skipped_tests_are_no_passed_ones() {
    let mut report = Report::default();
    report.add(ended("a suite", Ok(0)));
    assert_eq!(
        (report.passed, report.skipped, report.failed.len()),
        (4, 1, 0)
    );
    report.add(ended("a suite", Ok(101 << 8)));
    assert_eq!(report.failed.len(), 1);
}

#[test]
fn a_job_that_took_too_long_has_failed() {
    let mut report = Report::default();
    report.add(ended("a suite", Err("it was ended after 300 s")));
    let expected = "a suite::a_test: no test by name (it was ended after 300 s)";
    assert_eq!(report.failed[0].title, expected);
}

#[test]
fn a_group_counts_when_its_last_job_has_ended() {
    let mut report = Report::default();
    report.expect(["it dav", "it dav"].into_iter().map(str::to_owned));
    report.add(ended("it dav", Ok(0)));
    assert_eq!((report.passed, report.open.len()), (0, 1));
    report.add(ended("it dav", Ok(0)));
    assert_eq!((report.passed, report.open.len()), (8, 0));
}

//! A container's interface for minutes: clients are served while the program comes and goes,
//! whether the driver passes its answers on or drops them.

use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::Signal;

use super::{configuration, hits, with_mode};
use crate::support::express::{join, under_load};
use crate::support::memory::anonymous_bytes;
use crate::support::wait_for;

/// How long the long run goes on, unless `TURNPIKE_TEST_SECONDS` says otherwise.
const SECONDS: u64 = 180;

/// The time between two reloads: each attaches the program anew, which has to prove itself again.
const TURN: Duration = Duration::from_secs(3);

/// Bytes above what a server held before that may stay.
const LEFT_BYTES_MAX: u64 = 10 << 20;

/// Words about where the program runs, and the line that names the driver that drops its answers.
const MODES: &[(&str, Option<&str>)] = &[
    ("", None),
    (
        "express_mode native;",
        Some("the express lane has answered in the driver, and no answer arrives"),
    ),
];

#[test]
#[ignore = "three minutes: in make test-long"]
fn clients_of_a_container_are_served_for_minutes() {
    let Some(network) = join("clients_of_a_container_are_served_for_minutes") else {
        return;
    };
    let seconds = std::env::var("TURNPIKE_TEST_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    for (mode, alert) in MODES {
        let mut server = with_mode(mode);
        let text = |express: &str| {
            let text = configuration(express).replace("express_mode generic;", mode);
            format!("error_log %FOLDER%/error.log notice; {text}")
        };
        let process = u64::from(server.serving_pids()[0]);
        let rest_bytes = anonymous_bytes(process);
        let end = Instant::now() + Duration::from_secs(seconds) / MODES.len() as u32;
        let mut requests = 0;
        let failures = under_load(&network, server.port(), |asked| {
            for express in ["off", "on"].into_iter().cycle() {
                if Instant::now() >= end {
                    break;
                }
                thread::sleep(TURN);
                server.write_configuration(&text(express));
                server.signal(Signal::SIGHUP);
            }
            requests = asked.load(std::sync::atomic::Ordering::Relaxed);
        });
        let left_bytes = || anonymous_bytes(process).saturating_sub(rest_bytes);
        let log = server.log("error.log");
        println!(
            "mode \"{mode}\": {requests} requests, {} failed, {} answers of the driver, {} alerts, \
             {} KiB left",
            failures.len(),
            hits(&server),
            log.matches("[alert]").count(),
            left_bytes() / 1024
        );
        assert_eq!(failures, Vec::<String>::new());
        assert_eq!(server.serving_pids(), [process as u32], "{log}");
        wait_for("the memory of before", || left_bytes() <= LEFT_BYTES_MAX);
        match alert {
            Some(alert) => assert!(log.contains(alert), "{log}"),
            None => assert!(!log.contains("[alert]"), "{log}"),
        }
    }
}

//! What the program takes for each kind of segment of a connection.

use std::time::Duration;

use super::frame::{ACK, FIN, Frame, LINUX_OPTIONS};
use super::{DROP, PASS, REQUEST, TRANSMIT, driver};

/// How often a segment is run: of the times, the least is least disturbed by others.
const RUNS: usize = 20_000;

#[test]
#[ignore = "prints times, for who changes the program"]
fn times_of_segments_are_printed() {
    let Some(driver) = driver("times_of_segments_are_printed") else {
        return;
    };
    let syn = Frame::syn_v4().with_options(&LINUX_OPTIONS);
    let gate = "10.0.0.1:80".parse().unwrap();
    driver.publish(gate, "10.9.0.1:8080", "/600.html", &[b'x'; 850]);
    let first = driver.connect(syn.clone());
    let padded = format!(
        "GET /600.html HTTP/1.1\r\nHost: 10.9.0.1:8080\r\nConnection: close\r\nX-Pad: {}\r\n\r\n",
        "p".repeat(760)
    );
    let request = first.with_text(&padded);
    let (verdict, answer) = driver.run(&request);
    assert_eq!(verdict, TRANSMIT);
    let last = request.after(&answer);
    for (name, frame, expected) in [
        ("a segment of others", syn.clone().with_port(81), PASS),
        ("SYN", syn, TRANSMIT),
        ("ACK", first.clone(), DROP),
        ("request", first.with_text(REQUEST), TRANSMIT),
        ("padded request", request.clone(), TRANSMIT),
        ("ACK of the answer", last.clone(), DROP),
        ("FIN", last.with_flags(FIN | ACK), TRANSMIT),
        // Behind it, a FIN would be passed on for a while.
        (
            "a miss",
            first.with_text(&padded.replace("600", "601")),
            PASS,
        ),
    ] {
        let bytes = frame.bytes();
        let runs = (0..RUNS).map(|_| {
            let (verdict, took) = driver.program.time_on(&bytes);
            assert_eq!(verdict, expected, "{name}");
            took
        });
        let least: Duration = runs.min().unwrap_or_default();
        eprintln!("{name}: {} ns", least.as_nanos());
    }
}

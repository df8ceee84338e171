use super::*;

/// A tally whose figures are known.
fn tally() -> Tally {
    let mut tally = Tally::default();
    for _ in 0..900 {
        tally.latency.record(500_000);
    }
    for _ in 0..100 {
        tally.latency.record(64_000_000);
    }
    tally.rates.record(56_200);
    tally.rates.record(56_200);
    tally.completed = 1000;
    tally.bytes = 2 * 1024 * 1024;
    tally
}

#[test]
fn the_text_is_that_of_wrk() {
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.85ms   19.06ms  64.00ms   90.00%
    Req/Sec    56.20k     0.00    56.20k   100.00%
  Latency Distribution
     50%  500.00us
     75%  500.00us
     90%  500.00us
     99%   64.00ms
  1000 requests in 10.00s, 2.00MB read
Requests/sec:    100.00
Transfer/sec:    204.80KB
";
    let text = wrk_body(&tally(), 10.0, &PERCENTILES);
    assert_eq!(text, expected);
}

#[test]
fn errors_are_summed_as_wrk_does_and_then_told_apart() {
    let mut tally = tally();
    tally.errors.count(ErrorKind::Refused);
    tally.errors.count(ErrorKind::ResetIdle);
    tally.errors.count(ErrorKind::ResetInQueue);
    tally.errors.count(ErrorKind::Timeout);
    tally.errors.count(ErrorKind::BadStatus);
    tally.count_status(404);
    let mut text = wrk_body(&tally, 10.0, &[]);
    errors(&mut text, &tally);
    assert!(
        text.contains("  Socket errors: connect 1, read 2, write 0, timeout 1\n"),
        "{text}"
    );
    assert!(text.contains("  Non-2xx or 3xx responses: 1\n"), "{text}");
    let kinds =
        "Errors by kind: refused 1, reset_in_queue 1, reset_idle 1, timeout 1, bad_status 1\n";
    assert!(text.ends_with(kinds), "{text}");
}

//! Tests with real reports of the clients.
#![allow(clippy::unwrap_used)]

use super::{Latency, Load, parse_ab, parse_wrk};

const WRK: &str = "\
Running 1s test @ http://127.0.0.1:38123/nope
  2 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.49ms  640.00us  18.21ms   86.25%
    Req/Sec     0.93k   262.50     1.31k    40.00%
  Latency Distribution
     50%    1.64ms
     75%    2.55ms
     90%    5.36ms
     99%    1.34s
  1851 requests in 1.00s, 0.92MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:   1846.48
Transfer/sec:      0.92MB
";

const AB: &str = "\
Complete requests:      30
Failed requests:        10
   (Connect: 1, Receive: 2, Length: 3, Exceptions: 4)
Write errors:           6
Non-2xx responses:      7
Requests per second:    1854.03 [#/sec] (mean)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.4      0       2
Total:          0    1   1.3      1       7

  50%      1
  99%      7
 100%      7 (longest request)
";

#[test]
fn wrk_is_read() {
    let expected = Load {
        requests: 1851,
        not_2xx: 5,
        connect_errors: 1,
        read_errors: 2,
        write_errors: 3,
        timeouts: 4,
        length_errors: 0,
        requests_per_second: 1846.48,
        latency: Latency {
            mean_us: 2490.0,
            stdev_us: 640.0,
            p50_us: 1640.0,
            p99_us: 1.34e6,
        },
    };
    assert_eq!(parse_wrk(WRK), Some(expected));
    assert_eq!(parse_wrk("unable to connect"), None);
}

#[test]
fn ab_is_read() {
    let load = parse_ab(AB).unwrap();
    assert_eq!(
        (load.requests, load.failed(), load.read_errors),
        (30, 23, 6)
    );
    assert_eq!(
        (load.latency.mean_us, load.latency.p99_us),
        (1000.0, 7000.0)
    );
    assert_eq!(load.requests_per_second, 1854.03);
}

#[test]
fn reports_without_errors_have_no_counts() {
    let quiet: String = WRK
        .lines()
        .filter(|line| !line.contains("errors:"))
        .fold(String::new(), |text, line| {
            text + &line.replace("Non-2xx", "").replace("3xx responses", "") + "\n"
        });
    assert_eq!(parse_wrk(&quiet).unwrap().failed(), 0);
}

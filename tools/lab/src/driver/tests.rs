#![allow(clippy::unwrap_used)]

use super::*;

const WRK: &str = "Running 2s test @ http://127.0.0.1:8080/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   612.34us    1.20ms  20.99ms   95.17%
    Req/Sec    12.07k     1.62k   16.31k    72.50%
  Latency Distribution
     50%  344.00us
     75%  512.00us
     90%    1.10ms
     99%    6.21ms
  48155 requests in 2.00s, 39.40MB read
  Socket errors: connect 1, read 2, write 0, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:  24062.78
Transfer/sec:     19.69MB
";

const AB: &str = "Concurrency Level:      100
Complete requests:      9012
Failed requests:        3
Non-2xx responses:      2
Requests per second:    4506.10 [#/sec] (mean)
Time per request:       22.192 [ms] (mean)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    1   0.9      1       9
Processing:     1   21   4.4     20      60
Total:          2   22   4.5     21      61

Percentage of the requests served within a certain time (ms)
  50%     21
  66%     22
  75%     23
  90%     27
  99%     40
 100%     61 (longest request)
";

fn value(reading: &Reading, name: &str) -> f64 {
    reading.figures[name].value().unwrap()
}

#[test]
fn wrk_is_understood() {
    let reading = wrk::read(WRK).unwrap();
    assert_eq!(value(&reading, "requests_per_s"), 24062.78);
    assert_eq!(value(&reading, "latency_mean_us"), 612.34);
    assert_eq!(value(&reading, "latency_stdev_us"), 1200.0);
    assert_eq!(value(&reading, "latency_p99_us"), 6210.0);
    assert_eq!(value(&reading, "errors"), 12.0);
    assert_eq!(reading.distribution.len(), 4);
    assert_eq!(reading.limited, None);
    assert!(wrk::read("unable to connect").is_err());
}

#[test]
fn ab_is_understood() {
    let reading = ab::read(AB).unwrap();
    assert_eq!(value(&reading, "requests_per_s"), 4506.1);
    assert_eq!(value(&reading, "latency_mean_us"), 22_000.0);
    assert_eq!(value(&reading, "latency_p50_us"), 21_000.0);
    assert_eq!(value(&reading, "latency_p99_us"), 40_000.0);
    assert_eq!(value(&reading, "errors"), 5.0);
    assert!(ab::read("apr_socket_connect(): refused").is_err());
}

#[test]
fn a_command_prints_metrics() {
    let reading = command::read("requests_per_s 12.5\nclient_limited 1\n\nerrors 0\n").unwrap();
    assert_eq!(value(&reading, "requests_per_s"), 12.5);
    assert_eq!(
        reading.limited,
        Some(Some("the driver reported it".to_owned()))
    );
    let cases = [
        ("", "it printed no figures"),
        ("requests_per_s", "cannot read the line \"requests_per_s\""),
        ("speed 3", "unknown metric \"speed\""),
    ];
    for (output, error) in cases {
        assert_eq!(command::read(output).unwrap_err(), error);
    }
}

#[test]
fn whole_seconds_are_never_zero() {
    assert_eq!(whole_seconds(0.2), "1");
    assert_eq!(whole_seconds(2.0), "2");
    assert_eq!(whole_seconds(2.1), "3");
}

//! The command line, as it was written.
//!
//! One set of options understands the lines of wrk, of the modified wrk of study S1, of ab and of
//! inject. What the options mean together is decided in `plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};

use crate::mix::Connreqs;
use crate::source::SourceRange;
use crate::threshold::{self, Threshold, percent};
use crate::units::{parse_metric, parse_rate, parse_time};

/// Sends load to HTTP servers and measures them. It has wrk's options and output, requests per
/// connection, open loops with correct latency, and histograms that can be merged.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "turnpike load",
    disable_version_flag = true,
    max_term_width = 100,
    args_override_self = true,
    after_help = "Counts take k, M, G; times take us, ms, s, m, h (seconds without a unit).\n\
        -R is wrk2's --rate; -z, -q and -m are oha's --duration, --rate and --method.\n\
        `turnpike load merge FILE...` adds up HdrHistogram logs written by --hdr.\n\
        `turnpike load compare A B` compares two reports written by --json=FILE."
)]
pub(crate) struct Options {
    /// Where to send requests: [http://]HOST[:PORT]/PATH, https://..., unix:/SOCKET:/PATH
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// Number of connections to keep open [10]
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    pub(crate) connections: Option<u64>,
    /// Number of threads, each with its own event loop [2]
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    pub(crate) threads: Option<u64>,
    /// Duration of the test [10s, or until --requests are done]
    #[arg(short, long, short_alias = 'z', value_name = "T", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,
    /// Stop after this many requests (like ab)
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_positive_count)]
    pub(crate) requests: Option<u64>,
    /// Number of users; each uses one connection at a time, a new one per request (like inject)
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    #[arg(conflicts_with = "connections")]
    pub(crate) users: Option<u64>,
    /// Start this many users or connections per second instead of all at once (like inject)
    #[arg(short = 's', long, value_name = "N", value_parser = parse_start_rate)]
    pub(crate) start_rate: Option<f64>,
    /// Exclude the first T from the results
    #[arg(long, value_name = "T", value_parser = parse_time)]
    pub(crate) warmup: Option<Duration>,
    /// Timeout of a connection attempt and of a request [2s]
    #[arg(short = 'T', long, value_name = "T", value_parser = parse_timeout)]
    pub(crate) timeout: Option<Duration>,

    /// Requests per connection, then reconnect: N, FIRST-LAST, or N:WEIGHT,N:WEIGHT,...
    #[arg(short = 'C', long, value_name = "N")]
    pub(crate) connreqs: Option<Connreqs>,
    /// Open loop: start N requests per second in all; latency counts from the intended start
    #[arg(short = 'R', long, short_alias = 'q', value_name = "N", value_parser = parse_rate)]
    #[arg(conflicts_with_all = ["connrate", "pipeline"])]
    pub(crate) rate: Option<f64>,
    /// Open loop: open N connections per second, each with --connreqs requests [1]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub(crate) connrate: Option<f64>,
    /// Spacing of the arrivals in an open loop
    #[arg(long, value_enum, default_value_t = ArrivalName::Constant)]
    pub(crate) arrival: ArrivalName,
    /// Number of requests to send on a connection before waiting for their answers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) pipeline: u16,
    /// Speak HTTP/2: over TLS by ALPN, without TLS by prior knowledge
    #[arg(long, conflicts_with = "pipeline", group = "multiplexed")]
    pub(crate) h2: bool,
    /// Speak HTTP/3, to https URLs
    #[arg(long, group = "multiplexed")]
    #[arg(conflicts_with_all = ["pipeline", "unix", "fastopen", "linger0", "delay"])]
    pub(crate) h3: bool,
    /// Number of concurrent requests on each HTTP/2 or HTTP/3 connection, at most
    #[arg(long, value_name = "N", default_value_t = 1, requires = "multiplexed")]
    pub(crate) streams: u16,
    /// Make TLS connections and close them without a request
    #[arg(long, conflicts_with_all = ["h2", "h3", "pipeline", "connreqs", "body"])]
    pub(crate) connect_only: bool,
    /// Ask the server to close the connection after each answer
    #[arg(long)]
    pub(crate) no_keepalive: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Add a header to the requests
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Method of the requests [GET, or POST with --body]
    #[arg(short = 'X', long, short_alias = 'm', value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Send this file as the body (-p like ab)
    #[arg(short = 'p', long, value_name = "FILE")]
    pub(crate) body: Option<PathBuf>,
    /// Use basic authentication
    #[arg(short = 'A', long, value_name = "USER:PASSWORD")]
    pub(crate) auth: Option<String>,
    /// Write N variants of each request with the {{...}} templates filled in, and draw from them
    #[arg(long, value_name = "N", value_parser = parse_positive_count)]
    pub(crate) variants: Option<u64>,
    /// Read URLs from a file of `URL [WEIGHT]` lines
    #[arg(long, value_name = "FILE")]
    pub(crate) urls_from: Option<PathBuf>,
    /// Read an inject page file: `new NAME THINK_MS`, `get HOST:PORT URI`
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) pages: Option<PathBuf>,

    /// Keep Nagle's algorithm enabled
    #[arg(short = 'N', long)]
    pub(crate) delay: bool,
    /// Source addresses and ports: FIRST[-LAST][:PORT-PORT]; may be repeated
    #[arg(short = 'S', long = "source", value_name = "RANGE")]
    pub(crate) sources: Vec<SourceRange>,
    /// Connect to this unix socket instead of the URL's host
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// Use TCP Fast Open: send data with the SYN when a cookie is known
    #[arg(long)]
    pub(crate) fastopen: bool,
    /// Close connections with a reset, so that none stays in TIME_WAIT
    #[arg(long)]
    pub(crate) linger0: bool,
    /// Pin each thread to a CPU, in the order of the list if given
    #[arg(short = 'B', long, value_name = "CPUS", num_args = 0..=1, require_equals = true)]
    pub(crate) bindcpu: Option<Option<String>>,

    /// Percentage of TLS connections that may resume a session
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    pub(crate) tls_resume: f64,
    /// Percentage of the HTTP/3 connections that may resume whose first requests are sent before
    /// the handshake is done (0-RTT), where the server allows it
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, requires = "h3")]
    pub(crate) early_data: f64,
    /// Accept any certificate (ab's -k, keep-alive, is always on here)
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Server name to ask for instead of the URL's host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// Application protocols to offer, separated by commas [http/1.1, h2 or h3]
    #[arg(long, value_name = "NAMES")]
    pub(crate) alpn: Option<String>,

    /// Count every answer with another status as an error
    #[arg(long, value_name = "CODE")]
    pub(crate) expect_status: Option<u16>,
    /// Count every answer whose body is not this file as an error
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_body: Option<PathBuf>,
    /// Exit with status 0 if there are at most N errors
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_metric)]
    pub(crate) max_errors: u64,

    /// Print the latency distribution
    #[arg(short = 'L', long)]
    pub(crate) latency: bool,
    /// Print these percentiles of the latency instead of wrk's [50,75,90,99]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = percent)]
    pub(crate) percentiles: Vec<f64>,
    /// Print a latency histogram
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Exit with status 4 if this holds: 'p99>20ms', 'rate<1000'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = threshold::parse)]
    pub(crate) fail_if: Vec<Threshold>,
    /// Also print the parts of a transaction, client CPU, ports and memory
    #[arg(long)]
    pub(crate) detail: bool,
    /// Write the results as JSON to FILE, or to standard output instead of the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) json: Option<Option<PathBuf>>,
    /// Write the figures as two lines of CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the results as a page with pictures
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,
    /// Write each failed request: start, end (microseconds since 1970) and kind of error
    #[arg(long, value_name = "FILE")]
    pub(crate) failures: Option<PathBuf>,
    /// Show rate, percentiles, errors and connections while the test runs
    #[arg(long)]
    pub(crate) live: bool,
    /// Do not show a progress bar
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the version
    #[arg(short, long)]
    pub(crate) version: bool,

    /// ab's: continue after socket errors (always on here)
    #[arg(short = 'r', hide = true, action = ArgAction::SetTrue)]
    pub(crate) go_on: bool,
    /// inject's, without effect here
    #[arg(short = 'b', hide = true, action = ArgAction::SetTrue)]
    pub(crate) inject_b: bool,
}

/// A time that something can happen in.
fn parse_positive_time(text: &str) -> Result<Duration, String> {
    match parse_time(text) {
        Ok(time) if time.is_zero() => Err("it must be longer than 0".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// ab's `-T` is the type of the body, wrk's a time.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    if text.contains('/') {
        Err(format!(
            "-T is the timeout here; send ab's type of the body as -H 'Content-Type: {text}'"
        ))
    } else {
        parse_positive_time(text)
    }
}

fn parse_positive_count(text: &str) -> Result<u64, String> {
    match parse_metric(text) {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// wrk's `-s` is a script, inject's a rate: there are no scripts here.
fn parse_start_rate(text: &str) -> Result<f64, String> {
    if std::path::Path::new(text)
        .extension()
        .is_some_and(|end| end == "lua")
    {
        return Err(
            "wrk's Lua scripts are not supported; --method, --header, --body, --urls-from \
                    and --expect-status replace most of them"
                .to_owned(),
        );
    }
    parse_rate(text).map_err(|error| error.to_string())
}

/// Spacing of the arrivals in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalName {
    /// Even gaps
    Constant,
    /// Exponential gaps
    Poisson,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The studies' own command lines, the program's name aside.
    const STUDIES: &[&str] = &[
        "-c 15000 --connreqs 14 -d 600s -t 8 --latency --delay http://127.0.0.1/1K.bin",
        "--latency -H 'Connection: close' -c 8192 -d 30 -t 8 http://127.0.0.1/",
        "-b -d 60 -u 500 -s 20 -f small-1.txt -S 10.140.0.0-10.140.15.255:1024-65535",
        "-r -n 10000000 -c 1000 http://127.0.0.1:80/empty.gif",
        "-c 100 -d 30s -t 4 -B -N -C 1:35,4:40,14:25 http://127.0.0.1/",
        "-v",
    ];

    #[test]
    fn the_studies_command_lines_are_understood() {
        for line in STUDIES {
            let words = line.replace("'Connection: close'", "Connection:close");
            let words = std::iter::once("load").chain(words.split_whitespace());
            assert!(Options::try_parse_from(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_last_of_repeated_options_counts_and_scripts_are_refused() {
        let parse = |line: &str| {
            let words = std::iter::once("load").chain(line.split_whitespace());
            Options::try_parse_from(words)
        };
        let options = parse("-c 5 -d 3 -c 7 -H a:b -H c:d http://a/")
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((options.connections, options.headers.len()), (Some(7), 2));
        let options =
            parse("--percentiles 95,99.5 http://a/").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(options.percentiles, [95.0, 99.5]);
        // wrk2's and oha's letters.
        for line in ["-R 5 -z 3 -m PUT a", "-q 5 -d 3 -X PUT a"] {
            let options = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(options.rate, Some(5.0), "{line}");
            assert_eq!(options.duration, Some(Duration::from_secs(3)), "{line}");
            assert_eq!(options.method.as_deref(), Some("PUT"), "{line}");
        }
        let error = parse("-s script.lua http://a/")
            .map_or_else(|error| error.to_string(), |_| String::new());
        assert!(error.contains("Lua scripts are not supported"), "{error}");
    }

    #[test]
    fn the_command_is_consistent() {
        use clap::CommandFactory as _;
        Options::command().debug_assert();
    }
}

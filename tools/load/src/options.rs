//! The command line, as it was written.
//!
//! One set of options understands the lines of wrk, of the modified wrk of study S1, of ab and of
//! inject. What the options mean together is decided in `plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};

use crate::mix::Connreqs;
use crate::source::SourceRange;
use crate::units::{parse_metric, parse_rate, parse_time};

/// Drives HTTP servers: wrk's options and output, requests per connection as an option, open
/// loops with honest latency, histograms that merge.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "turnpike load",
    disable_version_flag = true,
    max_term_width = 100,
    after_help = "Counts take k, M, G; times take us, ms, s, m, h (seconds without a unit).\n\
        `turnpike load merge FILE...` adds up HdrHistogram logs written by --hdr."
)]
pub(crate) struct Options {
    /// Where to send requests: http://HOST[:PORT]/PATH, https://..., unix:/SOCKET:/PATH
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// Connections to keep open [10]
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    pub(crate) connections: Option<u64>,
    /// Threads, each with its own loop [2]
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    pub(crate) threads: Option<u64>,
    /// Duration of the test [10s, or until --requests are done]
    #[arg(short, long, value_name = "T", value_parser = parse_time)]
    pub(crate) duration: Option<Duration>,
    /// Requests in all, then stop (as ab)
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_metric)]
    pub(crate) requests: Option<u64>,
    /// Users, each with one connection at a time and a new one for each request (as inject)
    #[arg(short, long, value_name = "N", value_parser = parse_metric)]
    #[arg(conflicts_with = "connections")]
    pub(crate) users: Option<u64>,
    /// Start this many users or connections a second instead of all at once (as inject)
    #[arg(short = 's', long, value_name = "N", value_parser = parse_rate)]
    pub(crate) start_rate: Option<f64>,
    /// Leave the first T out of the figures
    #[arg(long, value_name = "T", value_parser = parse_time)]
    pub(crate) warmup: Option<Duration>,
    /// Time-out of a connection attempt and of a request [2s]
    #[arg(short = 'T', long, value_name = "T", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Requests per connection, then reconnect: N, FIRST-LAST, or N:WEIGHT,N:WEIGHT,...
    #[arg(short = 'C', long, value_name = "N")]
    pub(crate) connreqs: Option<Connreqs>,
    /// Open loop: start N requests a second; latency counts from the intended start
    #[arg(long, value_name = "N", value_parser = parse_rate, conflicts_with = "connrate")]
    pub(crate) rate: Option<f64>,
    /// Open loop: open N connections a second, each with --connreqs requests [1]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub(crate) connrate: Option<f64>,
    /// How the arrivals of an open loop are spaced
    #[arg(long, value_enum, default_value_t = ArrivalName::Constant)]
    pub(crate) arrival: ArrivalName,
    /// Requests sent together on a connection before their answers are awaited
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) pipeline: u16,
    /// Ask the server to close after each answer
    #[arg(long)]
    pub(crate) no_keepalive: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Add a header to the requests
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Method of the requests [GET, or POST with --body]
    #[arg(short = 'X', long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Send this file as the body
    #[arg(long, value_name = "FILE")]
    pub(crate) body: Option<PathBuf>,
    /// Basic authentication
    #[arg(short = 'A', long, value_name = "USER:PASSWORD")]
    pub(crate) auth: Option<String>,
    /// A file of `URL [WEIGHT]` lines
    #[arg(long, value_name = "FILE")]
    pub(crate) urls_from: Option<PathBuf>,
    /// inject's page file: `new NAME THINK_MS`, `get HOST:PORT URI`
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) pages: Option<PathBuf>,

    /// Leave Nagle's algorithm on
    #[arg(short = 'N', long)]
    pub(crate) delay: bool,
    /// Source addresses, and ports: FIRST[-LAST][:PORT-PORT]; may be repeated
    #[arg(short = 'S', long = "source", value_name = "RANGE")]
    pub(crate) sources: Vec<SourceRange>,
    /// Connect to this unix socket whatever the URL's host is
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// TCP Fast Open: data with the SYN once a cookie is known
    #[arg(long)]
    pub(crate) fastopen: bool,
    /// Close with a reset, leaving no TIME_WAIT behind
    #[arg(long)]
    pub(crate) linger0: bool,
    /// Pin each thread to a CPU, in the order of the list if one is given
    #[arg(short = 'B', long, value_name = "CPUS", num_args = 0..=1, require_equals = true)]
    pub(crate) bindcpu: Option<Option<String>>,

    /// Share of TLS connections, in percent, that may resume a session
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    pub(crate) tls_resume: f64,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Server name to ask for instead of the URL's host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// Application protocols to offer, with commas between [http/1.1]
    #[arg(long, value_name = "NAMES")]
    pub(crate) alpn: Option<String>,

    /// Count every answer with another status as an error
    #[arg(long, value_name = "CODE")]
    pub(crate) expect_status: Option<u16>,
    /// Count every answer whose body is not this file as an error
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_body: Option<PathBuf>,
    /// Exit status 0 with up to N errors
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_metric)]
    pub(crate) max_errors: u64,

    /// Print the latency distribution
    #[arg(short = 'L', long)]
    pub(crate) latency: bool,
    /// Print parts of a transaction, client CPU, ports and memory too
    #[arg(long)]
    pub(crate) detail: bool,
    /// Write the figures as JSON to FILE, or instead of the text to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) json: Option<Option<PathBuf>>,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,
    /// Write each failed request: when it began and ended (microseconds since 1970), and how
    #[arg(long, value_name = "FILE")]
    pub(crate) failures: Option<PathBuf>,
    /// Show rate, percentiles, errors and connections while the test runs
    #[arg(long)]
    pub(crate) live: bool,
    /// Show no progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the version
    #[arg(short, long)]
    pub(crate) version: bool,

    /// ab's: go on after socket errors (always so here)
    #[arg(short = 'r', hide = true, action = ArgAction::SetTrue)]
    pub(crate) go_on: bool,
    /// ab's: keep-alive (always so here, unless --no-keepalive)
    #[arg(short = 'k', hide = true, action = ArgAction::SetTrue)]
    pub(crate) keep_alive: bool,
    /// inject's, without a meaning here
    #[arg(short = 'b', hide = true, action = ArgAction::SetTrue)]
    pub(crate) inject_b: bool,
}

/// How the arrivals of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalName {
    /// Evenly
    Constant,
    /// With exponential gaps
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
    fn the_command_is_consistent() {
        use clap::CommandFactory as _;
        Options::command().debug_assert();
    }
}

//! `turnpike cache warm FILE`: has a running server request a list of URLs through its own
//! listening sockets, a few at a time, and shows how far it is.

mod list;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnpike_plan::control::{Arguments, number, required_text};

use super::show::{bytes, seconds};
use crate::standard_error::write_standard_error;
use list::{Url, read};

/// The verb that the server has for it.
pub(super) const VERB: &str = "cache.warm";

/// URLs requested per second where the command line names no other rate: little work beside that
/// for clients.
const RATE_DEFAULT: u64 = 20;

/// URLs of one call: a call is what the progress moves by.
const CALL_URLS_MAX: usize = 16;

/// Bytes of the URLs of one call: a line to the server has at most 64 KB, some of it for escapes.
const CALL_BYTES_MAX: usize = 24 * 1024;

/// Failures that are shown; more of them are the same.
const SHOWN_MAX: usize = 20;

/// What has become of the list so far.
#[derive(Default)]
struct Progress {
    answered: u64,
    failed: u64,
    bytes: u64,
    keys_before: u64,
    keys: u64,
}

/// Warms the caches of a server, which `ask` asks.
///
/// # Errors
/// The list cannot be read, the server does not answer, or a URL failed.
pub(super) fn run(
    arguments: &Arguments,
    is_json: bool,
    mut ask: impl FnMut(&str, Arguments) -> Result<Value, String>,
) -> Result<(), String> {
    let file = required_text(arguments, "file").map_err(|error| error.to_string())?;
    let rate = number(arguments, "rate").map_err(|error| error.to_string())?;
    let rate = match rate.unwrap_or(RATE_DEFAULT) {
        0 => return Err("\"rate\" must be at least 1 URL per second".to_owned()),
        rate => rate,
    };
    let urls = read(file)?;
    let listeners = listeners(&ask("gates", Arguments::new())?);
    let any = listeners.first().ok_or(NO_LISTENER)?;
    let keys = |answer: &Value| answer["keys"].as_u64().unwrap_or_default();
    let mut progress = Progress {
        keys_before: keys(&ask(VERB, call(&[], any))?),
        ..Progress::default()
    };
    let begun = Instant::now();
    let mut asked = 0;
    while asked < urls.len() {
        let (count, listener) = next_call(&urls[asked..], &listeners, rate);
        match listener {
            None => progress.fail(urls[asked].text(), &no_listener(&urls[asked])),
            Some(listener) => {
                let answer = ask(VERB, call(&urls[asked..asked + count], listener))?;
                asked += progress.add(&answer)?;
                progress.show(asked, urls.len());
                rest(begun, asked, rate);
                continue;
            }
        }
        asked += 1;
    }
    progress.keys = keys(&ask(VERB, call(&[], any))?);
    progress.end();
    let took = begun.elapsed();
    let text = if is_json {
        format!("{}\n", progress.json(urls.len()))
    } else {
        progress.text(urls.len(), took)
    };
    // Who closes the pipe early has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    match progress.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} URLs failed", urls.len())),
    }
}

/// Said where nothing can be asked.
const NO_LISTENER: &str = "the server listens on no TCP port";

fn no_listener(url: &Url) -> String {
    format!("no listening socket has port {}", url.port())
}

/// A listening socket of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    address: SocketAddr,
    proxied: bool,
}

/// The TCP sockets of the server, by its own list; one on all addresses is reached through the
/// loopback one.
fn listeners(answer: &Value) -> Vec<Listener> {
    let gates = answer["gates"].as_array().into_iter().flatten();
    // Only TCP has such a queue.
    let of_tcp = gates.filter(|gate| !gate["queue_max"].is_null());
    let listeners = of_tcp.filter_map(|gate| {
        let address: SocketAddr = gate["address"].as_str()?.parse().ok()?;
        let host: IpAddr = match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            host => host,
        };
        Some(Listener {
            address: SocketAddr::new(host, address.port()),
            proxied: gate["proxy_protocol"] == true,
        })
    });
    listeners.collect()
}

/// How many of the next URLs go into one call, and through which socket; `None`: the first one
/// goes through none.
fn next_call<'a>(
    urls: &[Url],
    listeners: &'a [Listener],
    rate: u64,
) -> (usize, Option<&'a Listener>) {
    let port = urls[0].port();
    let most = usize::try_from(rate).unwrap_or(usize::MAX);
    let mut bytes = 0;
    let same = urls.iter().take(most.min(CALL_URLS_MAX)).take_while(|url| {
        bytes += url.text().len();
        url.port() == port && bytes <= CALL_BYTES_MAX
    });
    let count = same.count().max(1);
    (
        count,
        listeners
            .iter()
            .find(|listener| listener.address.port() == port),
    )
}

fn call(urls: &[Url], listener: &Listener) -> Arguments {
    let urls: Vec<&str> = urls.iter().map(Url::text).collect();
    let mut arguments = Arguments::new();
    arguments.insert("urls".to_owned(), urls.into());
    arguments.insert("address".to_owned(), listener.address.to_string().into());
    arguments.insert("proxy_protocol".to_owned(), listener.proxied.into());
    arguments
}

/// Waits until so many URLs are no more than the rate allows.
fn rest(begun: Instant, asked: usize, rate: u64) {
    let due = Duration::from_secs_f64(asked as f64 / rate as f64);
    thread::sleep(due.saturating_sub(begun.elapsed()));
}

impl Progress {
    /// Adds an answer of the server; returns the number of its URLs.
    fn add(&mut self, answer: &Value) -> Result<usize, String> {
        let fetched = answer["fetched"].as_array().map_or(&[][..], Vec::as_slice);
        if fetched.is_empty() {
            return Err("the server requested none of the URLs".to_owned());
        }
        for one in fetched {
            let url = one["url"].as_str().unwrap_or_default();
            match (one["status"].as_u64(), one["error"].as_str()) {
                (Some(status @ 400..), _) => self.fail(url, &format!("status {status}")),
                (_, Some(error)) => self.fail(url, error),
                _ => {
                    self.answered += 1;
                    self.bytes += one["bytes"].as_u64().unwrap_or_default();
                }
            }
        }
        Ok(fetched.len())
    }

    fn fail(&mut self, url: &str, why: &str) {
        self.failed += 1;
        if self.failed <= SHOWN_MAX as u64 {
            self.end();
            write_standard_error(&format!("{url}: {why}\n"));
        }
        if self.failed == SHOWN_MAX as u64 {
            write_standard_error("further failures are counted, and not shown\n");
        }
    }

    /// Shows how far the list is, on a terminal.
    fn show(&self, asked: usize, whole: usize) {
        if std::io::stderr().is_terminal() {
            let text = format!("\r{asked} of {whole} URLs, {} failed ", self.failed);
            write_standard_error(&text);
        }
    }

    /// Ends the line that is overwritten.
    fn end(&self) {
        if std::io::stderr().is_terminal() && self.answered + self.failed > 0 {
            write_standard_error("\r\x1b[K");
        }
    }

    fn text(&self, whole: usize, took: Duration) -> String {
        format!(
            "{} of {whole} URLs answered, {} in {}; the caches have {} keys, {} before\n",
            self.answered,
            bytes(self.bytes),
            seconds(took.as_secs()),
            self.keys,
            self.keys_before,
        )
    }

    fn json(&self, whole: usize) -> Value {
        json!({
            "urls": whole,
            "answered": self.answered,
            "failed": self.failed,
            "bytes": self.bytes,
            "keys_before": self.keys_before,
            "keys": self.keys,
        })
    }
}

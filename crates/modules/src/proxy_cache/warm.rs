//! `cache.warm`: requests URLs through a listening socket of our own, so that the cache stores the
//! answers as it stores those for clients.
//!
//! The command line reads the list and names a few URLs at a time, so it can say how far it is, and
//! no thread is held for long.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Uri;
use tokio::runtime::Builder as RuntimeBuilder;
use tokio::task::LocalSet;
use turnpike_plan::control::{self, Arguments, Command, CommandError, CommandRow, Value, json};
use turnpike_upstream::{TlsConnector, TlsSettings};

use super::zones::Zones;
use crate::common::own_request::OwnListener;

pub(super) const ROW: CommandRow = CommandRow {
    name: "cache.warm",
    arguments: "file=FILE [rate=NUMBER]",
    summary: "Requests each URL of a file through this server, so that its cache stores the \
        answers: at most rate of them per second, 20 without it. The file (`-` for standard input) \
        has a URL on each line, or is a sitemap.",
};

/// URLs of one call: more than a second has at any sensible rate.
const URLS_MAX: usize = 64;

/// The time after which a call begins no other URL. The rest is left to the next call.
const TURN: Duration = Duration::from_secs(5);

/// What goes before TLS and HTTP on a listener with the PROXY protocol.
const PROXY_HEADER: &[u8] = b"PROXY UNKNOWN\r\n";

pub(super) struct WarmCommand(pub(super) Zones);

impl Command for WarmCommand {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let urls = control::texts(arguments, "urls")?;
        let address = control::required_text(arguments, "address")?;
        let address: SocketAddr = address.parse().map_err(|_| {
            let message = format!("\"address\" must be an IP address with a port: {address}");
            CommandError::Invalid(message)
        })?;
        let proxied = control::flag(arguments, "proxy_protocol")?;
        let failed = |error: String| CommandError::Failed(error);
        let settings = TlsSettings {
            server_name: true,
            ..TlsSettings::default()
        };
        let connector = TlsConnector::new(&settings).map_err(|error| failed(error.to_string()))?;
        let connector = Arc::new(connector);
        let runtime = RuntimeBuilder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let listener = OwnListener {
            address,
            connector: &connector,
            proxy_header: if proxied { PROXY_HEADER } else { b"" },
        };
        let fetched = LocalSet::new().block_on(&runtime, fetch(&listener, &urls));
        let keys: u64 = self.0.0.values().map(|zone| zone.contents().keys).sum();
        Ok(json!({ "fetched": fetched, "keys": keys }))
    }
}

/// What became of each URL, as far as the time sufficed.
async fn fetch(listener: &OwnListener<'_>, urls: &[&str]) -> Vec<Value> {
    let begun = Instant::now();
    let mut fetched = Vec::new();
    for url in urls.iter().take(URLS_MAX) {
        let outcome = match url.parse::<Uri>() {
            Ok(uri) => listener.fetch(&uri).await,
            Err(error) => Err(error.to_string()),
        };
        fetched.push(match outcome {
            Ok((status, bytes)) => json!({ "url": url, "status": status, "bytes": bytes }),
            Err(message) => json!({ "url": url, "error": message }),
        });
        if begun.elapsed() >= TURN {
            break;
        }
    }
    fetched
}

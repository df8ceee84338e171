//! Chromium without a window: a page of our server asks, and writes down how it went.

use std::process::Command;

use turnpike_testkit::Folder;

use super::matrix::{self, Found};
use super::{Asked, Protocol};

/// Virtual milliseconds until the page is looked at; time stands still during requests.
const PAGE_MS: u32 = 60_000;

/// What the page's cells say.
///
/// # Errors
/// Chromium does not run, or the page did not come to its end.
pub(super) fn says(asked: &Asked, protocol: Protocol) -> Result<Vec<Found>, String> {
    // A profile of its own, so that no session of a run before is left.
    let profile = Folder::create().map_err(|error| error.to_string())?;
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--disable-gpu", "--dump-dom"]);
    if nix::unistd::geteuid().is_root() {
        chromium.arg("--no-sandbox"); // Chromium refuses to sandbox itself as root
    }
    if protocol == Protocol::One {
        chromium.arg("--disable-http2");
    }
    let (name, once) = (protocol.name(), asked.server.port_named("ONCE"));
    let output = chromium
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--virtual-time-budget={PAGE_MS}"))
        // It knows the authorities of its own list only.
        .arg("--ignore-certificate-errors")
        .arg("--enable-features=EnableTLS13EarlyData")
        .arg(asked.open(&format!("/browser.html?protocol={name}&once={once}")))
        .output()
        .map_err(|error| format!("chromium: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let cells = text.split_once("<pre id=\"cells\">");
    let cells = cells.and_then(|(_, rest)| rest.split_once("end\n</pre>"));
    let (cells, _) = cells.ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("Chromium's page did not come to its end:\n{text}\n{errors}")
    })?;
    Ok(matrix::read(cells))
}

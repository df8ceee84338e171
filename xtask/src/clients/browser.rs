//! Chromium without a window: a page of our server asks, and writes down how it went.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::Folder;

use super::matrix::{self, Found};
use super::{Asked, Protocol};

/// Has it take any certificate: it knows the authorities of its own list only.
pub(super) const TRUSTING: &str = "--ignore-certificate-errors";

/// Virtual milliseconds until the page is looked at; time stands still during requests.
const PAGE_MS: u32 = 60_000;

/// How long a page may work, and the pause between two looks for its report.
const WORK_MAX: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the page's cells say.
///
/// # Errors
/// Chromium does not run, or the page did not come to its end.
pub(super) fn says(asked: &Asked, protocol: Protocol) -> Result<Vec<Found>, String> {
    let profile = Folder::create().map_err(|error| error.to_string())?;
    let mut chromium = chromium(&profile);
    if protocol == Protocol::One {
        chromium.arg("--disable-http2");
    }
    let (name, once) = (protocol.name(), asked.server.port_named("ONCE"));
    let output = chromium
        .arg("--dump-dom")
        .arg(TRUSTING)
        .arg(format!("--virtual-time-budget={PAGE_MS}"))
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

/// What a page says that works for long, and at last puts its cells into a file of the server.
///
/// # Errors
/// Chromium does not run, or no report came.
pub(super) fn reports(url: &str, report: &Path, more: &[&str]) -> Result<Vec<Found>, String> {
    let profile = Folder::create().map_err(|error| error.to_string())?;
    let mut browser = chromium(&profile)
        .arg("--remote-debugging-port=0") // else it ends when the page is loaded
        .args(more)
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("chromium: {error}"))?;
    let begun = Instant::now();
    let mut found = Vec::new();
    while found.is_empty() && begun.elapsed() < WORK_MAX {
        thread::sleep(LOOK_EVERY);
        found = matrix::read(&std::fs::read_to_string(report).unwrap_or_default());
    }
    // It may have ended by itself.
    let _ = browser.kill();
    let _ = browser.wait();
    if found.is_empty() {
        Err("no report of Chromium's page came".to_owned())
    } else {
        Ok(found)
    }
}

/// Chromium with a profile of its own, so that no session of a run before is left.
fn chromium(profile: &Folder) -> Command {
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--disable-gpu"]);
    if nix::unistd::geteuid().is_root() {
        chromium.arg("--no-sandbox"); // Chromium refuses to sandbox itself as root
    }
    chromium.arg(format!("--user-data-dir={}", profile.path().display()));
    chromium
}

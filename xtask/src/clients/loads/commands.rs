//! The loads of clients that are commands: curl and h2load.

use std::process::Command;

use super::{Found, LARGE_BYTES, Loaded};
use crate::clients::serving::MIDDLE_BYTES;
use crate::contender::OBJECT_BYTES;
use crate::outcome::Outcome;
use crate::workspace;

const STREAMS: usize = 1000;
const CANCELS: usize = 3000;
/// Requests of a download, the large one among them.
const DOWNLOADED: usize = 200;
/// As many as curl has at once, and fewer than the server allows.
const AT_ONCE: &str = "100";
/// curl's exit code of a transfer that it ended since the file is too long for it.
const TOO_LONG: &str = "63";

/// The loads by curl.
pub(super) fn curl(loaded: &Loaded) -> Vec<Found> {
    let download = |before: &str| {
        let large = loaded.secure(&format!("{before}/large"));
        let small = loaded.secure(&format!("/600.html?[2-{DOWNLOADED}]"));
        let said = curl_says(loaded, &[&large, &small])?;
        let bytes = LARGE_BYTES + (DOWNLOADED - 1) * OBJECT_BYTES;
        sums(&said, DOWNLOADED, "0", Some(bytes))
    };
    let streams = || {
        let url = loaded.secure(&format!("/middle?[1-{STREAMS}]"));
        let said = curl_says(loaded, &[&url])?;
        sums(&said, STREAMS, "0", Some(STREAMS * MIDDLE_BYTES))
    };
    let upload = |before: &str| {
        let url = loaded.secure(&format!("{before}/put/curl"));
        let file = loaded.server.folder().join("html/large");
        curl_says(
            loaded,
            &["--upload-file", &file.display().to_string(), &url],
        )?;
        uploaded(loaded, "curl")
    };
    let cancel = || {
        let url = loaded.secure(&format!("/large?[1-{CANCELS}]"));
        let said = curl_says(loaded, &["--max-filesize", "1", &url])?;
        sums(&said, CANCELS, TOO_LONG, None)
    };
    vec![
        cell("download", download("").and_then(|()| download("/passed"))),
        cell("streams", streams()),
        cell("upload", upload("").and_then(|()| upload("/passed"))),
        cell("cancel", cancel()),
    ]
}

/// What curl says of each transfer: its exit code, the bytes that came, and the new connections.
fn curl_says(loaded: &Loaded, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--http2",
            "--parallel",
            "--parallel-max",
            AT_ONCE,
        ])
        .arg("--cacert")
        .arg(loaded.keys.path().join("root.pem"))
        .args(["--output", "/dev/null", "--output", "/dev/null"])
        .args([
            "--write-out",
            "%{exitcode} %{size_download} %{num_connects}\n",
        ])
        .args(arguments)
        .output()
        .map_err(|error| format!("curl: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether so many transfers ended with a code, on one connection, and with so many bytes, where
/// their number is known.
fn sums(said: &str, transfers: usize, code: &str, bytes: Option<usize>) -> Outcome {
    let (mut ended, mut came, mut connections) = (0, 0, 0);
    for line in said.lines() {
        let mut words = line.split(' ');
        ended += usize::from(words.next() == Some(code));
        let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
        came += number().unwrap_or(0);
        connections += number().unwrap_or(0);
    }
    let is_whole = bytes.is_none_or(|bytes| bytes == came);
    if is_whole && (ended, connections) == (transfers, 1) {
        Ok(())
    } else {
        Err(format!(
            "{ended} of {transfers} transfers ended with {code}, with {came} bytes on \
         {connections} connections"
        ))
    }
}

/// The loads by h2load.
pub(super) fn h2load(loaded: &Loaded) -> Vec<Found> {
    let download = |before: &str| {
        let large = loaded.plain(&format!("{before}/large"));
        let small = loaded.plain("/600.html");
        // The paths take turns.
        let paths = [&[large.as_str()][..], &[small.as_str(); 49]].concat();
        h2load_asks(2 * paths.len(), "50", &[], &paths)
    };
    let upload = |before: &str| {
        let file = loaded.server.folder().join("html/large");
        let options = ["-d", &file.display().to_string(), "-H", ":method: PUT"];
        let url = loaded.plain(&format!("{before}/put/h2load"));
        h2load_asks(1, "1", &options, &[&url])?;
        uploaded(loaded, "h2load")
    };
    let streams = h2load_asks(STREAMS, AT_ONCE, &[], &[&loaded.plain("/middle")]);
    vec![
        cell("download", download("").and_then(|()| download("/passed"))),
        cell("streams", streams),
        cell("upload", upload("").and_then(|()| upload("/passed"))),
    ]
}

/// Asks so many times on one connection, with windows of 1 GB.
fn h2load_asks(count: usize, at_once: &str, options: &[&str], urls: &[&str]) -> Outcome {
    let said = workspace::output(
        Command::new("h2load")
            .args(["-c", "1", "-w", "30", "-W", "30", "-m", at_once])
            .args(["-n", &count.to_string()])
            .args(options)
            .args(urls),
    )?;
    let wanted = format!("status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(": ")).collect();
    if said.contains(&wanted) && said.contains(" 0 failed, 0 errored") {
        Ok(())
    } else {
        Err(lines.join("; "))
    }
}

/// Whether a file came whole.
fn uploaded(loaded: &Loaded, name: &str) -> Outcome {
    let file = loaded.server.folder().join("html/put").join(name);
    let length = std::fs::metadata(&file).map_or(0, |file| file.len());
    let removed = std::fs::remove_file(&file);
    match (length == LARGE_BYTES as u64, removed) {
        (true, Ok(())) => Ok(()),
        (_, removed) => Err(format!("{length} bytes were uploaded ({removed:?})")),
    }
}

fn cell(name: &str, result: Outcome) -> Found {
    (name.to_owned(), result)
}

//! The live status page in use: its numbers move, it can be paused, nothing is cut off on a phone
//! or a desk, it asks nobody but its server, and its console is silent.

use serde_json::Value;
use turnpike_testkit::Server;

use super::{SCHEMES, chromium};
use crate::contender::Contender;
use crate::outcome::Outcome;

/// The page that uses the live page.
const DRIVER: &str = include_str!("driver.html");

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    limit_req_zone $uri zone=one:1m rate=1000r/s;
    upstream application { server 127.0.0.1:%PORT%; }
    proxy_cache_path hot keys_zone=hot:1m memory;
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        location = /live { status html; }
        location = /metrics { metrics by=server; }
        location = /application { proxy_pass http://application/; proxy_cache hot; }
    }
}
";

/// Virtual milliseconds for both widths.
const USE_MS: u32 = 60_000;

/// Uses the page in both colour schemes.
pub(super) fn run(ours: &Contender) -> Outcome {
    let server = ours.start(CONFIGURATION)?;
    server.write("html/driver.html", DRIVER);
    server.get("/application");
    let mut colours = Vec::new();
    for (scheme, number) in SCHEMES {
        let (found, console) = look(&server, number)?;
        if !console.is_empty() {
            return Err(format!("live page ({scheme}): the console has {console}"));
        }
        for one in found.as_array().into_iter().flatten() {
            judge(&server, one).map_err(|why| format!("live page ({scheme}): {why}: {one}"))?;
            colours.push(one["back"].to_string());
        }
    }
    // Two widths in each of two schemes.
    match &colours[..] {
        [dark, also_dark, light, also_light]
            if dark == also_dark && light == also_light && dark != light =>
        {
            println!(
                "accessibility: the live page works in {} views",
                colours.len()
            );
            Ok(())
        }
        _ => Err(format!("live page: not dark and light: {colours:?}")),
    }
}

/// What the driver found, and the lines of the browser's console.
fn look(server: &Server, number: &str) -> Result<(Value, String), String> {
    let output = chromium(USE_MS, number)
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("http://127.0.0.1:{}/driver.html", server.port()))
        .output()
        .map_err(|error| format!("chromium: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.split_once("<pre id=\"found\">");
    let found = found.and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.ok_or_else(|| format!("the driver did not end:\n{text}"))?;
    let found = found
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let found = serde_json::from_str(&found).map_err(|error| format!("{error}: {found}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let lines = log.lines().filter(|line| {
        // The driver asks for a missing page, and Chromium notes that.
        line.contains("CONSOLE") && !line.contains("status of 404")
    });
    Ok((found, lines.collect::<Vec<&str>>().join("\n")))
}

/// What is wrong with one view.
fn judge(server: &Server, found: &Value) -> Outcome {
    let own = format!("http://127.0.0.1:{}/live", server.port());
    let asked = found["asked"].as_array().into_iter().flatten();
    let others: Vec<&Value> = asked.filter(|url| *url != own.as_str()).collect();
    let is_empty = |name: &str| found[name].as_array().is_some_and(Vec::is_empty);
    let checks = [
        (found["begun"] == true, "no figures appear"),
        (
            found["quiet"] == true,
            "errors are counted before any request",
        ),
        (found["moved"] == true, "the figures do not move"),
        (
            found["still"] == true,
            "the figures move while they are paused",
        ),
        (is_empty("problems"), "a script fails"),
        (
            found["over"].as_i64().is_some_and(|over| over <= 0),
            "the page is wider than its window",
        ),
        (is_empty("hidden"), "a text is cut off"),
        (found["lanes"].as_u64() > Some(0), "there is no lane"),
        (found["curves"].as_u64() == Some(8), "a curve is missing"),
        (others.is_empty(), "it asks somebody else"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, why)) => Err((*why).to_owned()),
    }
}

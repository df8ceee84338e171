//! The pages that people look at, judged by axe-core in Chromium: the live status page, the
//! built-in page, the reports of load and lab, and the documentation. Listings and error pages are
//! left out: their bytes are nginx's.
//!
//! Turnpike itself serves the pages and adds axe-core to them, so that no driver is needed.

mod live_page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use turnpike_testkit::Server;

use crate::contender::Contender;
use crate::docs;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// axe-core's version with its digest, as npm writes them.
const PACKAGE: &str = include_str!("package.json");
const LOCK: &str = include_str!("package-lock.json");
const SCRIPT: &str = include_str!("run.js");

/// The lab's raw data whose report is written anew.
const STUDY: &str = "bench/results/2026-11-22-s5-accept-modes-2xamd-epyc-linux-6-18-44";

/// Virtual milliseconds until a page is looked at.
const PAGE_MS: u32 = 15_000;

/// Impacts that fail the chore.
const SERIOUS: [&str; 2] = ["serious", "critical"];

/// Chromium's numbers of what a page is asked to look like.
const SCHEMES: [(&str, &str); 2] = [("dark", "0"), ("light", "1")];

const PAGES: &[&str] = &[
    "status",
    "built-in",
    "load.html",
    "lab/report.html",
    "book/index.html",
    "book/install.html",
    "book/control.html",
    "book/variables.html",
    "book/support.html",
];

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    upstream application { server 127.0.0.1:%PORT%; }
    proxy_cache_path hot keys_zone=hot:1m memory;
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        more_clear_headers Content-Security-Policy;
        sub_filter '</body>' '<script src=\"/axe/axe.min.js\"></script>
                              <script src=\"/axe/run.js\"></script></body>';
        location = /status { status html; }
        location = /built-in { proxy_pass http://127.0.0.1:%PORT%/built-in.html; }
        location /lab/ { alias %LAB%/; }
        location /book/ { alias %BOOK%/; }
        location /axe/ { alias %AXE%/; sub_filter_types nothing/nothing; }
        location /application { proxy_pass http://application/; proxy_cache hot; }
    }
}
";

/// Looks at every page in both colour schemes.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    docs::site::build()?;
    let folder = workspace::target().join("accessibility");
    let axe = folder.join("node_modules/axe-core");
    live_page::run(&ours)?;
    install(&folder, &axe)?;
    let lab = report_of_lab(&ours, &folder)?;
    let configuration = CONFIGURATION
        .replace("%AXE%", &axe.to_string_lossy())
        .replace("%LAB%", &lab.to_string_lossy())
        .replace(
            "%BOOK%",
            &workspace::target().join("book").to_string_lossy(),
        );
    let server = ours.start(&configuration)?;
    server.get("/application");
    report_of_load(&ours, &server)?;
    let mut serious = 0;
    for page in PAGES {
        for (name, number) in SCHEMES {
            serious += judge(&server, page, name, number)?;
        }
    }
    match serious {
        0 => {
            println!("accessibility: {} pages, nothing serious", PAGES.len());
            Ok(())
        }
        count => Err(format!("{count} serious findings")),
    }
}

/// Installs axe-core below target/, if it is not there.
fn install(folder: &Path, axe: &Path) -> Outcome {
    let written = || {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("package.json"), PACKAGE)?;
        fs::write(folder.join("package-lock.json"), LOCK)
    };
    written().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))?;
    must(Command::new("npm").current_dir(folder).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--silent",
    ]))?;
    fs::write(axe.join("run.js"), SCRIPT).map_err(|error| format!("run.js: {error}"))
}

/// The report of a published study, as this version writes it.
fn report_of_lab(ours: &Contender, folder: &Path) -> Result<PathBuf, String> {
    let lab = folder.join("lab");
    let _ = fs::remove_dir_all(&lab); // of a run before; there may be none
    let study = workspace::root().join(STUDY);
    must(Command::new("cp").arg("-r").args([&study, &lab]))?;
    must(
        Command::new(&ours.program)
            .args(["lab", "report"])
            .arg(&lab),
    )?;
    Ok(lab)
}

/// A report of a short run, and the built-in page as a file.
fn report_of_load(ours: &Contender, server: &Server) -> Outcome {
    let html = server.folder().join("html");
    let url = format!("http://127.0.0.1:{}/600.html", server.port());
    must(
        Command::new(&ours.program)
            .args(["load", "-t", "1", "-c", "4", "-d", "2", "--quiet", "--html"])
            .args([&html.join("load.html"), Path::new(&url)]),
    )?;
    let path = workspace::root().join("crates/server/src/embedded/default.conf");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let page = text.find("<!DOCTYPE").zip(text.find("</html>"));
    let (start, end) = page.ok_or("the built-in page has another form")?;
    server.write("html/built-in.html", &text[start..end]);
    Ok(())
}

/// A browser that prints the page as it is after so many virtual milliseconds, in a colour scheme.
fn chromium(milliseconds: u32, scheme: &str) -> Command {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        "--dump-dom",
    ]);
    if nix::unistd::geteuid().is_root() {
        chromium.arg("--no-sandbox"); // Chromium refuses to sandbox itself as root
    }
    chromium
        .arg(format!("--virtual-time-budget={milliseconds}"))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    chromium
}

/// Looks at a page; returns how many findings are serious.
fn judge(server: &Server, page: &str, scheme: &str, number: &str) -> Result<usize, String> {
    let url = format!("http://127.0.0.1:{}/{page}", server.port());
    let output = chromium(PAGE_MS, number)
        .arg(&url)
        .output()
        .map_err(|error| format!("chromium: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.split_once("<pre id=\"axe-result\">");
    let result = result.and_then(|(_, rest)| rest.split_once("</pre>"));
    let (result, _) = result.ok_or_else(|| format!("{page}: axe-core did not run:\n{text}"))?;
    let result = result
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let result: Value =
        serde_json::from_str(&result).map_err(|error| format!("{page}: {error}: {result}"))?;
    println!(
        "accessibility: {page} ({scheme}): {} rules hold",
        result["passed"]
    );
    let found = result["found"].as_array().into_iter().flatten();
    let mut serious = 0;
    for one in found {
        let impact = one["impact"].as_str().unwrap_or("unknown");
        println!(
            "  {impact}: {} {}: {}",
            one["id"], one["help"], one["places"]
        );
        serious += usize::from(SERIOUS.contains(&impact));
    }
    Ok(serious)
}

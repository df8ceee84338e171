//! Tests of a report in a browser: no error in its console, no network request, and every picture
//! is visible, dark and light, wide and narrow.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Folder, run, stderr, study};
use serde_json::Value;

/// Widths that the report has pictures for.
const WINDOWS: [(&str, &str); 2] = [("1000,900", "svg.wide"), ("390,6000", "svg.narrow")];

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("chromium"))
        .find(|path| path.is_file())
}

/// A browser that answers no request, with a window of this size.
fn browser(folder: &Folder, window: &str) -> Command {
    let mut browser = Command::new(chromium().unwrap());
    browser
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .args([
            "--proxy-server=127.0.0.1:9",
            "--disable-background-networking",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.0.join("profile").display()
        ))
        .arg(format!("--window-size={window}"))
        .stdin(Stdio::null());
    browser
}

/// A picture of the page, and the lines of the browser's console.
fn look(folder: &Folder, page: &Path, window: &str, dark: bool) -> (Vec<u8>, String) {
    let picture = folder.0.join("look.png");
    let _ = std::fs::remove_file(&picture);
    let scheme = if dark { 0 } else { 1 };
    let output = browser(folder, window)
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let console = stderr(&output);
    let console: Vec<&str> = console
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    (std::fs::read(&picture).unwrap(), console.join("\n"))
}

/// The page with a rule more in its style sheet.
fn styled(folder: &Folder, report: &str, rule: &str) -> PathBuf {
    let page = report.replacen("</style>", &format!("{rule}</style>"), 1);
    folder.write("styled.html", &page)
}

/// All kinds of pictures, from figures that a script gives.
fn whole_study() -> String {
    let more = r#"
[[plot]]
kind = "scaling"
title = "Requests per second by size"
metric = "requests_per_s"
along = "size"

[[plot]]
kind = "distribution"
title = "Latency"

[[plot]]
kind = "shares"
title = "Connections by worker"

[[published]]
title = "Published"
machine = "a machine"

[[published.row]]
label = "one"
at = { size = "1" }
figures = { requests_per_s = 100 }
"#;
    let text = study(12000, 3, "cost=$(( cost / $4 ))");
    let text = text
        .replace("\"{contender}\"]", "\"{size}\"]")
        .replace("$4", "$3");
    let text = text.replace("names = [\"1\"]", "names = [\"1\", \"2\", \"4\"]");
    format!("{text}{more}")
}

/// Gives the runs values that a scripted driver does not have.
fn enrich(folder: &Folder) {
    let path = folder.results().join("raw.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    let mut whole = vec![lines.next().unwrap()];
    for line in lines {
        let cores = line.rfind(",0:").unwrap();
        let workers = line[..cores].rfind(",not available").unwrap();
        let distribution = ",50:100 90:200 99:900 99.9:5000";
        let end = line.rfind(',').unwrap();
        whole.push(format!(
            "{},30 20 10,{}{distribution}",
            &line[..workers],
            &line[cores..end]
        ));
    }
    std::fs::write(&path, whole.join("\n") + "\n").unwrap();
    let results = folder.results().display().to_string();
    assert!(common::lab(folder, &["report", &results]).status.success());
}

/// The pictures of this page show something, and the console is silent.
fn is_seen(folder: &Folder, report: &str, rule: &str, window: (&str, &str), dark: bool) {
    let (window, shown) = window;
    let page = styled(folder, report, rule);
    let (picture, console) = look(folder, &page, window, dark);
    assert_eq!(console, "");
    let page = styled(
        folder,
        report,
        &format!("{rule}{shown} *{{visibility:hidden}}"),
    );
    let (blank, _) = look(folder, &page, window, dark);
    assert!(picture != blank, "nothing is seen in {window} with {rule}");
}

#[test]
fn every_picture_shows_something_and_the_console_is_silent() {
    if chromium().is_none() {
        eprintln!("no chromium; please run: cargo xtask setup test");
        return;
    }
    let folder = Folder::new();
    let output = run(&folder, &whole_study(), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    enrich(&folder);
    let report = folder.result("report.html");
    let figures = report.matches("<figure>").count();
    assert_eq!(figures, 4, "bars, scaling, distribution, shares");
    let (window, shown) = WINDOWS[0];
    for figure in 1..=figures {
        let alone = format!(
            "section:not(#pictures),header,h2,figure:not(:nth-of-type({figure})){{display:none}}"
        );
        is_seen(&folder, &report, &alone, (window, shown), false);
    }
    is_seen(&folder, &report, "", WINDOWS[1], true);
    let light = look(
        &folder,
        &folder.results().join("report.html"),
        WINDOWS[0].0,
        false,
    );
    let dark = look(
        &folder,
        &folder.results().join("report.html"),
        WINDOWS[0].0,
        true,
    );
    assert_eq!((light.1.as_str(), dark.1.as_str()), ("", ""));
    assert!(light.0 != dark.0, "dark and light look the same");
}

/// Measures every table: whether it is within the window, whether a part is hidden, whether it is
/// as wide as the window allows, and whether it shows that it can be scrolled.
const MEASURED: &str = r#"<script>addEventListener("load", () => {
  const boxes = [...document.querySelectorAll("table")].map(table => {
    const box = table.parentElement, place = box.getBoundingClientRect();
    return {
      inside: place.left >= 0 && place.right <= innerWidth,
      hidden: box.scrollWidth > box.clientWidth,
      wide: place.width >= innerWidth - 80,
      shown: box.tabIndex === 0 && getComputedStyle(box).backgroundImage.includes("gradient"),
    };
  });
  const out = document.createElement("pre");
  out.id = "measured";
  const over = document.documentElement.scrollWidth - innerWidth;
  out.textContent = JSON.stringify({ boxes, over });
  document.body.append(out);
})</script>"#;

#[test]
fn a_wide_table_takes_the_empty_room_and_shows_that_it_scrolls() {
    if chromium().is_none() {
        eprintln!("no chromium; please run: cargo xtask setup test");
        return;
    }
    let folder = Folder::new();
    let output = run(&folder, &whole_study(), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = folder.result("report.html");
    let cells = [("font-size: 4px", false), ("padding: 4px 90px", true)];
    for (style, is_hidden) in cells {
        let rule = format!("th, td {{ {style} !important; }}");
        let page = report.replacen("</style>", &format!("{rule}</style>{MEASURED}"), 1);
        let page = folder.write("measured.html", &page);
        let output = browser(&folder, "1280,900")
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, found) = text.split_once("<pre id=\"measured\">").unwrap();
        let (found, _) = found.split_once("</pre>").unwrap();
        let found: Value = serde_json::from_str(found).unwrap();
        assert!(found["over"].as_i64().unwrap() <= 0, "{found}");
        let boxes = found["boxes"].as_array().unwrap();
        assert!(boxes.len() > 2, "{found}");
        for table in boxes {
            assert_eq!(
                (&table["inside"], &table["shown"]),
                (&true.into(), &true.into())
            );
            assert!(table["hidden"] == false || table["wide"] == true, "{found}");
        }
        let hidden = boxes.iter().filter(|table| table["hidden"] == true);
        assert_eq!(hidden.count() > 0, is_hidden, "{style}: {found}");
    }
}

//! A climb in a folder: what another person reads, and what another machine can apply.
//!
//! `ladder.txt` and `ladder.svg` are for people, `server.conf` is for nginx's `-p FOLDER -c`,
//! `plan.json` for `tune apply --plan`, `runs.json` for `tune climb --replay`, and `goals.json`,
//! where the whole grid was run, for a bench.

use std::path::Path;

use turnpike_load::svg::{Anchor, Svg, text_width};

use super::judge::Verdict;
use super::record::Climbing;
use super::search::Climbed;
use crate::change::Change;
use crate::plan::{Plan, SCHEMA, Step};

/// The file that says whether the goals were reached.
pub(crate) const GOALS: &str = "goals.json";

/// Writes the files into a folder that is there.
///
/// # Errors
/// In words.
pub(crate) fn make(
    folder: &Path,
    climbed: &Climbed,
    plan: &Plan,
    text: &str,
    configuration: &str,
    record: &str,
) -> Result<(), String> {
    let plan = serde_json::to_string_pretty(plan).unwrap_or_default() + "\n";
    let files: [(&str, &str); 5] = [
        ("ladder.txt", text),
        ("ladder.svg", &picture(climbed)),
        ("server.conf", configuration),
        ("plan.json", &plan),
        ("runs.json", record),
    ];
    for (name, text) in files {
        write(&folder.join(name), text)?;
    }
    Ok(())
}

/// Keeps the runs of a climb that has come to no end; without any, the folder is left as it is.
///
/// # Errors
/// In words.
pub(crate) fn keep(folder: &Path, record: &str, runs: usize) -> Result<(), String> {
    match runs {
        0 => Ok(()),
        _ => write(&folder.join("runs.json"), record),
    }
}

/// Writes a file.
///
/// # Errors
/// In words.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The settings that steps have changed, by their paths below `/proc/sys`: what was not shown to
/// pay is left as it is anywhere.
pub(crate) fn changed(climbed: &Climbed) -> Vec<(String, String)> {
    let start = super::Levels::default().settings();
    let settings = climbed.levels.settings().into_iter();
    let changed = settings.filter(|setting| !start.contains(setting));
    let owned = changed.map(|(path, value)| (path.to_owned(), value.to_owned()));
    owned.collect()
}

/// Why a plan's step is made only by name: `check` advises against it, and a bench cannot show why.
const COOKIES_CAUTION: &str = "a server on a network that others can reach needs SYN cookies in a \
    flood, and `turnpike tune check` advises 1";

/// The plan of changed settings.
pub(crate) fn plan(climbing: &Climbing, settings: &[(String, String)]) -> Plan {
    let step = |(path, value): &(String, String)| {
        let name = path.replace('/', ".");
        let is_cautioned = name == "net.ipv4.tcp_syncookies" && value == "0";
        Step {
            caution: is_cautioned.then(|| COOKIES_CAUTION.to_owned()),
            ..Step::new(vec!["climb".to_owned()], Change::setting(&name, value))
        }
    };
    Plan {
        schema: SCHEMA.to_owned(),
        machine: format!("found by tune climb with {}", climbing.server),
        steps: settings.iter().map(step).collect(),
        workers: Vec::new(),
    }
}

/// Pixels of the picture.
const WIDTH: f64 = 760.0;
const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
const TEXT: f64 = 13.0;
/// Where bars begin: right of the longest text.
const LEFT: f64 = 290.0;
/// Room right of the longest bar for its figure.
const FIGURE: f64 = 190.0;

const STYLE: &str = "<style>text{font:13px sans-serif;fill:#222}.kept{fill:#1f77b4}\
    .undone{fill:#c8c8c8}@media(prefers-color-scheme:dark){text{fill:#ddd}.undone{fill:#555}}\
    </style>";

/// The ladder as a picture: a bar for each step, those that stayed in colour.
pub(crate) fn picture(climbed: &Climbed) -> String {
    let mut svg = Svg::new(WIDTH);
    let rates = climbed.tried.iter().map(|tried| tried.rate);
    let highest = rates.fold(climbed.start_rate, f64::max).max(1.0);
    let start = (
        "the start".to_owned(),
        climbed.start_rate,
        true,
        String::new(),
    );
    let steps = climbed.tried.iter().map(|tried| {
        let factor = if tried.obstacle.is_empty() {
            format!("x {:.2}, {}", tried.ratio, short(tried.verdict))
        } else {
            tried.verdict.text().to_owned()
        };
        let is_kept = tried.verdict.is_kept();
        (tried.text.clone(), tried.rate, is_kept, factor)
    });
    for (text, rate, is_kept, factor) in std::iter::once(start).chain(steps) {
        let y = svg.height + ROW;
        let class = if is_kept { "kept" } else { "undone" };
        let length = (WIDTH - LEFT - FIGURE) * rate / highest;
        svg.text("label", (LEFT - 8.0, y), Anchor::End, &fitted(&text));
        let title = format!("{text}: {rate:.0} connections per second");
        svg.rectangle(class, (LEFT, y - BAR + 2.0), (length, BAR), &title);
        let figure = format!("{rate:.0}/s {factor}");
        svg.text("figure", (LEFT + length + 6.0, y), Anchor::Start, &figure);
        svg.height = y;
    }
    svg.height += ROW / 2.0;
    let drawn = svg.finish("ladder", "Connections per second, step by step");
    // A file of its own has no page that brings a style.
    drawn.replacen('>', &format!(">{STYLE}"), 1) + "\n"
}

fn short(verdict: Verdict) -> &'static str {
    if verdict.is_kept() { "kept" } else { "undone" }
}

/// As much of a text as has room left of the bars.
fn fitted(text: &str) -> String {
    if text_width(text, TEXT) <= LEFT - 12.0 {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for letter in text.chars() {
        if text_width(&fitted, TEXT) > LEFT - 30.0 {
            break;
        }
        fitted.push(letter);
    }
    fitted + "..."
}

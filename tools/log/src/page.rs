//! The summary as a page, in the style of all reports.

use std::fmt::Write as _;

use turnpike_load::svg::{Anchor, Svg, escape, ticks};

use crate::summary::{List, Summary};
use crate::text::{COLUMNS, cells, grouped, head, interval, moment, note, share, times, unknown};

/// The pictures: class, width in pixels, and the most bars. One of them is shown, as the window is
/// wide or narrow.
const PICTURES: [(&str, f64, usize); 2] = [("wide", 780.0, 120), ("narrow", 350.0, 40)];

/// The height of a picture's plot, in pixels.
const HEIGHT: f64 = 200.0;

/// The most letters of a name: half of a phone's width.
const NAME_LETTERS_MAX: usize = 32;

/// What the numbers of the axis need on the left, in pixels.
const LEFT: f64 = 60.0;

/// The page.
///
/// # Errors
/// The template could not be filled in.
pub(crate) fn show(summary: &Summary, top: usize) -> Result<String, String> {
    let mut body = format!(
        "<h1>Access log</h1>\n<p class=\"lead\">{}</p>\n",
        head(summary)
    );
    for note in [unknown(summary), times(summary)].into_iter().flatten() {
        // A write to a string cannot fail.
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    body.push_str(&over_time(summary));
    body.push_str("<h2>Statuses</h2>\n<div class=\"scroll\"><table>\n");
    let _ = writeln!(
        body,
        "<thead><tr><th>status</th><th>requests</th><th>share</th></tr></thead>"
    );
    for (status, count) in &summary.statuses {
        let (count, share) = (grouped(*count), share(*count, summary.requests));
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\">{status}</th><td>{count}</td><td>{share}</td></tr>"
        );
    }
    body.push_str("</table></div>\n");
    for list in summary.lists(top) {
        table(&mut body, &list, summary.requests);
    }
    turnpike_load::document("Access log", &body).map_err(|error| error.to_string())
}

fn table(body: &mut String, list: &List<'_>, all: u64) {
    let _ = writeln!(
        body,
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>{}</th>{}</tr></thead>",
        list.title,
        list.thing,
        COLUMNS.map(|name| format!("<th>{name}</th>")).concat()
    );
    for (name, counts) in &list.lines {
        let cells = cells(counts, all).map(|cell| format!("<td>{cell}</td>"));
        let (whole, shown) = (escape(name), escape(&shortened(name)));
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\" title=\"{whole}\">{shown}</th>{}</tr>",
            cells.concat()
        );
    }
    body.push_str("</table></div>\n");
    if let Some(note) = note(list) {
        let _ = writeln!(body, "<p class=\"dim\">{}</p>", escape(&note));
    }
}

/// A name that leaves room for the cells beside it; the page shows the whole one when it is pointed
/// at.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_LETTERS_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// Bars of requests, those with 5xx in another colour.
fn over_time(summary: &Summary) -> String {
    let drawn = PICTURES.map(|(class, width, count)| picture(summary, class, width, count));
    let drawn: Vec<String> = drawn.into_iter().flatten().collect();
    if drawn.is_empty() {
        String::new()
    } else {
        format!(
            "<h2>Requests over time</h2>\n<figure>{}<figcaption>Requests, those with 5xx in red. \
         Times are those of the log's clock.</figcaption></figure>\n",
            drawn.concat()
        )
    }
}

/// A picture of the requests in at most so many intervals, with both axes; `None` without times.
fn picture(summary: &Summary, class: &str, width: f64, count: usize) -> Option<String> {
    let (length_s, intervals) = summary.timeline.at_most(count);
    let ((first_s, _), (last_s, _)) = (intervals.first()?, intervals.last()?);
    let most = intervals.iter().map(|(_, counts)| counts.requests).max()?;
    let most = most.max(1) as f64;
    let title = format!("Requests per {}", interval(length_s));
    let mut picture = Svg::new(width);
    picture.height = HEIGHT + 60.0;
    picture.text("h", (0.0, 14.0), Anchor::Start, &title);
    let y = |count: f64| 30.0 + HEIGHT * (1.0 - count / most);
    for tick in ticks(0.0, most, 4) {
        picture.line("g", (LEFT, y(tick)), (width, y(tick)));
        let label = grouped(tick as u64);
        picture.text("a", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &label);
    }
    let slots = ((last_s - first_s) / length_s + 1) as f64;
    let slot = (width - LEFT) / slots;
    for (start_s, counts) in &intervals {
        let x = LEFT + ((start_s - first_s) / length_s) as f64 * slot;
        let title = format!(
            "{}: {} requests, {} with 5xx",
            moment(*start_s),
            grouped(counts.requests),
            grouped(counts.failed)
        );
        for (class, count) in [("b c1", counts.requests), ("b c7", counts.failed)] {
            let height = HEIGHT * count as f64 / most;
            if height > 0.0 {
                let size = ((slot * 0.85).max(1.0), height);
                picture.rectangle(class, (x, y(count as f64)), size, &title);
            }
        }
    }
    let base = HEIGHT + 50.0;
    picture.text("a", (LEFT, base), Anchor::Start, &moment(*first_s));
    if last_s > first_s {
        picture.text("a", (width, base), Anchor::End, &moment(*last_s));
    }
    Some(picture.finish(class, &title))
}

//! report.html: one file without external requests and without scripts; for phones and wide
//! windows, dark and light as the reader's system.

use super::picture::{self, escape};
use super::words::{self, Table};
use crate::matrix::Dimension;
use crate::metric;
use crate::record::Run;
use crate::statistics::Verdict;
use crate::study::Study;
use crate::summary::{ClaimSummary, Summary};

/// The style sheet.
const STYLE: &str = turnpike_load::REPORT_STYLE;

/// The page.
pub(super) fn page(
    study: &Study,
    dimensions: &[Dimension],
    summary: &Summary,
    runs: &[Run],
) -> String {
    let header = &summary.header;
    let title = escape(&study.title);
    let body = [
        head(study, summary),
        contents(study, summary),
        claims(dimensions, summary),
        pictures(study, dimensions, summary),
        published(study, summary),
        cases(summary),
        notes(study, summary),
        environment(summary, runs.len()),
    ];
    document(
        &format!("{title} · {}", escape(&header.date)),
        &body.concat(),
    )
}

/// The page of a comparison of two runs.
pub(super) fn comparison(study: &str, notes: &[String], table: &Table) -> String {
    let notes: String = notes
        .iter()
        .map(|note| format!("<p>{}</p>\n", escape(note)))
        .collect();
    let title = escape(&format!("{study}: two runs compared"));
    let body = format!("<h1>{title}</h1>\n{notes}{}", html(table));
    document(&title, &body)
}

/// A whole page.
fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         </main>\n</body>\n</html>\n"
    )
}

fn head(study: &Study, summary: &Summary) -> String {
    let header = &summary.header;
    let mut chips = vec![
        header.date.clone(),
        header.machine.clone(),
        header.topology.clone(),
        format!("seed {}", header.seed),
    ];
    if header.quick {
        chips.push("quick run, provisional".to_owned());
    }
    if header.shared_cpus {
        chips.push("driver shares CPUs".to_owned());
    }
    if summary.runs < summary.planned {
        chips.push(format!("{} of {} runs", summary.runs, summary.planned));
    }
    let chips: String = chips
        .iter()
        .map(|chip| format!("<li>{}</li>", escape(chip)))
        .collect();
    let banner = match summary.claims.is_empty() {
        true => String::new(),
        false => format!(
            "<p class=\"banner\">{}</p>\n",
            escape(words::outcome(summary).trim_end())
        ),
    };
    let source = match &study.source_url {
        Some(url) => format!("<a href=\"{}\">{}</a>", escape(url), escape(&study.source)),
        None => escape(&study.source),
    };
    format!(
        "<header>\n<p class=\"study\">{}</p>\n<h1>{}</h1>\n<ul class=\"chips\">{chips}</ul>\n\
         <p class=\"lead\">{}</p>\n<p class=\"dim\">Source: {source}. {}</p>\n{banner}</header>\n",
        escape(&header.study),
        escape(&study.title),
        prose(study.about.trim()),
        escape(&words::extent(summary))
    )
}

/// Links to the sections, and to the files beside the page.
fn contents(study: &Study, summary: &Summary) -> String {
    let sections = [
        ("seen", "What was seen", !summary.claims.is_empty()),
        ("pictures", "Pictures", !study.plot.is_empty()),
        (
            "published",
            "Published beside ours",
            !study.published.is_empty(),
        ),
        ("cases", "All cases", true),
        ("environment", "Environment", true),
    ];
    let sections = sections.iter().filter(|(_, _, is_there)| *is_there);
    let links: String = sections
        .map(|(id, title, _)| format!("<a href=\"#{id}\">{title}</a>\n"))
        .collect();
    format!(
        "<nav aria-label=\"Contents\">\n{links}<a href=\"raw.csv\">raw.csv</a>\n\
         <a href=\"summary.json\">summary.json</a>\n<a href=\"README.md\">README.md</a>\n</nav>\n"
    )
}

fn claims(dimensions: &[Dimension], summary: &Summary) -> String {
    if summary.claims.is_empty() {
        return String::new();
    }
    let varied = words::factors(dimensions, summary);
    let mut rows = String::new();
    let mut last = "";
    for claim in &summary.claims {
        if claim.text != last {
            let metric = metric::find(&claim.metric).map_or("", |metric| metric.title);
            rows.push_str(&format!(
                "<div class=\"claim\"><h3>{}</h3><p class=\"dim\">ratio of {}</p></div>\n",
                prose(&claim.text),
                escape(metric)
            ));
        }
        last = &claim.text;
        rows.push_str(&claim_row(claim, &varied));
    }
    format!(
        "<section id=\"seen\">\n\
         <h2>What was seen</h2>\n\
         <p class=\"dim\">Each dot is the ratio of two cases, \
         paired by round, with its 95 % interval, on a line from ¼ to 4; the diamond is what was \
         published. A triangle at an end stands for what lies beyond it. Where the interval covers \
         1, no difference is shown.</p>\n<div class=\"claims\">\n<div class=\"answer\">\
         <span class=\"where\"></span>{}<span class=\"dim\">ratio</span><span></span></div>\n\
         {rows}</div>\n</section>\n",
        picture::forest_scale()
    )
}

fn claim_row(claim: &ClaimSummary, varied: &[String]) -> String {
    let class = match claim.answer.verdict {
        Verdict::Seen => "yes",
        Verdict::Opposite => "no",
        Verdict::NoDifference => "same",
        Verdict::NotUsable => "none",
        Verdict::Above | Verdict::Below => "open",
    };
    let place = match words::place(&claim.at, varied) {
        place if place.is_empty() => "all".to_owned(),
        place => place,
    };
    let published = claim.published.map(|ratio| {
        let ratio = words::plain_ratio(ratio);
        format!("<br><span class=\"dim\">published {ratio}</span>")
    });
    let published = published.unwrap_or_default();
    format!(
        "<div class=\"answer\"><span class=\"where\">{}</span>{}<span class=\"ratio\">{}{published}\
         </span><span class=\"verdict {class}\">{}</span></div>\n",
        escape(&place),
        picture::forest(claim),
        escape(&words::ratio(claim)),
        words::verdict_text(claim)
    )
}

/// Text in which `code` is marked as Markdown does.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => html.push_str(&escape(part)),
            _ => html.push_str(&format!("<code>{}</code>", escape(part))),
        }
    }
    html
}

fn pictures(study: &Study, dimensions: &[Dimension], summary: &Summary) -> String {
    let figures: String = study
        .plot
        .iter()
        .flat_map(|plot| picture::pictures(plot, dimensions, summary))
        .map(|picture| {
            format!(
                "<figure>\n<h3>{}</h3>\n{}\n<figcaption>{}</figcaption>\n</figure>\n",
                escape(&picture.title),
                picture.html,
                escape(&picture.caption)
            )
        })
        .collect();
    match figures.is_empty() {
        true => String::new(),
        false => format!(
            "<section id=\"pictures\">\n\
         <h2>Pictures</h2>\n{figures}</section>\n"
        ),
    }
}

fn published(study: &Study, summary: &Summary) -> String {
    let mut text = String::new();
    for published in &study.published {
        let machine = escape(&published.machine);
        text.push_str(&format!("<p class=\"dim\">Measured on: {machine}</p>\n"));
        for (title, table) in words::published(published, summary) {
            text.push_str(&format!("<h3>{}</h3>\n{}", escape(&title), html(&table)));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!(
            "<section id=\"published\">\n\
         <h2>Published beside ours</h2>\n\
         <p class=\"dim\">Absolute figures do not \
             carry over between machines; the ratio to the first row (×) is what can be \
             compared.</p>\n{text}</section>\n"
        ),
    }
}

fn cases(summary: &Summary) -> String {
    let missing: String = words::not_available(summary)
        .iter()
        .map(|line| format!("<p class=\"dim\">{}</p>\n", escape(line)))
        .collect();
    format!(
        "<section id=\"cases\">\n\
         <h2>All cases</h2>\n\
         <p class=\"dim\">Median (95 % interval).</p>\n{}\
         <h3>The host meanwhile</h3>\n{}{missing}</section>\n",
        html(&words::cases(summary)),
        html(&words::host(summary))
    )
}

fn notes(study: &Study, summary: &Summary) -> String {
    let notes: String = words::notes(study, summary)
        .iter()
        .map(|note| format!("<li>{}</li>\n", prose(note)))
        .collect();
    match notes.is_empty() {
        true => notes,
        false => {
            format!(
                "<section id=\"notes\">\n\
         <h2>Notes</h2>\n<ul>\n{notes}</ul>\n</section>\n"
            )
        }
    }
}

fn environment(summary: &Summary, runs: usize) -> String {
    let header = &summary.header;
    let mut text = String::new();
    for section in &header.environment {
        let rows: String = section
            .rows
            .iter()
            .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
            .collect();
        text.push_str(&format!(
            "<details><summary>{}</summary><dl>{rows}</dl></details>\n",
            escape(&section.title)
        ));
    }
    for contender in &header.contenders {
        let configurations: String = contender
            .configurations
            .iter()
            .map(|(name, text)| {
                let text = escape(text.trim());
                format!("<p class=\"dim\">{}</p><pre>{text}</pre>", escape(name))
            })
            .collect();
        text.push_str(&format!(
            "<details><summary>{} <span class=\"dim\">{}</span></summary>\
             <p class=\"dim\">started with</p><pre>{}</pre><p class=\"dim\">driven with</p>\
             <pre>{}</pre>{configurations}</details>\n",
            escape(&contender.name),
            escape(&contender.version),
            escape(&contender.command),
            escape(&contender.driver)
        ));
    }
    format!(
        "<section id=\"environment\">\n\
         <h2>Environment</h2>\n{text}\
         <details><summary>The study's file</summary>\
         <pre>{}</pre></details>\n<p>To run it again:</p>\n<pre>{}</pre>\n\
         <p class=\"dim\">Made from {runs} runs in raw.csv; every figure is in summary.json.</p>\n\
         </section>\n",
        escape(&header.study_text),
        escape(&words::command(summary))
    )
}

fn html(table: &Table) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        let cell = |(index, cell): (usize, &String)| match index {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<{tag}>{}</{tag}>", escape(cell)),
        };
        cells.iter().enumerate().map(cell).collect()
    };
    let rows: String = table
        .rows
        .iter()
        .map(|row| format!("<tr>{}</tr>\n", cells("td", row)))
        .collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n\
         {rows}</tbody>\n</table></div>\n",
        cells("th", &table.head)
    )
}

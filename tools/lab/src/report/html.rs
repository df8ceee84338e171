//! report.html: one file without external requests and without scripts; for phones and wide
//! windows, dark and light as the reader's system. The markup stands in `templates`, which escape
//! every value; pictures and tables are markup already.

use askama::Template;

use super::goals;
use super::picture::{self, Picture};
use super::words::{self, Table};
use crate::matrix::Dimension;
use crate::metric;
use crate::record::Run;
use crate::statistics::Verdict;
use crate::study::Study;
use crate::summary::{ClaimSummary, Summary};

/// The content of the page.
#[derive(Template)]
#[template(path = "report.html")]
struct Report<'a> {
    study: &'a Study,
    summary: &'a Summary,
    chips: Vec<String>,
    /// Markup.
    about: String,
    extent: String,
    outcome: &'a str,
    /// The sections that are there: anchor and title.
    contents: Vec<(&'static str, &'static str)>,
    /// A drawing.
    scale: String,
    claims: Vec<Claim>,
    pictures: Vec<Picture>,
    published: Vec<Published<'a>>,
    /// Tables, as markup; empty where there is none.
    goals: String,
    calls: String,
    cases: String,
    host: String,
    missing: Vec<String>,
    /// Markup.
    notes: Vec<String>,
    command: String,
    runs: usize,
}

/// A claim at one place.
struct Claim {
    /// What is claimed, as markup; `None` if it is the claim of the row before.
    text: Option<String>,
    metric: &'static str,
    place: String,
    drawing: String,
    ratio: String,
    published: Option<String>,
    class: &'static str,
    verdict: &'static str,
}

/// Figures that somebody published.
struct Published<'a> {
    machine: &'a str,
    /// Titles, and tables as markup.
    tables: Vec<(String, String)>,
}

/// Text in which `code` is marked as Markdown does.
#[derive(Template)]
#[template(path = "prose.html")]
struct Prose<'a> {
    text: &'a str,
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableMarkup<'a> {
    head: &'a [String],
    rows: &'a [Vec<String>],
}

#[derive(Template)]
#[template(path = "comparison.html")]
struct Comparison<'a> {
    title: &'a str,
    notes: &'a [String],
    /// Markup.
    table: String,
}

/// The page.
///
/// # Errors
/// A template could not be filled in, which none of the values here can cause.
pub(super) fn page(
    study: &Study,
    dimensions: &[Dimension],
    summary: &Summary,
    runs: &[Run],
) -> Result<String, askama::Error> {
    let outcome = words::outcome(summary);
    let plots = study.plot.iter();
    let notes = words::notes(study, summary);
    let report = Report {
        study,
        summary,
        chips: chips(summary),
        about: prose(study.about.trim())?,
        extent: words::extent(summary),
        outcome: outcome.trim_end(),
        contents: contents(study, summary),
        scale: picture::forest_scale(),
        claims: claims(dimensions, summary)?,
        pictures: plots
            .flat_map(|plot| picture::pictures(plot, dimensions, summary))
            .collect(),
        published: published(study, summary)?,
        goals: if summary.goals.is_empty() {
            String::new()
        } else {
            table(&goals::table(summary))?
        },
        calls: match goals::calls(summary) {
            Some(calls) => table(&calls)?,
            None => String::new(),
        },
        cases: table(&words::cases(summary))?,
        host: table(&words::host(summary))?,
        missing: words::not_available(summary),
        notes: notes
            .iter()
            .map(|note| prose(note))
            .collect::<Result<_, _>>()?,
        command: words::command(summary),
        runs: runs.len(),
    };
    let title = format!("{} · {}", study.title, summary.header.date);
    turnpike_load::document(&title, &report.render()?)
}

/// The page of a comparison of two runs.
///
/// # Errors
/// As [`page`].
pub(super) fn comparison(
    study: &str,
    notes: &[String],
    compared: &Table,
) -> Result<String, askama::Error> {
    let title = format!("{study}: two runs compared");
    let content = Comparison {
        title: &title,
        notes,
        table: table(compared)?,
    };
    turnpike_load::document(&title, &content.render()?)
}

fn chips(summary: &Summary) -> Vec<String> {
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
    chips
}

/// The sections that the page has.
fn contents(study: &Study, summary: &Summary) -> Vec<(&'static str, &'static str)> {
    let sections = [
        ("goals", "Goals", !summary.goals.is_empty()),
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
    let sections = sections.into_iter().filter(|(_, _, is_there)| *is_there);
    sections.map(|(id, title, _)| (id, title)).collect()
}

fn claims(dimensions: &[Dimension], summary: &Summary) -> Result<Vec<Claim>, askama::Error> {
    let varied = words::factors(dimensions, summary);
    let mut claims = Vec::new();
    let mut last = "";
    for claim in &summary.claims {
        let text = if claim.text == last {
            None
        } else {
            Some(prose(&claim.text)?)
        };
        last = &claim.text;
        claims.push(Claim {
            text,
            ..row(claim, &varied)
        });
    }
    Ok(claims)
}

fn row(claim: &ClaimSummary, varied: &[String]) -> Claim {
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
    Claim {
        text: None,
        metric: metric::find(&claim.metric).map_or("", |metric| metric.title),
        place,
        drawing: picture::forest(claim),
        ratio: words::ratio(claim),
        published: claim.published.map(words::plain_ratio),
        class,
        verdict: words::verdict_text(claim),
    }
}

fn published<'a>(study: &'a Study, summary: &Summary) -> Result<Vec<Published<'a>>, askama::Error> {
    let mut sources = Vec::new();
    for source in &study.published {
        let mut tables = Vec::new();
        for (title, figures) in words::published(source, summary) {
            tables.push((title, table(&figures)?));
        }
        sources.push(Published {
            machine: &source.machine,
            tables,
        });
    }
    Ok(sources)
}

pub(super) fn prose(text: &str) -> Result<String, askama::Error> {
    Prose { text }.render()
}

fn table(table: &Table) -> Result<String, askama::Error> {
    let Table { head, rows } = table;
    TableMarkup { head, rows }.render()
}

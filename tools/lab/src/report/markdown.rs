//! README.md: the run in plain words.

use super::goals;
use super::words::{self, Table};
use crate::matrix::Dimension;
use crate::metric;
use crate::study::Study;
use crate::summary::Summary;

/// The page.
pub(super) fn page(study: &Study, dimensions: &[Dimension], summary: &Summary) -> String {
    let header = &summary.header;
    let mut text = format!(
        "# {}\n\n{}, run on {} ({}, {}). Source: {}.\n\n{}\n\n{}\n",
        study.title,
        header.study,
        header.date,
        header.machine,
        header.topology,
        study.source,
        study.about.trim(),
        words::extent(summary)
    );
    text.push_str(
        "\n`report.html` has the pictures; `turnpike lab report FOLDER` draws it again.\n",
    );
    if !summary.goals.is_empty() {
        text.push_str(&format!(
            "\n## Goals\n\n{}\n{}\n",
            markdown(&goals::table(summary)),
            words::GOALS
        ));
    }
    text.push_str("\n## What was seen\n\n");
    text.push_str(&words::outcome(summary));
    text.push_str(&findings(dimensions, summary));
    for note in words::notes(study, summary) {
        text.push_str(&format!("- {note}\n"));
    }
    for (index, published) in study.published.iter().enumerate() {
        if index == 0 {
            text.push_str(
                "\n## Published beside ours\n\nAbsolute figures do not carry over between \
                 machines; the ratios to the first row (×) are what can be compared.\n",
            );
        }
        text.push_str(&format!("\nMeasured on: {}.\n", published.machine));
        for (title, table) in words::published(published, summary) {
            text.push_str(&format!("\n{title}\n\n{}", markdown(&table)));
        }
    }
    text.push_str(&format!(
        "\n## All cases\n\nMedian (95 % interval).\n\n{}\n{}## The host meanwhile\n\n{}",
        markdown(&words::cases(summary)),
        calls(summary),
        markdown(&words::host(summary))
    ));
    for line in words::not_available(summary) {
        text.push_str(&format!("\n{line}\n"));
    }
    text.push_str(&environment(summary));
    text
}

/// The claims and laws, a line each.
fn findings(dimensions: &[Dimension], summary: &Summary) -> String {
    let varied = words::factors(dimensions, summary);
    let mut text = String::new();
    for claim in &summary.claims {
        let place = words::place(&claim.at, &varied);
        let place = if place.is_empty() {
            place
        } else {
            format!(" ({place})")
        };
        let metric = metric::find(&claim.metric).map_or("", |metric| metric.title);
        text.push_str(&format!(
            "- **{}**: {}{place}. Ratio of {metric}: {}.\n",
            words::verdict(claim),
            claim.text,
            words::ratio(claim)
        ));
    }
    for law in &summary.laws {
        let place = words::place(&law.at, &varied);
        text.push_str(&format!(
            "- Scaling with {} ({place}): {}.\n",
            law.along,
            words::law(law)
        ));
    }
    text.push_str(
        "\nA ratio is the geometric mean over the rounds in which both runs may be used, with its \
         95 % interval; where that covers 1 there is no difference shown.\n\n## Notes\n\n",
    );
    text
}

fn calls(summary: &Summary) -> String {
    let table = goals::calls(summary);
    let table = table.map(|table| format!("## System calls\n\n{}\n", markdown(&table)));
    table.unwrap_or_default()
}

fn environment(summary: &Summary) -> String {
    let mut text = String::from("\n## Environment\n");
    for section in &summary.header.environment {
        text.push_str(&format!("\n{}:\n\n", section.title));
        for (name, value) in &section.rows {
            text.push_str(&format!("- {name}: {value}\n"));
        }
    }
    text.push_str("\nContenders:\n\n");
    for contender in &summary.header.contenders {
        text.push_str(&format!("- {}: {}\n", contender.name, contender.version));
    }
    text.push_str(&format!(
        "\nTheir configurations and command lines are in summary.json and in the report. \
         To run it again:\n\n    {}\n",
        words::command(summary)
    ));
    text
}

fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&table.head);
    text.push_str(&format!("|{}\n", "---|".repeat(table.head.len())));
    for row in &table.rows {
        text.push_str(&line(row));
    }
    text
}

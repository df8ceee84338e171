//! The pictures of a report. Each is drawn twice, for a wide window and for a phone, and the page
//! shows the one that fits: shrinking one drawing would shrink its text.

mod bars;
mod curves;
mod forest;
mod shares;

pub(super) use forest::{forest, forest_scale};

use std::collections::BTreeMap;

use crate::matrix::{CONTENDER, Dimension, plain};
use crate::metric;
use crate::study::model::{Plot, PlotKind};
use crate::summary::{CaseSummary, Summary};
use turnpike_load::svg;

/// Widths that pictures are drawn for, with the class that the style sheet shows them by.
const WIDTHS: [(f64, &str); 2] = [(760.0, "wide"), (350.0, "narrow")];

/// Colours of series that the style sheet has.
const COLOURS: usize = 8;

/// A picture with its title, and what stands below it.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) html: String,
    /// A line below, empty where there is none.
    pub(super) caption: String,
}

/// What a plot of the study becomes: one picture for each combination of what it leaves free.
pub(super) fn pictures(plot: &Plot, dimensions: &[Dimension], summary: &Summary) -> Vec<Picture> {
    let at = plain(&plot.at);
    let cases: Vec<&CaseSummary> = summary
        .cases
        .iter()
        .filter(|case| case.case().is_at(&at))
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let along = along(plot, dimensions);
    if plot.kind == PlotKind::Shares {
        return vec![shares::draw(plot, &cases)];
    }
    facets(&cases, &along)
        .into_iter()
        .map(|(place, cases)| {
            let mut title = plot.title.clone();
            if !place.is_empty() {
                title = format!("{title}, {place}");
            }
            match plot.kind {
                PlotKind::Bars => bars::draw(&title, plot, &along, dimensions, &cases),
                PlotKind::Scaling => curves::scaling(&title, plot, &along, &cases, summary),
                _ => curves::distribution(&title, &along, &cases),
            }
        })
        .collect()
}

/// The dimension along a plot: its own, else the first factor.
fn along(plot: &Plot, dimensions: &[Dimension]) -> String {
    let own = plot.along.as_ref().map(|along| along.get_ref().clone());
    let first = dimensions.get(1).map(|dimension| dimension.name.clone());
    own.or(first).unwrap_or_else(|| CONTENDER.to_owned())
}

/// Cases by the levels of what is neither along the plot nor the contender; levels that all share
/// are not named.
fn facets<'a>(cases: &[&'a CaseSummary], along: &str) -> Vec<(String, Vec<&'a CaseSummary>)> {
    let mut levels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, level) in cases.iter().flat_map(|case| &case.at) {
        let known = levels.entry(name).or_default();
        if !known.contains(&level.as_str()) {
            known.push(level);
        }
    }
    let mut facets: Vec<(String, Vec<&CaseSummary>)> = Vec::new();
    for case in cases {
        let words: Vec<String> = case
            .at
            .iter()
            .filter(|(name, _)| name != CONTENDER && name != along)
            .filter(|(name, _)| {
                levels
                    .get(name.as_str())
                    .is_some_and(|levels| levels.len() > 1)
            })
            .map(|(name, level)| format!("{name} {level}"))
            .collect();
        let place = words.join(", ");
        match facets.iter_mut().find(|(known, _)| *known == place) {
            Some((_, members)) => members.push(case),
            None => facets.push((place, vec![case])),
        }
    }
    facets
}

/// The names along a dimension, in the order of the cases.
fn names<'a>(cases: &[&'a CaseSummary], dimension: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, level) in cases
        .iter()
        .flat_map(|case| &case.at)
        .filter(|(name, _)| name == dimension)
    {
        if !names.contains(&level.as_str()) {
            names.push(level);
        }
    }
    names
}

fn level<'a>(case: &'a CaseSummary, dimension: &str) -> &'a str {
    let found = case.at.iter().find(|(name, _)| name == dimension);
    found.map_or("", |(_, level)| level)
}

/// Whether none of a case's runs may be used for a claim.
fn is_marked(case: &CaseSummary) -> bool {
    case.used == 0
}

fn colour(index: usize) -> usize {
    index % COLOURS + 1
}

/// The metric of a plot.
fn metric_of(plot: &Plot) -> Option<&'static metric::Metric> {
    metric::find(plot.metric.as_ref()?.get_ref())
}

/// A legend in lines that fit; returns where it ends. Each entry: class of its swatch, and text.
fn legend(svg: &mut svg::Svg, entries: &[(String, String)], top: f64) -> f64 {
    /// Swatch, gap and gap to the next entry.
    const SWATCH: f64 = 18.0;
    const GAP: f64 = 16.0;
    const LINE: f64 = 20.0;
    let (mut x, mut y) = (0.0, top + 12.0);
    for (class, text) in entries {
        let width = SWATCH + 4.0 + svg::text_width(text, 13.0);
        if x > 0.0 && x + width > svg.width {
            (x, y) = (0.0, y + LINE);
        }
        svg.line(class, (x, y - 4.0), (x + SWATCH, y - 4.0));
        svg.text("t", (x + SWATCH + 5.0, y), svg::Anchor::Start, text);
        x += width + GAP;
    }
    y + 8.0
}

/// One drawing for each width.
fn both(title: &str, draw: impl Fn(&mut svg::Svg)) -> String {
    WIDTHS
        .iter()
        .map(|(width, class)| {
            let mut svg = svg::Svg::new(*width);
            draw(&mut svg);
            svg.finish(class, title)
        })
        .collect()
}

//! What README and report both say: sentences and tables, without any mark-up.

use crate::matrix::{CONTENDER, Dimension, plain};
use crate::metric::{self, METRICS, Metric};
use crate::statistics::{Answer, Verdict};
use crate::study::Study;
use crate::study::model::{Expect, Published};
use crate::summary::{CaseSummary, ClaimSummary, LawSummary, MetricSummary, Summary, varied};

/// A table without mark-up.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The metrics of the main table of cases.
const MAIN: &[&str] = &[
    "requests_per_s",
    "latency_mean_us",
    "latency_stdev_us",
    "latency_p50_us",
    "latency_p99_us",
    "server_cpu_us",
    "server_core_us",
    "system_calls",
    "connection_bytes",
    "contentions_per_s",
    "bits_per_s",
    "errors",
];

/// How many runs, how long, and how many may be used.
pub(super) fn extent(summary: &Summary) -> String {
    let header = &summary.header;
    let used: usize = summary.cases.iter().map(|case| case.used).sum();
    let mut text = format!(
        "{} of {} s after {} s of warm-up: {}, {} each, interleaved",
        counted(summary.runs, "run"),
        header.seconds,
        header.warmup_s,
        counted(summary.cases.len(), "case"),
        counted(header.repetitions as usize, "repetition")
    );
    if summary.runs < summary.planned {
        text.push_str(&format!(" ({} were planned)", summary.planned));
    }
    text.push_str(&format!(
        ". {} may be used for claims",
        counted(used, "run")
    ));
    let marked = summary.runs - used;
    match marked {
        0 => text.push('.'),
        1 => text.push_str(&format!(", 1 is marked: {}.", marks(summary))),
        _ => text.push_str(&format!(", {marked} are marked: {}.", marks(summary))),
    }
    text
}

fn marks(summary: &Summary) -> String {
    let mut all: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for (kind, count) in summary.cases.iter().flat_map(|case| &case.marks) {
        *all.entry(kind).or_default() += count;
    }
    let texts: Vec<String> = all
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    texts.join(", ")
}

/// A number of things: `1 pair`, `2 pairs`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// What came out, as a paragraph: how many comparisons there are, and how many with each answer;
/// empty where nothing is compared.
pub(super) fn outcome(summary: &Summary) -> String {
    if summary.claims.is_empty() {
        return String::new();
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for claim in &summary.claims {
        let answer = verdict_text(claim);
        match counts.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, count)) => *count += 1,
            None => counts.push((answer, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<String> = counts
        .iter()
        .map(|(answer, count)| format!("{count} {answer}"))
        .collect();
    let all = counted(summary.claims.len(), "comparison");
    let text = format!("{all}: {}.", counts.join(", "));
    if summary.header.quick {
        format!("{text} {PROVISIONAL}\n\n")
    } else {
        text + "\n\n"
    }
}

/// How the table of goals is to be read.
pub(super) const GOALS: &str = "Medians, and geometric means of the ratios of the rounds, with \
                                95 % intervals. A goal is missed when its figure is above the \
                                limit before it is rounded.";

/// What a quick run's figures are worth.
const PROVISIONAL: &str = "This was a quick run: all figures are provisional, marked runs are \
                           included, and nothing is proved. Run it without \
                           --quick for figures that count.";

/// Caveats of the figures, for readers.
pub(super) fn notes(study: &Study, summary: &Summary) -> Vec<String> {
    let mut notes: Vec<String> = study.caveats.clone();
    if summary.header.quick {
        notes.push("A quick run: it shows that everything works, and little else.".to_owned());
    }
    if summary.header.shared_cpus {
        notes.push(
            "Driver and server share CPUs. Ratios of rates at full speed are ratios of the whole \
             machine's work for a request, the driver's part included, so they understate the \
             differences."
                .to_owned(),
        );
    }
    notes.extend(summary.header.notes.iter().cloned());
    let without = study.without.iter();
    notes.extend(without.map(|without| format!("{}.", without.why)));
    notes
}

/// What a claim leaves free, in words.
pub(super) fn place(at: &[(String, String)], varied: &[String]) -> String {
    let words: Vec<String> = at
        .iter()
        .filter(|(name, _)| name == CONTENDER || varied.contains(name))
        .map(|(name, level)| {
            if name == CONTENDER {
                level.clone()
            } else {
                format!("{name} {level}")
            }
        })
        .collect();
    words.join(", ")
}

/// The ratio with its interval.
pub(super) fn ratio(claim: &ClaimSummary) -> String {
    ratio_text(&claim.answer)
}

/// A ratio with its interval.
pub(super) fn ratio_text(answer: &Answer) -> String {
    match (answer.ratio, answer.interval) {
        (Some(ratio), Some(bounds)) => format!(
            "{} ({} to {})",
            plain_ratio(ratio),
            plain_ratio(bounds.low),
            plain_ratio(bounds.high)
        ),
        (Some(ratio), None) => {
            let pairs = counted(answer.pairs, "pair");
            format!("{}, from {pairs} only", plain_ratio(ratio))
        }
        _ => "no pair of runs can be used".to_owned(),
    }
}

/// Three digits that matter.
pub(super) fn plain_ratio(ratio: f64) -> String {
    match ratio {
        big if big >= 100.0 => format!("{big:.0}"),
        big if big >= 10.0 => format!("{big:.1}"),
        middle if middle >= 0.1 => format!("{middle:.2}"),
        small => format!("{small:.3}"),
    }
}

/// The verdict in words.
pub(super) fn verdict_text(claim: &ClaimSummary) -> &'static str {
    match (claim.expect, claim.answer.verdict) {
        (Expect::Same, Verdict::NoDifference) => "no difference shown, as claimed",
        (_, verdict) => verdict.text(),
    }
}

/// The verdict, with what the study saw.
pub(super) fn verdict(claim: &ClaimSummary) -> String {
    let seen = verdict_text(claim);
    match (claim.published, claim.answer.verdict) {
        (Some(ratio), _) => format!("{seen}; published {}", plain_ratio(ratio)),
        (None, Verdict::NotUsable) => {
            format!("{seen}: {}", counted(claim.answer.pairs, "usable pair"))
        }
        (None, _) => seen.to_owned(),
    }
}

/// The names of the factors that vary in this run.
pub(super) fn factors(dimensions: &[Dimension], summary: &Summary) -> Vec<String> {
    varied(dimensions, &summary.cases)
}

/// A median with its interval.
pub(super) fn figure(metric: &Metric, summary: Option<&MetricSummary>) -> String {
    match summary {
        Some(MetricSummary::Known {
            median,
            interval: Some(bounds),
            ..
        }) if bounds.low < bounds.high => format!(
            "{} ({} to {})",
            metric.show(*median),
            bare(metric, bounds.low),
            bare(metric, bounds.high)
        ),
        Some(MetricSummary::Known { median, .. }) => metric.show(*median),
        Some(MetricSummary::NotAvailable(why)) => format!("not available: {why}"),
        None => "not available".to_owned(),
    }
}

/// A value without its unit where that stands beside it already.
fn bare(metric: &Metric, value: f64) -> String {
    metric.show(value)
}

/// All cases with the metrics that matter most.
pub(super) fn cases(summary: &Summary) -> Table {
    table_of(summary, MAIN)
}

/// What the host did.
pub(super) fn host(summary: &Summary) -> Table {
    let rest: Vec<&str> = METRICS
        .iter()
        .map(|metric| metric.name)
        .filter(|name| !MAIN.contains(name) && !name.starts_with("latency_"))
        .collect();
    let mut table = table_of(summary, &rest);
    table.head.push("busy, softirq by CPU".to_owned());
    for (row, case) in table.rows.iter_mut().zip(&summary.cases) {
        let cores: Vec<String> = case
            .cores
            .iter()
            .map(|core| {
                let (busy, softirq) = (core.busy * 100.0, core.softirq * 100.0);
                format!("CPU {}: {busy:.0} %, {softirq:.0} %", core.cpu)
            })
            .collect();
        row.push(cores.join("; "));
    }
    table
}

fn table_of(summary: &Summary, names: &[&str]) -> Table {
    // A column without any value is explained once, below the table.
    let is_known = |name: &&&str| {
        let mut figures = summary.cases.iter().filter_map(|case| case.metric(name));
        figures.any(|figure| figure.median().is_some())
    };
    let metrics: Vec<&Metric> = names
        .iter()
        .filter(is_known)
        .filter_map(|name| metric::find(name))
        .collect();
    let mut head = vec!["case".to_owned(), "runs used".to_owned()];
    head.extend(metrics.iter().map(|metric| metric.title.to_owned()));
    let row = |case: &CaseSummary| {
        let mut row = vec![
            case.case().label(),
            format!("{} of {}", case.used, case.runs),
        ];
        let cells = metrics
            .iter()
            .map(|metric| figure(metric, case.metric(metric.name)));
        row.extend(cells);
        row
    };
    Table {
        head,
        rows: summary.cases.iter().map(row).collect(),
    }
}

/// The values that no case has, and the reasons.
pub(super) fn not_available(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for metric in METRICS {
        let figures: Vec<&MetricSummary> = summary
            .cases
            .iter()
            .filter_map(|case| case.metric(metric.name))
            .collect();
        if let Some(MetricSummary::NotAvailable(why)) = figures.first()
            && figures.iter().all(|figure| figure.median().is_none())
        {
            lines.push(format!("{}: not available: {why}", metric.title));
        }
    }
    if let Some(case) = summary.cases.first()
        && summary.cases.iter().all(|case| case.workers.is_err())
        && let Err(why) = &case.workers
    {
        lines.push(format!("connections by worker: not available: {why}"));
    }
    lines
}

/// A published table beside ours: each value with its ratio to the first row that has one.
pub(super) fn published(published: &Published, summary: &Summary) -> Vec<(String, Table)> {
    let mut names: Vec<&str> = Vec::new();
    for name in published.row.iter().flat_map(|row| row.figures.keys()) {
        if !names.contains(&name.get_ref().as_str()) {
            names.push(name.get_ref());
        }
    }
    let mut contenders: Vec<&str> = Vec::new();
    for case in &summary.cases {
        if let Some((_, name)) = case.at.iter().find(|(name, _)| name == CONTENDER)
            && !contenders.contains(&name.as_str())
        {
            contenders.push(name);
        }
    }
    names
        .into_iter()
        .filter_map(metric::find)
        .map(|metric| {
            let columns = contenders.iter().copied();
            let table = of_metric(published, summary, metric, columns.collect());
            (format!("{}: {}", published.title, metric.title), table)
        })
        .collect()
}

fn of_metric(
    published: &Published,
    summary: &Summary,
    metric: &Metric,
    contenders: Vec<&str>,
) -> Table {
    // A contender that no row is compared with gets no column.
    let ours = |row: &crate::study::model::PublishedRow, contender: &str| -> Option<f64> {
        let mut at = plain(&published.at);
        at.extend(plain(row.at.as_ref()?));
        let fixed = at.get(CONTENDER).map(String::as_str);
        if fixed.is_some_and(|fixed| fixed != contender) {
            return None;
        }
        at.insert(CONTENDER.to_owned(), contender.to_owned());
        let case = summary.cases.iter().find(|case| case.case().is_at(&at))?;
        case.metric(metric.name)?.median()
    };
    let contenders: Vec<&str> = contenders
        .into_iter()
        .filter(|contender| {
            published
                .row
                .iter()
                .any(|row| ours(row, contender).is_some())
        })
        .collect();
    let mut head = vec![String::new(), "published".to_owned()];
    head.extend(contenders.iter().map(|name| format!("{name} here")));
    let theirs = |row: &crate::study::model::PublishedRow| {
        let found = row
            .figures
            .iter()
            .find(|(name, _)| name.get_ref() == metric.name);
        found.map(|(_, value)| *value)
    };
    let first = published.row.iter().find_map(theirs);
    let firsts: Vec<Option<f64>> = contenders
        .iter()
        .map(|contender| published.row.iter().find_map(|row| ours(row, contender)))
        .collect();
    let cell = |value: Option<f64>, first: Option<f64>| match (value, first) {
        (Some(value), Some(first)) if first > 0.0 => {
            format!("{} (× {})", metric.show(value), plain_ratio(value / first))
        }
        (Some(value), _) => metric.show(value),
        _ => "–".to_owned(),
    };
    let rows = published
        .row
        .iter()
        .map(|row| {
            let label = match &row.remark {
                Some(remark) => format!("{} ({remark})", row.label),
                None => row.label.clone(),
            };
            let mut cells = vec![label, cell(theirs(row), first)];
            for (contender, first) in contenders.iter().zip(&firsts) {
                cells.push(cell(ours(row, contender), *first));
            }
            cells
        })
        .collect();
    Table { head, rows }
}

/// A law in words.
pub(super) fn law(law: &LawSummary) -> String {
    match &law.law {
        Err(why) => format!("not available: {why}"),
        Ok(fitted) => {
            let with = |value: f64, bounds: Option<crate::statistics::Interval>| match bounds {
                Some(bounds) => format!("{value:.4} ({:.4} to {:.4})", bounds.low, bounds.high),
                None => format!("{value:.4}"),
            };
            let peak = fitted.law.peak().map(|peak| format!(", most at {peak:.1}"));
            format!(
                "contention σ = {}, coherence κ = {}, one alone λ = {:.0}{}, R² = {:.3}",
                with(fitted.law.sigma, fitted.sigma),
                with(fitted.law.kappa, fitted.kappa),
                fitted.law.lambda,
                peak.unwrap_or_default(),
                fitted.law.r_squared
            )
        }
    }
}

/// Our study as a command.
pub(super) fn command(summary: &Summary) -> String {
    let header = &summary.header;
    let quick = if header.quick { " --quick" } else { "" };
    format!(
        "turnpike lab run {}{quick} --repetitions {} --seconds {} --seed {} --topology {}",
        header.study, header.repetitions, header.seconds, header.seed, header.topology
    )
}

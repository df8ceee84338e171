//! `lab list` and `lab show`.

use crate::error::LabError;
use crate::matrix::{self, Choice};
use crate::metric;
use crate::placement;
use crate::report::counted;
use crate::session;
use crate::study::model::{Published, Study};
use crate::study::{self, NAMES};

/// Prints the studies that ship.
///
/// # Errors
/// One of them does not hold together.
pub(crate) fn list() -> Result<(), LabError> {
    let width = NAMES
        .iter()
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    for name in NAMES {
        let loaded = study::load(name)?;
        println!("{name:<width$}  {}", loaded.study.title);
        println!("{:<width$}  {}", "", extent(&loaded));
    }
    println!("\nlab run NAME --quick gives provisional figures in a few minutes.");
    Ok(())
}

/// How long a study takes here, and what of it cannot run; or what it is instead of a study.
fn extent(loaded: &study::Loaded) -> String {
    let study = &loaded.study;
    if study.contender.is_empty() {
        return if study.climb.is_some() {
            "published steps, tried on this machine by turnpike tune climb".to_owned()
        } else {
            "published results: lab show prints them".to_owned()
        };
    }
    let dimensions = matrix::dimensions(study, placement::allowed().len());
    let mut cases = matrix::cases(study, &dimensions, &Choice::default());
    let notes = session::leave_out(loaded, &mut cases);
    let minutes = minutes(study, cases.len());
    let missing: String = notes.iter().map(|note| format!("; {note}")).collect();
    if cases.is_empty() {
        format!("cannot run here{missing}")
    } else {
        format!(
            "{}, about {}{missing}",
            counted(cases.len(), "case"),
            counted(minutes.round() as usize, "minute")
        )
    }
}

/// The time that so many cases of a study take.
fn minutes(study: &Study, cases: usize) -> f64 {
    let run = &study.run;
    let seconds = (run.seconds + run.warmup_s + 0.5) * f64::from(run.repetitions);
    (seconds * cases as f64 / 60.0).ceil()
}

/// Prints a study for people, or as it stands in its file.
///
/// # Errors
/// There is none, or it does not hold together.
pub(crate) fn show(name: &str, as_source: bool) -> Result<(), LabError> {
    let loaded = study::load(name)?;
    if as_source {
        print!("{}", loaded.source.text);
        return Ok(());
    }
    print!("{}", text(&loaded.study));
    Ok(())
}

fn text(study: &Study) -> String {
    let mut text = format!(
        "{}\n{}\nSource: {}\n\n{}\n",
        study.name.get_ref(),
        study.title,
        study.source,
        study.about.trim()
    );
    for caveat in &study.caveats {
        text.push_str(&format!("\nNote: {caveat}\n"));
    }
    if !study.contender.is_empty() {
        text.push_str(&compared(study));
    }
    for published in &study.published {
        text.push_str(&table(published));
    }
    if !study.ladder.is_empty() {
        text.push_str("\nSteps, each keeping the ones before it:\n");
        for step in &study.ladder {
            let undone = if step.kept { "" } else { "  (undone)" };
            let rate = step.connections_per_s;
            text.push_str(&format!("  {rate:>8.0}/s  {}{undone}\n", step.text));
            for change in &step.changes {
                text.push_str(&format!("              {change}\n"));
            }
        }
    }
    text
}

fn compared(study: &Study) -> String {
    let dimensions = matrix::dimensions(study, placement::allowed().len());
    let cases = matrix::cases(study, &dimensions, &Choice::default());
    let mut text = String::from("\nCompared:\n");
    for dimension in &dimensions {
        let levels: Vec<&str> = dimension
            .levels
            .iter()
            .map(|level| level.name.as_str())
            .collect();
        text.push_str(&format!("  {} = {}\n", dimension.name, levels.join(" | ")));
    }
    for without in &study.without {
        text.push_str(&format!(
            "  without {:?}: {}\n",
            matrix::plain(&without.at),
            without.why
        ));
    }
    let run = &study.run;
    text.push_str(&format!(
        "  {}, {} of {} s after {} s of warm-up: about {}\n",
        counted(cases.len(), "case"),
        counted(run.repetitions as usize, "repetition"),
        run.seconds,
        run.warmup_s,
        counted(minutes(study, cases.len()).round() as usize, "minute")
    ));
    text.push_str("\nClaims:\n");
    for claim in &study.claim {
        let published = claim
            .published
            .map(|ratio| format!(" (published: {ratio})"));
        let published = published.unwrap_or_default();
        text.push_str(&format!(
            "  {}: {}{published}\n",
            claim.metric.get_ref(),
            claim.text
        ));
    }
    text
}

fn table(published: &Published) -> String {
    let mut text = format!("\nPublished: {} ({})\n", published.title, published.machine);
    for row in &published.row {
        let figures: Vec<String> = row
            .figures
            .iter()
            .filter_map(|(name, value)| {
                let metric = metric::find(name.get_ref())?;
                Some(format!("{} {}", metric.title, metric.show(*value)))
            })
            .collect();
        let remark = row.remark.as_ref().map(|remark| format!("; {remark}"));
        text.push_str(&format!(
            "  {:<32} {}{}\n",
            row.label,
            figures.join(", "),
            remark.unwrap_or_default()
        ));
    }
    text
}

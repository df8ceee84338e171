//! The measurements behind this project's claims: our server and nginx in one run.
//!
//! Most of them are studies of `turnpike lab`, which this chore builds, runs and puts into the
//! tables of bench/README.md. What the lab cannot do yet is measured here: the express lane,
//! floods, the time that large configurations take to load, and memory. The climbs of
//! `turnpike tune` are its own.

mod climb;
mod express;
mod floods;
mod loading;
mod memory;
mod paper;
mod progress;
mod records;
mod study;

use crate::outcome::Outcome;

/// Measures what is named, or the small file beside nginx.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments.split_first() {
        Some((first, rest)) if first == "climb" => climb::run(rest),
        Some((first, rest)) if first == "express" => express::run(rest),
        Some((first, rest)) if first == "floods" => floods::run(rest),
        Some((first, rest)) if first == "loading" => loading::run(rest),
        Some((first, rest)) if first == "memory" => memory::run(rest),
        Some((first, [])) if first == "records" => records::run(),
        Some((first, rest)) if first == "applications" => study::run(&study::APPLICATIONS, rest),
        Some((first, rest)) if first == "real" => study::run(&study::REAL, rest),
        Some((first, rest)) if first == "secure" => study::run(&study::SECURE, rest),
        Some((first, rest)) if first == "stream" => study::run(&study::STREAM, rest),
        _ => study::run(&study::BESIDE_NGINX, arguments),
    }
}

/// The middle value; the upper of the middle two. Not a number where there is none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

//! Comparisons of thousands of cases with nginx's results. They do not depend on who runs them.

#![allow(clippy::unwrap_used)]

mod cache_content;
mod choices;
mod paths;
mod regex;
#[path = "../it/support/mod.rs"]
mod support;
mod verdicts;

//! `turnpike lab`: published studies as data, run here, with the statistics and the pictures that
//! make them believable.
//!
//! A study is a file; `study` reads it, `matrix` makes cases of it, `session` runs them against
//! `contender`s with a `driver` while `probe` watches the host, `record` keeps every run, `summary`
//! and `statistics` say what can be said, `report` shows it. It must work beside any server and
//! know nothing of ours but its command line.

mod cli;
mod compare;
mod contender;
mod driver;
mod environment;
mod error;
mod interrupt;
mod matrix;
mod metric;
mod noise;
mod placement;
mod probe;
mod process;
mod record;
mod report;
mod session;
mod show;
mod statistics;
mod study;
mod summary;
mod sys;
mod template;
mod topology;

pub use cli::{main, usage};

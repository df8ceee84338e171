//! `turnpike lab`: published studies as data, repeated here, with statistics and pictures.
//!
//! A study is a file; `study` reads it, `matrix` makes cases of it, `session` runs them against
//! `contender`s with a `driver` while `probe` watches the host, `record` keeps every run, `summary`
//! and `statistics` evaluate them, `report` shows the result. It must work with any server and know
//! only the command line of ours.

mod busy;
mod cli;
mod columns;
mod compare;
mod contender;
mod driver;
mod environment;
mod error;
mod files;
mod goals;
mod interrupt;
mod ladder;
mod matrix;
mod metric;
mod noise;
mod placement;
mod probe;
mod process;
mod record;
mod report;
mod served;
mod session;
mod show;
mod statistics;
mod study;
mod summary;
mod sys;
mod template;
mod topology;
mod traffic;

pub use cli::{main, usage};

/// What the clients and origins of a study of relays need.
pub mod relays {
    pub use crate::traffic::Burst;
}

/// What the tuner needs of a bench: a network, processes on their CPUs, the servers of studies,
/// statistics, Ctrl-C.
pub mod bench {
    pub use crate::busy::poll_busily;
    pub use crate::interrupt::{is_asked, watch};
    pub use crate::noise::FOREIGN_SHARE_MAX;
    pub use crate::process::Process;
    pub use crate::served::{Served, Serving, Spot};
    pub use crate::statistics::{Interval, interval, mean};
    pub use crate::study::{Rung, ladder};
    pub use crate::topology::{Namespace, Topology};
}

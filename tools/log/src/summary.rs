//! What all lines together say.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use turnpike_load::Histogram;

use crate::busiest::{Busiest, Counts};
use crate::entry::Entry;
use crate::timeline::Timeline;

/// The sums over a log.
pub(crate) struct Summary {
    with_query: bool,
    pub(crate) requests: u64,
    pub(crate) all: Counts,
    /// The first and the last time, in seconds since 1970 on the log's clock.
    pub(crate) times_s: Option<(i64, i64)>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Times of requests, in microseconds.
    pub(crate) times_us: Histogram,
    pub(crate) timeline: Timeline,
    pub(crate) paths: Busiest,
    pub(crate) hosts: Busiest,
    pub(crate) clients: Busiest,
    /// Lines in no known format, and where the first is.
    pub(crate) unknown: u64,
    pub(crate) unknown_first: Option<String>,
}

/// A list of the report.
pub(crate) struct List<'a> {
    pub(crate) title: &'static str,
    /// What a line is about.
    pub(crate) thing: &'static str,
    pub(crate) lines: Vec<(&'a str, Counts)>,
    /// How many things there are, and what one may have lost.
    pub(crate) count: usize,
    pub(crate) lost_max: u64,
}

impl Summary {
    /// Nothing yet. `with_query`: paths are told apart by their queries.
    pub(crate) fn new(with_query: bool) -> Summary {
        Summary {
            with_query,
            requests: 0,
            all: Counts::default(),
            times_s: None,
            statuses: BTreeMap::new(),
            times_us: Histogram::default(),
            timeline: Timeline::new(),
            paths: Busiest::default(),
            hosts: Busiest::default(),
            clients: Busiest::default(),
            unknown: 0,
            unknown_first: None,
        }
    }

    /// Adds a line.
    pub(crate) fn take(&mut self, file: &OsStr, number: u64, line: &[u8]) {
        let Some(entry) = Entry::read(line) else {
            if !line.is_empty() {
                self.unknown += 1;
                let place = || format!("{}:{number}", Path::new(file).display());
                self.unknown_first.get_or_insert_with(place);
            }
            return;
        };
        self.requests += 1;
        *self.statuses.entry(entry.status.min(999)).or_default() += 1;
        let path = if self.with_query {
            entry.uri.as_str()
        } else {
            entry.uri.split('?').next().unwrap_or_default()
        };
        let add = |counts: &mut Counts| {
            counts.add(entry.status, entry.body_bytes, entry.seconds);
        };
        add(&mut self.all);
        add(self.paths.of(path));
        add(self.clients.of(&entry.client));
        if !entry.host.is_empty() {
            add(self.hosts.of(&entry.host));
        }
        if let Some(seconds) = entry.seconds {
            self.times_us.record((seconds * 1e6) as u64);
        }
        if let Some(time_s) = entry.time_s {
            let (first, last) = self.times_s.unwrap_or((time_s, time_s));
            self.times_s = Some((first.min(time_s), last.max(time_s)));
            if let Some(counts) = self.timeline.of(time_s) {
                add(counts);
            }
        }
    }

    /// The lists, without those that are empty.
    pub(crate) fn lists(&self, top: usize) -> Vec<List<'_>> {
        let requests: fn(&Counts) -> f64 = |counts| counts.requests as f64;
        let time: fn(&Counts) -> f64 = |counts| counts.seconds_sum;
        let bytes: fn(&Counts) -> f64 = |counts| counts.body_bytes as f64;
        let failed: fn(&Counts) -> f64 = |counts| counts.failed as f64;
        let lists = [
            ("Paths", "path", &self.paths, requests),
            ("Paths by total time", "path", &self.paths, time),
            ("Paths by bytes sent", "path", &self.paths, bytes),
            ("Paths by errors (5xx)", "path", &self.paths, failed),
            ("Hosts", "host", &self.hosts, requests),
            ("Clients", "client", &self.clients, requests),
        ];
        let lists = lists.map(|(title, thing, busiest, by)| {
            let (lines, count) = busiest.first(top, by);
            let lost_max = busiest.lost_max;
            List {
                title,
                thing,
                lines,
                count,
                lost_max,
            }
        });
        lists
            .into_iter()
            .filter(|list| !list.lines.is_empty())
            .collect()
    }
}

//! Times in variables. `$time_local` and `$time_iso8601` are formatted once a second.

use std::cell::RefCell;
use std::io::Write;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

fn instant(second: u64) -> Timestamp {
    let seconds = i64::try_from(second).unwrap_or_default();
    Timestamp::from_second(seconds).unwrap_or_default()
}

/// The time zone, which is read once, before requests: the search reads a large folder, which must
/// not delay a request or its lane.
static ZONE: LazyLock<TimeZone> = LazyLock::new(TimeZone::system);

struct Stamps {
    second: u64,
    local: Vec<u8>,
    iso8601: Vec<u8>,
}

thread_local! {
    static STAMPS: RefCell<Stamps> = const {
        RefCell::new(Stamps {
            second: u64::MAX,
            local: Vec::new(),
            iso8601: Vec::new(),
        })
    };
}

/// Reads the time zone, before there are lanes.
pub fn prepare() {
    LazyLock::force(&ZONE);
}

/// Appends the time in GMT, with the day of the week (`$date_gmt`).
pub fn append_date_gmt(second: u64, out: &mut Vec<u8>) {
    let now = instant(second).to_zoned(TimeZone::UTC);
    // A write to a vector cannot fail.
    let _ = write!(out, "{}", now.strftime("%A, %d-%b-%Y %H:%M:%S GMT"));
}

/// Appends the local time, with the day of the week (`$date_local`).
pub fn append_date_local(second: u64, out: &mut Vec<u8>) {
    let now = instant(second).to_zoned(ZONE.clone());
    // As above.
    let _ = write!(out, "{}", now.strftime("%A, %d-%b-%Y %H:%M:%S %Z"));
}

/// Appends the time in GMT in a format of strftime; `false` if the format is invalid.
pub fn append_gmt_as(second: u64, format: &str, out: &mut Vec<u8>) -> bool {
    append_as(&instant(second).to_zoned(TimeZone::UTC), format, out)
}

/// Appends the local time in a format of strftime; `false` if the format is invalid.
pub fn append_local_as(second: u64, format: &str, out: &mut Vec<u8>) -> bool {
    append_as(&instant(second).to_zoned(ZONE.clone()), format, out)
}

fn append_as(time: &Zoned, format: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let written = write!(out, "{}", time.strftime(format)).is_ok();
    if !written {
        out.truncate(start);
    }
    written
}

/// Appends the local time in the format of access logs: `21/Nov/2026:22:31:56 +0000`.
pub fn append_local(second: u64, out: &mut Vec<u8>) {
    STAMPS.with_borrow_mut(|stamps| {
        stamps.refresh(second);
        out.extend_from_slice(&stamps.local);
    });
}

/// Appends the local time in ISO 8601.
pub fn append_iso8601(second: u64, out: &mut Vec<u8>) {
    STAMPS.with_borrow_mut(|stamps| {
        stamps.refresh(second);
        out.extend_from_slice(&stamps.iso8601);
    });
}

impl Stamps {
    fn refresh(&mut self, second: u64) {
        if self.second == second {
            return;
        }
        self.second = second;
        let now = instant(second).to_zoned(ZONE.clone());
        self.local.clear();
        self.iso8601.clear();
        // A write to a vector cannot fail.
        let _ = write!(self.local, "{}", now.strftime("%d/%b/%Y:%H:%M:%S %z"));
        let _ = write!(self.iso8601, "{}", now.strftime("%Y-%m-%dT%H:%M:%S%:z"));
    }
}

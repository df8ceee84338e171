//! Local time stamps for log lines, formatted once a second per thread.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

const LOCAL_BYTES: usize = 19;
const SYSLOG_BYTES: usize = 15;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

struct Stamps {
    second: i64,
    local: [u8; LOCAL_BYTES],
    syslog: [u8; SYSLOG_BYTES],
}

thread_local! {
    static STAMPS: RefCell<Stamps> = const {
        RefCell::new(Stamps {
            second: i64::MIN,
            local: [b' '; LOCAL_BYTES],
            syslog: [b' '; SYSLOG_BYTES],
        })
    };
}

/// The local time as `YYYY/MM/DD hh:mm:ss`.
pub fn local_stamp() -> [u8; LOCAL_BYTES] {
    STAMPS.with_borrow_mut(|stamps| {
        stamps.refresh(second_now());
        stamps.local
    })
}

/// The local time in syslog's format, `Mon dd hh:mm:ss` (RFC 3164, 4.1.2).
pub fn syslog_stamp() -> [u8; SYSLOG_BYTES] {
    STAMPS.with_borrow_mut(|stamps| {
        stamps.refresh(second_now());
        stamps.syslog
    })
}

/// Seconds since 1970.
pub(super) fn second_now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Stamps {
    fn refresh(&mut self, second: i64) {
        if self.second == second {
            return;
        }
        self.second = second;
        let instant = Timestamp::from_second(second).unwrap_or_default();
        let now = instant.to_zoned(TimeZone::system());
        let (year, month, day) = (now.year(), now.month(), now.day());
        let (hour, minute, second) = (now.hour(), now.minute(), now.second());
        // The buffers have exactly the length of the formats: years have four digits until 9999.
        let _ = write!(
            &mut self.local[..],
            "{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}"
        );
        let name = MONTHS[usize::from(month.unsigned_abs()).saturating_sub(1) % MONTHS.len()];
        let _ = write!(
            &mut self.syslog[..],
            "{name} {day:2} {hour:02}:{minute:02}:{second:02}"
        );
    }
}

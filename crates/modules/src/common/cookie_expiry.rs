//! When cookies end, and the dates that say so.

use turnpike_wire::date;

/// The last day of the time that 32 bits hold: `expires=max`, as in nginx.
const MAX: &str = "Thu, 31-Dec-37 23:55:55 GMT";

/// When a cookie ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expires {
    /// `max`.
    Max,
    /// So many seconds after it was given.
    Seconds(u64),
}

impl Expires {
    /// The date of a cookie that is given at this time.
    pub(crate) fn date(self, unix_seconds: u64) -> String {
        match self {
            Expires::Max => MAX.to_owned(),
            Expires::Seconds(seconds) => cookie_date(unix_seconds.saturating_add(seconds)),
        }
    }
}

/// A date as cookies of old have it: dashes, and two digits of the year before 2038.
fn cookie_date(unix_seconds: u64) -> String {
    let date = date::format(i64::try_from(unix_seconds).unwrap_or(i64::MAX));
    let date = String::from_utf8_lossy(&date).into_owned();
    let (day, month, year) = (&date[5..7], &date[8..11], &date[12..16]);
    let year = if year > "2037" { year } else { &year[2..] };
    format!("{}{day}-{month}-{year}{}", &date[..5], &date[16..])
}

#[cfg(test)]
mod tests {
    use super::Expires;

    #[test]
    fn dates_of_cookies_are_nginx_s() {
        for (unix_seconds, expires, date) in [
            (
                784_111_700,
                Expires::Seconds(77),
                "Sun, 06-Nov-94 08:49:37 GMT",
            ),
            (
                2_145_916_800,
                Expires::Seconds(0),
                "Fri, 01-Jan-2038 00:00:00 GMT",
            ),
            (784_111_777, Expires::Max, "Thu, 31-Dec-37 23:55:55 GMT"),
        ] {
            assert_eq!(expires.date(unix_seconds), date);
        }
    }
}

//! Dates in cookies.

use turnpike_wire::date;

/// The last day of the time that 32 bits hold: `expires=max`, as in nginx.
pub(crate) const MAX: &str = "Thu, 31-Dec-37 23:55:55 GMT";

/// A date as cookies of old have it: dashes, and two digits of the year before 2038.
pub(crate) fn cookie_date(unix_seconds: u64) -> String {
    let date = date::format(i64::try_from(unix_seconds).unwrap_or(i64::MAX));
    let date = String::from_utf8_lossy(&date).into_owned();
    let (day, month, year) = (&date[5..7], &date[8..11], &date[12..16]);
    let year = if year > "2037" { year } else { &year[2..] };
    format!("{}{day}-{month}-{year}{}", &date[..5], &date[16..])
}

#[cfg(test)]
mod tests {
    use super::cookie_date;

    #[test]
    fn dates_of_cookies_are_nginx_s() {
        assert_eq!(cookie_date(784_111_777), "Sun, 06-Nov-94 08:49:37 GMT");
        assert_eq!(cookie_date(2_145_916_800), "Fri, 01-Jan-2038 00:00:00 GMT");
    }
}

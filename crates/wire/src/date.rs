//! HTTP dates (RFC 9110 section 5.6.7) to and from Unix seconds, and the calendar that all other
//! code uses. This module reads no clock.

#[cfg(test)]
mod tests;

/// A time as date and time of day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year of the Gregorian calendar.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Day of the week, 0 for Sunday.
    pub weekday: u8,
}

/// The names of the months in dates.
pub const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The names of the days of the week, from Sunday.
pub const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The Unix seconds of four-digit years: from year 0 to the end of year 9999.
const SECONDS_RANGE: (i64, i64) = (-62_167_219_200, 253_402_300_799);

const DAY_SECONDS: i64 = 86_400;

/// The Unix seconds of an IMF-fixdate, an RFC 850 date or an asctime date.
///
/// As in nginx, the day of the week and the zone are ignored, and an RFC 850 year below 70 is in
/// this century.
#[must_use]
pub fn parse(text: &[u8]) -> Option<i64> {
    let split = memchr::memchr2(b',', b' ', text)?;
    let asctime = text[split] == b' ';
    let mut cursor = Cursor(&text[split + 1..]);
    while cursor.0.first() == Some(&b' ') {
        cursor.take(1)?;
    }
    if asctime {
        parse_asctime(cursor)
    } else {
        parse_with_zone(cursor)
    }
}

/// As [`parse`], for a value that must be exactly one date in GMT. A value with anything after the
/// date, even another date, is refused (RFC 9110 section 13.1).
#[must_use]
pub fn parse_alone(text: &[u8]) -> Option<i64> {
    const ASCTIME_BYTES: usize = b"Sun Nov  6 08:49:37 1994".len();
    const RFC_850_BYTES: usize = b" 06-Nov-94 08:49:37 GMT".len();
    const IMF_BYTES: usize = b" 06 Nov 1994 08:49:37 GMT".len();
    let ends = match memchr::memchr(b',', text) {
        None => text.len() <= ASCTIME_BYTES,
        Some(comma) => {
            let rest = &text[comma + 1..];
            let zone = rest.last_chunk::<4>();
            matches!(rest.len(), RFC_850_BYTES | IMF_BYTES)
                && zone.is_some_and(|zone| zone.eq_ignore_ascii_case(b" GMT"))
        }
    };
    parse(text).filter(|_| ends)
}

/// The Unix seconds of a date (year, month from 1, day from 1) and a time of day (hour, minute,
/// second) in UTC; `None` if either does not exist.
#[must_use]
pub fn unix_seconds(date: [i64; 3], time: [i64; 3]) -> Option<i64> {
    let [year, month, day] = date;
    let [hour, minute, second] = time;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let is_day = (1..=days_in_month).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let seconds = || (hour * 60 + minute) * 60 + second;
    (is_day && is_time).then(|| days_of_civil(year, month, day) * DAY_SECONDS + seconds())
}

/// Writes Unix seconds as an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A time outside of the years 0 to 9999 becomes the nearest end of that range.
#[must_use]
pub fn format(unix_seconds: i64) -> [u8; 29] {
    let civil = civil(unix_seconds.clamp(SECONDS_RANGE.0, SECONDS_RANGE.1));
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(&three_letters(WEEKDAYS[usize::from(civil.weekday % 7)]));
    two_digits(&mut out, 5, civil.day);
    out[8..11].copy_from_slice(&three_letters(MONTHS[usize::from((civil.month + 11) % 12)]));
    let year = civil.year as u32;
    two_digits(&mut out, 12, (year / 100) as u8);
    two_digits(&mut out, 14, (year % 100) as u8);
    two_digits(&mut out, 17, civil.hour);
    two_digits(&mut out, 20, civil.minute);
    two_digits(&mut out, 23, civil.second);
    out
}

/// The date and time of day in UTC at a time in Unix seconds.
#[must_use]
pub fn civil(unix_seconds: i64) -> Civil {
    let days = unix_seconds.div_euclid(DAY_SECONDS);
    let seconds = (unix_seconds - days * DAY_SECONDS) as u32;
    let (year, month, day) = civil_of_days(days);
    Civil {
        year,
        month,
        day,
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        weekday: (days + 4).rem_euclid(7) as u8,
    }
}

/// Years that start in March have the leap day at their end; 400 of them have 146097 days.
fn civil_of_days(days: i64) -> (i64, u8, u8) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    // 32 bits from here on: divisions of signed 64-bit numbers cost several times as much, and each
    // response has a date.
    let day_of_era = (shifted - era * 146_097) as u32;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = i64::from(year_of_era) + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// A name of three letters, whose length the compiler then knows.
fn three_letters(name: &str) -> [u8; 3] {
    name.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Writes a number below 100.
fn two_digits(out: &mut [u8], at: usize, value: u8) {
    out[at..at + 2].copy_from_slice(&[b'0' + value / 10, b'0' + value % 10]);
}

struct Cursor<'t>(&'t [u8]);

impl<'t> Cursor<'t> {
    fn take(&mut self, len: usize) -> Option<&'t [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.take(1)? == [byte]).then_some(())
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        self.take(digits)?.iter().try_fold(0, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + i64::from(byte - b'0'))
        })
    }

    fn month(&mut self) -> Option<i64> {
        let name = self.take(3)?;
        // Caches ignore the case (RFC 9111 section 4.2).
        let mut months = MONTHS.iter();
        let index = months.position(|month| month.as_bytes().eq_ignore_ascii_case(name))?;
        i64::try_from(index + 1).ok()
    }

    /// `hh:mm:ss`.
    fn clock(&mut self) -> Option<[i64; 3]> {
        let hour = self.number(2)?;
        self.expect(b':')?;
        let minute = self.number(2)?;
        self.expect(b':')?;
        Some([hour, minute, self.number(2)?])
    }
}

/// `06 Nov 1994 08:49:37` or `06-Nov-94 08:49:37`.
fn parse_with_zone(mut cursor: Cursor<'_>) -> Option<i64> {
    let day = cursor.number(2)?;
    let separator = cursor.take(1)?[0];
    let month = cursor.month()?;
    cursor.expect(separator)?;
    let year = match separator {
        b' ' => cursor.number(4)?,
        b'-' => match cursor.number(2)? {
            year @ 0..70 => 2000 + year,
            year => 1900 + year,
        },
        _ => return None,
    };
    cursor.expect(b' ')?;
    unix_seconds([year, month, day], cursor.clock()?)
}

/// `Nov  6 08:49:37 1994`
fn parse_asctime(mut cursor: Cursor<'_>) -> Option<i64> {
    let month = cursor.month()?;
    cursor.expect(b' ')?;
    if cursor.0.first() == Some(&b' ') {
        cursor.take(1)?;
    }
    let digits = if cursor.0.get(1) == Some(&b' ') { 1 } else { 2 };
    let day = cursor.number(digits)?;
    cursor.expect(b' ')?;
    let clock = cursor.clock()?;
    cursor.expect(b' ')?;
    let year = cursor.number(4)?;
    unix_seconds([year, month, day], clock)
}

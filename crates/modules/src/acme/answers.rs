//! What the answers of an authority say beside their content: that it is not to be asked for a
//! while.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use turnpike_wire::date;

/// The longest time that an authority may ask for, in seconds: a week, which is the longest that
/// authorities limit orders for. A mistake of an authority must not let certificates expire.
pub(super) const RETRY_AFTER_S_MAX: u64 = 7 * 24 * 60 * 60;

/// What was said since [`Answers::begin`].
#[derive(Default)]
pub(super) struct Answers {
    /// The latest time before which nothing is to be asked again, in Unix seconds.
    retry_at_s: AtomicU64,
    /// Whether that holds for all that could be asked.
    is_unavailable: AtomicBool,
}

impl Answers {
    /// Forgets what was said before.
    pub(super) fn begin(&self) {
        self.retry_at_s.store(0, Relaxed);
        self.is_unavailable.store(false, Relaxed);
    }

    /// Notes what an answer says at this time, in Unix seconds. Its `Retry-After` (RFC 9110 section
    /// 10.2.3) is replaced by the seconds that are waited: the library adds any number to the time.
    pub(super) fn note(&self, status: StatusCode, fields: &mut HeaderMap, now_s: u64) {
        if status == StatusCode::SERVICE_UNAVAILABLE {
            self.is_unavailable.store(true, Relaxed);
        }
        let said = fields.remove(header::RETRY_AFTER);
        let Some(wait_s) = said.and_then(|said| wait_s(said.as_bytes(), now_s)) else {
            return;
        };
        self.retry_at_s.fetch_max(now_s + wait_s, Relaxed);
        fields.insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
    }

    /// Before when the same is not to be asked again, in Unix seconds; 0 if nothing was said.
    pub(super) fn retry_at_s(&self) -> u64 {
        self.retry_at_s.load(Relaxed)
    }

    /// Whether the authority answers nothing at present.
    pub(super) fn is_unavailable(&self) -> bool {
        self.is_unavailable.load(Relaxed)
    }
}

/// The seconds that a field asks for: a number, or a date; `None` if it is neither.
fn wait_s(field: &[u8], now_s: u64) -> Option<u64> {
    let field = field.trim_ascii();
    let is_number = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let wait_s = if is_number {
        // Too large a number is the largest.
        str::from_utf8(field).ok()?.parse().unwrap_or(u64::MAX)
    } else {
        let at_s = date::parse_alone(field)?;
        u64::try_from(at_s).unwrap_or(0).saturating_sub(now_s)
    };
    Some(wait_s.min(RETRY_AFTER_S_MAX))
}

#[cfg(test)]
mod tests {
    //! What is waited for.

    #![allow(clippy::unwrap_used)]

    use http::{HeaderMap, StatusCode, header};

    use super::{Answers, RETRY_AFTER_S_MAX};

    /// 1994-11-06 08:49:37.
    const NOW_S: u64 = 784_111_777;

    #[test]
    fn the_longest_time_that_was_asked_for_is_waited() {
        let answers = Answers::default();
        // The status, the field, until when is waited, and what the library reads of the field.
        let noted: &[(u16, &str, u64, Option<&str>)] = &[
            (200, "", 0, None),
            (200, "5", 5, Some("5")),
            (429, "nonsense", 5, None),
            (429, "Sun, 06 Nov 1994 08:50:37 GMT", 60, Some("60")),
            (503, "Sun, 06 Nov 1994 08:49:36 GMT", 60, Some("0")),
            (429, "2", 60, Some("2")),
            (
                403,
                "99999999999999999999",
                RETRY_AFTER_S_MAX,
                Some("604800"),
            ),
        ];
        for (status, field, expected_s, shown) in noted {
            let mut fields = HeaderMap::new();
            if !field.is_empty() {
                fields.insert(header::RETRY_AFTER, field.parse().unwrap());
            }
            answers.note(StatusCode::from_u16(*status).unwrap(), &mut fields, NOW_S);
            let at_s = answers.retry_at_s();
            assert_eq!(at_s.saturating_sub(NOW_S), *expected_s, "{status} {field}");
            let left = fields.get(header::RETRY_AFTER);
            assert_eq!(left.map(|left| left.to_str().unwrap()), *shown);
        }
        assert!(answers.is_unavailable());
        answers.begin();
        assert!(!answers.is_unavailable() && answers.retry_at_s() == 0);
    }
}

//! What `expires` says, without a request.

use super::handler::ExpiryFields;
use super::plan::Expiry;

const NOW: i64 = 1_000_000_000;

#[test]
fn expires_reads_nginx_values() {
    let cases: &[(&str, bool, Result<Expiry, &str>)] = &[
        ("epoch", false, Ok(Expiry::Epoch)),
        ("max", false, Ok(Expiry::Max)),
        ("off", false, Ok(Expiry::Off)),
        ("off", true, Err("invalid value")),
        ("2048", false, Ok(Expiry::Access(2048))),
        ("+1h", false, Ok(Expiry::Access(3600))),
        ("-1h", false, Ok(Expiry::Access(-3600))),
        ("2048", true, Ok(Expiry::Modified(2048))),
        ("@15h30m", false, Ok(Expiry::Daily(55_800))),
        ("@24h", false, Ok(Expiry::Daily(86_400))),
        (
            "@25h",
            false,
            Err("daily time value must be less than 24 hours"),
        ),
        (
            "@1h",
            true,
            Err("daily time cannot be used with \"modified\" parameter"),
        ),
        ("soon", false, Err("invalid value")),
        ("", false, Err("invalid value")),
    ];
    for (text, modified, expected) in cases {
        assert_eq!(Expiry::parse(text, *modified), *expected, "{text}");
    }
}

#[test]
fn expiry_becomes_a_time_and_an_age() {
    let cases: &[(Expiry, Option<i64>, i64, Option<i64>)] = &[
        (Expiry::Epoch, None, 1, None),
        (Expiry::Max, None, 2_145_916_555, Some(315_360_000)),
        (Expiry::Access(0), None, NOW, Some(0)),
        (Expiry::Access(60), None, NOW + 60, Some(60)),
        (Expiry::Access(-60), None, NOW - 60, None),
        (Expiry::Modified(60), None, NOW + 60, Some(60)),
        (Expiry::Modified(60), Some(NOW - 50), NOW + 10, Some(10)),
        (Expiry::Modified(60), Some(NOW - 90), NOW - 30, None),
    ];
    for (expiry, modified, at, max_age) in cases {
        let expected = ExpiryFields {
            at: *at,
            max_age: *max_age,
        };
        assert_eq!(
            ExpiryFields::of(*expiry, NOW, *modified),
            expected,
            "{expiry:?}"
        );
    }
}

#[test]
fn a_daily_time_is_less_than_a_day_away() {
    for seconds in [0, 1, 43_200, 86_400] {
        let age = ExpiryFields::of(Expiry::Daily(seconds), NOW, None).max_age;
        // A change of the clocks may add an hour.
        assert!(age.is_some_and(|age| age > 0 && age <= 25 * 3600));
    }
}

//! Reads what a group's requests may wait for and retry: `queue`, `retry_budget`.

use turnpike_conf::{ConfError, Entry, View, value};
use turnpike_upstream::{QueueLimits, RetryLimits};

/// nginx Plus's default.
const QUEUE_TIMEOUT_MS: u64 = 60_000;

/// The retries that are always allowed by default: one a second.
const RETRIES_MIN: u64 = 10;

/// `queue`.
///
/// # Errors
/// nginx's message about a parameter.
pub(super) fn queue(view: View<'_>) -> Result<Option<QueueLimits>, ConfError> {
    read(view, "queue", |entry, first| {
        let requests_max = value::number(first).and_then(|number| usize::try_from(number).ok());
        let requests_max = requests_max.filter(|number| *number > 0);
        let timeout_ms = match parameter(entry, "timeout")? {
            None => QUEUE_TIMEOUT_MS,
            Some(text) => value::milliseconds(text).filter(|time_ms| *time_ms > 0)?,
        };
        Some(QueueLimits {
            requests_max: requests_max?,
            timeout_ms,
        })
    })
}

/// `retry_budget`.
///
/// # Errors
/// nginx's message about a parameter.
pub(super) fn retries(view: View<'_>) -> Result<Option<RetryLimits>, ConfError> {
    read(view, "retry_budget", |entry, first| {
        let percent = first.strip_suffix('%').and_then(value::number);
        let percent = percent.and_then(|number| u64::try_from(number).ok());
        let retries_min = match parameter(entry, "min")? {
            None => RETRIES_MIN,
            Some(text) => u64::try_from(value::number(text)?).ok()?,
        };
        Some(RetryLimits {
            percent: percent.filter(|percent| *percent <= 100)?,
            retries_min,
        })
    })
}

/// What `read` makes of a directive and its first argument; `None` of it is an error.
fn read<T>(
    view: View<'_>,
    name: &str,
    read: impl Fn(&Entry, &str) -> Option<T>,
) -> Result<Option<T>, ConfError> {
    let Some(entry) = view.own(name) else {
        return Ok(None);
    };
    let limits = read(entry, entry.argument(0));
    let words = entry.arguments.iter().map(|word| word.text.as_str());
    let words: Vec<&str> = words.collect();
    let message = || {
        format!(
            "invalid value \"{}\" in \"{name}\" directive",
            words.join(" ")
        )
    };
    match limits {
        Some(limits) => Ok(Some(limits)),
        None => Err(view.error(entry.span, message())),
    }
}

/// The value of the second argument, which must have this name; the outer `None` if it has not.
fn parameter<'a>(entry: &'a Entry, name: &str) -> Option<Option<&'a str>> {
    match entry.arguments.get(1) {
        None => Some(None),
        Some(word) => {
            let (own, given) = word.text.split_once('=')?;
            (own == name).then_some(Some(given))
        }
    }
}

//! Numbers in the units that people read: counts, bytes, ratios, durations, points in time.

/// Bytes in powers of 1024: `512 B`, `1.5 KiB`.
pub(in crate::control) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= 1000.0 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", short(value))
}

/// A part of a whole: `12.5 %`; `-` of nothing.
pub(super) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

/// A time of milliseconds: `850 ms`, `1.5 s`.
pub(super) fn milliseconds(count: u64) -> String {
    match count {
        0..1000 => format!("{count} ms"),
        1000..60_000 => format!("{} s", short(count as f64 / 1000.0)),
        _ => seconds(count / 1000),
    }
}

/// A time of whole seconds in its two greatest units: `42s`, `3m 5s`, `2d 4h`.
pub(in crate::control) fn seconds(count: u64) -> String {
    let parts = [
        (count / 86_400, "d"),
        (count / 3600 % 24, "h"),
        (count / 60 % 60, "m"),
        (count % 60, "s"),
    ];
    let first = parts.iter().position(|(value, _)| *value > 0).unwrap_or(3);
    let shown = parts.iter().skip(first).take(2);
    let shown: Vec<String> = shown
        .map(|(value, unit)| format!("{value}{unit}"))
        .collect();
    shown.join(" ")
}

/// A point in local time: `2026-11-22T21:05:00+00:00`.
pub(super) fn date(unix_s: u64) -> String {
    let mut text = Vec::new();
    turnpike_plan::time::append_iso8601(unix_s, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Three digits.
fn short(value: f64) -> String {
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

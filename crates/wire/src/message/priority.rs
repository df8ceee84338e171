//! The extensible scheme of priorities (RFC 9218).

#[cfg(test)]
mod tests;

/// The least urgent.
const URGENCY_MAX: u8 = 7;

/// The urgency that a client gives a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// Whether a part of the response is useful before the rest has come.
    pub incremental: bool,
}

impl Default for Priority {
    /// The default without a field (RFC 9218 section 4).
    fn default() -> Priority {
        Priority {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// Reads a `priority` field or the value of a PRIORITY_UPDATE frame: a dictionary of RFC 8941,
    /// of which `u` and `i` are used. A malformed part is ignored.
    #[must_use]
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for member in value.split(|byte| *byte == b',') {
            let member = member
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        debug_assert!(priority.urgency <= URGENCY_MAX);
        priority
    }
}

//! What the conditions of a request say of a file or response (RFC 9110 section 13.1), whoever asks
//! for it. It knows no request.

use turnpike_wire::date;

/// How entity tags are compared (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity tags has `etag`, or is `*`. An empty `etag` is none.
pub(crate) fn matches_tag(list: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    if list == b"*" {
        return true;
    }
    if etag.is_empty() || (comparison == Comparison::Strong && etag.starts_with(b"W/")) {
        return false;
    }
    let etag = comparison.compared(etag);
    let mut rest = list;
    while !rest.is_empty() {
        rest = comparison.compared(rest);
        if let Some(after) = rest.strip_prefix(etag)
            && matches!(skip(after, b" \t").first(), None | Some(b','))
        {
            return true;
        }
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        rest = skip(&rest[comma..], b" \t,");
    }
    false
}

/// Whether nothing has changed since a date. Without a date on either side there is no condition
/// (RFC 9110 section 13.1.4).
pub(crate) fn is_unmodified(since: &[u8], modified: Option<i64>) -> bool {
    match (date::parse_alone(since), modified) {
        (Some(since), Some(modified)) => since >= modified,
        _ => true,
    }
}

impl Comparison {
    /// The text without the mark of weakness, where that does not count.
    fn compared(self, tag: &[u8]) -> &[u8] {
        match tag.strip_prefix(b"W/") {
            Some(opaque) if self == Self::Weak && !opaque.is_empty() => opaque,
            _ => tag,
        }
    }
}

fn skip<'a>(text: &'a [u8], bytes: &[u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !bytes.contains(byte));
    &text[end.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_tags_are_compared_by_strength() {
        let cases: &[(&str, &str, bool, bool)] = &[
            // list, own tag, strong, weak
            ("\"a\"", "\"a\"", true, true),
            ("*", "\"a\"", true, true),
            ("*", "", true, true),
            ("\"a\"", "", false, false),
            ("\"b\"", "\"a\"", false, false),
            ("\"b\", \"a\" , \"c\"", "\"a\"", true, true),
            ("\"b\",\t\"a\"", "\"a\"", true, true),
            ("W/\"a\"", "\"a\"", false, true),
            ("\"a\"", "W/\"a\"", false, true),
            ("W/\"a\"", "W/\"a\"", false, true),
            ("\"ab\"", "\"a\"", false, false),
            ("\"a\"x", "\"a\"", false, false),
            ("\"a", "\"a\"", false, false),
            ("", "\"a\"", false, false),
        ];
        for (list, etag, strong, weak) in cases {
            let found = |comparison| matches_tag(list.as_bytes(), etag.as_bytes(), comparison);
            assert_eq!(found(Comparison::Strong), *strong, "strong {list} {etag}");
            assert_eq!(found(Comparison::Weak), *weak, "weak {list} {etag}");
        }
    }
}

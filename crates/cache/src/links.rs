//! `Link` fields (RFC 8288), as far as early hints need them (RFC 8297): the values that let a
//! browser begin before the response has come.

use turnpike_wire::message::Head;

/// The relations for which a browser fetches or connects early (HTML standard, "process early hint
/// headers").
const RELATIONS: [&[u8]; 3] = [b"preload", b"modulepreload", b"preconnect"];

/// The most bytes of the values of one hint: more than pages with a dozen style sheets and scripts
/// have, and less than the 4 KiB that clients allow a head at least.
const HINT_BYTES_MAX: usize = 2048;

/// The values of a head's `Link` fields that are worth a hint, as one field value; empty if there
/// is none. What does not fit any more is left out.
pub fn hint(head: &Head) -> Vec<u8> {
    let mut hint = Vec::new();
    let fields = head.values(b"link");
    for value in fields.flat_map(|field| parts(field, b',')) {
        let value = value.trim_ascii();
        if !is_hint(value) || hint.len() + value.len() + 2 > HINT_BYTES_MAX {
            continue;
        }
        if !hint.is_empty() {
            hint.extend_from_slice(b", ");
        }
        hint.extend_from_slice(value);
    }
    hint
}

/// Whether a value has a target, and one of the relations in its first `rel` (RFC 8288 section
/// 3.3).
fn is_hint(value: &[u8]) -> bool {
    let Some(target) = value.strip_prefix(b"<") else {
        return false;
    };
    let Some(end) = target.iter().position(|byte| *byte == b'>') else {
        return false;
    };
    let relations = parts(&target[end + 1..], b';').find_map(|parameter| {
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, given) = (&parameter[..equals], &parameter[equals + 1..]);
        let is_relation = name.trim_ascii().eq_ignore_ascii_case(b"rel");
        is_relation.then(|| given.trim_ascii())
    });
    let is_quote = |byte: &u8| *byte == b'"';
    relations.is_some_and(|relations| {
        let mut words = relations.split(|byte| byte.is_ascii_whitespace() || is_quote(byte));
        words.any(|word| {
            let mut known = RELATIONS.iter();
            known.any(|relation| relation.eq_ignore_ascii_case(word))
        })
    })
}

/// The parts of a text between separators that are neither in a target (`<...>`) nor quoted.
fn parts(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut in_target, mut quoted, mut escaped) = (false, false, false);
    text.split(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' if !in_target => quoted = !quoted,
            b'<' if !quoted => in_target = true,
            b'>' if !quoted => in_target = false,
            _ => return *byte == separator && !in_target && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use turnpike_wire::message::Head;

    use super::{HINT_BYTES_MAX, hint};

    fn hint_of(fields: &[&str]) -> String {
        let mut head = Head::response(200, b"OK");
        for field in fields {
            head.fields.add(b"Link", field.as_bytes());
        }
        String::from_utf8_lossy(&hint(&head)).into_owned()
    }

    #[test]
    fn only_values_that_a_browser_acts_on_early_are_taken() {
        let a = "</a.css>; rel=preload; as=style";
        let cases: &[(&[&str], &str)] = &[
            (&[], ""),
            (&[a], a),
            (&["<a>;rel=next", a, "<b>; rel=\"canonical\""], a),
            (
                &["<a>; rel=next, </b>; rel=preconnect"],
                "</b>; rel=preconnect",
            ),
            (&["<a,b;rel=preload>; rel=next"], ""),
            (&["<a>; title=\"x, <y>; rel=preload\"; rel=next"], ""),
            (
                &["<a>; title=\"\\\", \"; rel=modulepreload"],
                "<a>; title=\"\\\", \"; rel=modulepreload",
            ),
            (
                &["<a>; REL = \"next Preload\""],
                "<a>; REL = \"next Preload\"",
            ),
            // The first one counts.
            (&["<a>; rel=next; rel=preload"], ""),
            (
                &["<a>; rel=preloaded, <b>; rel, <c; rel=preload, rel=preload"],
                "",
            ),
            (
                &["<a>; rel=\"preload", "\"", "<", ">", ",,;="],
                "<a>; rel=\"preload",
            ),
            (
                &["<a>;rel=preload", "<b>;rel=preload"],
                "<a>;rel=preload, <b>;rel=preload",
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(hint_of(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn a_hint_has_a_limit() {
        let long = format!("</{}>; rel=preload", "x".repeat(700));
        let fields = [long.as_str(), &long, &long, "</short>; rel=preload"];
        let hint = hint_of(&fields);
        assert!(hint.len() <= HINT_BYTES_MAX);
        assert!(hint.ends_with(", </short>; rel=preload"));
    }
}

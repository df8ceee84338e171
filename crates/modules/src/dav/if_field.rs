//! The field `If` of WebDAV (RFC 4918 section 10.4), read: lists of state tokens and entity tags.

/// Conditions that a request may have: one for each lock that holds for its paths. They are looked
/// up under the mutex of the zone, or cost a `stat(2)`.
pub(super) const CONDITIONS_MAX: usize = 64;

/// One condition of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) is_negated: bool,
    pub(super) state: State,
}

/// What a condition asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A state token: the name of a lock.
    Token(Vec<u8>),
    /// An entity tag.
    Tag(Vec<u8>),
}

/// The resource that a list names, if it names one, and its conditions.
type List<'a> = (Option<&'a [u8]>, Vec<Condition>);

/// A part of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Open,
    Close,
    Not,
    /// What stands in `<` and `>`.
    Uri(&'a [u8]),
    /// What stands in `[` and `]`.
    Tag(&'a [u8]),
    /// Anything else, or what is not closed, which is `rest`.
    Other {
        unclosed_uri: Option<&'a [u8]>,
    },
}

/// The lists of the field; `None` if it is malformed or has too many conditions: what is left out
/// of a list would make it hold.
pub(super) fn lists(field: &[u8]) -> Option<Vec<List<'_>>> {
    let mut lists: Vec<List<'_>> = Vec::new();
    let (mut resource, mut list, mut is_negated) = (None, None::<Vec<Condition>>, false);
    let mut count = 0;
    for part in parts(field) {
        let state = match (part, &mut list) {
            (Part::Open, None) => {
                list = Some(Vec::new());
                continue;
            }
            (Part::Close, Some(conditions)) if !conditions.is_empty() && !is_negated => {
                lists.push((resource, list.take()?));
                continue;
            }
            (Part::Uri(uri), None) if lists.is_empty() || resource.is_some() => {
                resource = Some(uri);
                continue;
            }
            (Part::Not, Some(_)) if !is_negated => {
                is_negated = true;
                continue;
            }
            (Part::Uri(uri), Some(_)) => State::Token(uri.to_vec()),
            (Part::Tag(tag), Some(_)) => State::Tag(tag.to_vec()),
            _ => return None,
        };
        count += 1;
        if count > CONDITIONS_MAX {
            return None;
        }
        list.as_mut()?.push(Condition { is_negated, state });
        is_negated = false;
    }
    (list.is_none() && !lists.is_empty()).then_some(lists)
}

/// The locks that the field shows to have: every state token in its lists without `Not`. Further
/// ones than a request may have are left out, so that at most more is refused.
pub(super) fn shown_tokens(field: &[u8]) -> Vec<Vec<u8>> {
    let (mut tokens, mut in_list, mut is_negated) = (Vec::new(), false, false);
    for part in parts(field) {
        match part {
            Part::Open => in_list = true,
            Part::Close => in_list = false,
            Part::Not => is_negated = true,
            Part::Uri(uri)
            | Part::Other {
                unclosed_uri: Some(uri),
            } if in_list && !is_negated => tokens.push(uri.to_vec()),
            Part::Uri(_) | Part::Tag(_) => is_negated = false,
            Part::Other { .. } => {}
        }
        if tokens.len() == CONDITIONS_MAX {
            break;
        }
    }
    tokens
}

/// The parts of the field, without the white space and commas between them: lines of the field are
/// joined by commas.
fn parts(mut text: &[u8]) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        while let Some((b' ' | b'\t' | b',', rest)) = text.split_first() {
            text = rest;
        }
        let (&byte, rest) = text.split_first()?;
        text = rest;
        Some(match byte {
            b'(' => Part::Open,
            b')' => Part::Close,
            b'N' | b'n' => match text.get(..2) {
                Some(more) if more.eq_ignore_ascii_case(b"ot") => {
                    text = &text[2..];
                    Part::Not
                }
                _ => Part::Other { unclosed_uri: None },
            },
            b'<' | b'[' => {
                let close = if byte == b'<' { b'>' } else { b']' };
                match memchr::memchr(close, text) {
                    Some(end) => {
                        let inner = &text[..end];
                        text = &text[end + 1..];
                        if byte == b'<' {
                            Part::Uri(inner)
                        } else {
                            Part::Tag(inner)
                        }
                    }
                    None => {
                        let rest = std::mem::take(&mut text);
                        Part::Other {
                            unclosed_uri: (byte == b'<').then_some(rest),
                        }
                    }
                }
            }
            _ => Part::Other { unclosed_uri: None },
        })
    })
}

//! Arguments of a request's query.

/// The value of the first argument of that name, case aside.
pub(crate) fn argument<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|argument| {
        let (own, value) = argument.split_at_checked(name.len())?;
        own.eq_ignore_ascii_case(name).then_some(())?;
        value.strip_prefix(b"=")
    })
}

//! The rules of syntax for messages.

/// The choice of rules (`http_strictness`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// RFC 9110 and RFC 9112: ambiguous messages are refused.
    #[default]
    Rfc,
    /// nginx's rules: the same messages are accepted as by nginx.
    Nginx,
}

/// Whether a token may hold a byte: names, methods (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether a byte is optional white space (RFC 9110 section 5.6.3).
pub(crate) const fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Cuts optional white space from both ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [first, rest @ ..] = text
        && is_white_space(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_white_space(*last)
    {
        text = rest;
    }
    text
}

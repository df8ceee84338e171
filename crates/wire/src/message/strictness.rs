//! How closely messages have to follow the RFC.

/// By whose book messages are read (`http_strictness`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// RFC 9110 and RFC 9112: what may be understood in two ways is refused.
    #[default]
    Rfc,
    /// What nginx takes is taken, and nothing else.
    Nginx,
}

/// Whether a byte may stand in a token: names, methods (RFC 9110 section 5.6.2).
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

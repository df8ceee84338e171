//! Limits and choices for heads of any protocol.

use super::strictness::Strictness;

/// The treatment of header lines whose names hold bytes other than letters, digits and hyphens
/// (`ignore_invalid_headers`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidFields {
    /// Such lines are left out, and kept for the log.
    #[default]
    Ignore,
    /// Such lines are kept, with `Field::valid` unset.
    Keep,
}

/// Limits and choices for a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRules {
    /// Longest request or header line in bytes, line end included (`large_client_header_buffers`,
    /// or `client_header_buffer_size` where that is larger).
    pub line_bytes_max: usize,
    /// Longest head in bytes, from the request line to the empty line.
    pub head_bytes_max: usize,
    /// Most header lines (`max_headers`); left-out ones do not count.
    pub fields_max: usize,
    /// `ignore_invalid_headers`
    pub invalid_fields: InvalidFields,
    /// Whether an underscore counts as a hyphen (`underscores_in_headers`).
    pub underscores: bool,
    /// Whether `CONNECT` is allowed (`allow_connect`).
    pub connect: bool,
    /// Whether HTTP/0.9 is allowed (`http09`).
    pub http09: bool,
    /// The rules of syntax (`http_strictness`).
    pub strictness: Strictness,
}

impl Default for HeadRules {
    /// nginx's defaults: a buffer of 1k and four of 8k, 1000 lines.
    fn default() -> HeadRules {
        HeadRules {
            line_bytes_max: 8 * 1024,
            head_bytes_max: 33 * 1024,
            fields_max: 1000,
            invalid_fields: InvalidFields::Ignore,
            underscores: false,
            connect: false,
            http09: true,
            strictness: Strictness::Rfc,
        }
    }
}

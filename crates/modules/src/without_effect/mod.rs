//! Directives that are checked and do nothing, because what they are about cannot be here. Files
//! that people share between servers have them at the http level, where they do no harm; what would
//! make them matter (`image_filter`) is refused by name.
//!
//! A directive must not stand here when its absence changes a response.

mod checks;
mod http2;
mod others;
mod passing;
#[cfg(test)]
mod tests;
mod warnings;

use turnpike_conf::Row;
use turnpike_http::plan::Family;

/// A family that has directives, and nothing to do.
const fn family(name: &'static str, rows: &'static [Row]) -> Family {
    Family {
        name,
        rows,
        ..Family::NONE
    }
}

/// HTTP/2, beside the family that serves it.
pub(crate) const HTTP2: Family = Family {
    http: |view, builder| {
        warnings::warn(view, builder, warnings::HTTP2);
        Ok(())
    },
    ..family("http2", http2::ROWS)
};

/// QUIC, beside the core that serves it.
pub(crate) const QUIC: Family = family("quic", http2::QUIC);

/// How files are read, and the like.
pub(crate) const TUNING: Family = family("tuning", others::ROWS);

/// Settings of further modules whose main directive is refused.
pub(crate) const OTHERS: Family = family("further modules", others::MODULES);

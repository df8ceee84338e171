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

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family};

/// A family that has directives, and nothing to do.
pub(crate) struct WithoutEffect {
    name: &'static str,
    rows: &'static [Row],
    /// The directives that give a warning.
    warnings: &'static [warnings::Warning],
}

impl Family for WithoutEffect {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> &'static [Row] {
        self.rows
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        if !self.warnings.is_empty() {
            warnings::warn(view, builder, self.warnings);
        }
        Ok(())
    }
}

const fn family(name: &'static str, rows: &'static [Row]) -> WithoutEffect {
    WithoutEffect {
        name,
        rows,
        warnings: &[],
    }
}

/// HTTP/2, beside the family that serves it.
pub(crate) const HTTP2: &dyn Family = &WithoutEffect {
    warnings: warnings::HTTP2,
    ..family("http2", http2::ROWS)
};

/// QUIC, beside the core that serves it.
pub(crate) const QUIC: &dyn Family = &family("quic", http2::QUIC);

/// How files are read, and the like.
pub(crate) const TUNING: &dyn Family = &family("tuning", others::ROWS);

/// Settings of further modules whose main directive is refused.
pub(crate) const OTHERS: &dyn Family = &family("further modules", others::MODULES);

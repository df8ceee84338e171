//! Directives that are checked and do nothing, because what they are about cannot be here: uwsgi
//! and the like. Files that people share between servers have them at the http level, where they
//! do no harm; what would make them matter (`uwsgi_pass`) is refused by name.
//!
//! A directive must not stand here when its absence changes a response.

mod checks;
mod grpc;
mod http2;
mod memcached;
mod others;
mod passing;
mod scgi;
#[cfg(test)]
mod tests;
mod uwsgi;
mod variables;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

use crate::buffers::BufferSizes;

/// A family that has directives and variables, and nothing to do.
pub(crate) struct WithoutEffect {
    name: &'static str,
    rows: &'static [Row],
    variables: &'static [VariableRow],
}

impl Family for WithoutEffect {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> &'static [Row] {
        self.rows
    }

    fn variables(&self) -> &'static [VariableRow] {
        self.variables
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        if self.has_buffers() {
            checks::cache_folders(view, self.name, builder);
        }
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        _draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        match self.has_buffers() {
            true => BufferSizes::check(view, self.name),
            false => Ok(()),
        }
    }
}

impl WithoutEffect {
    /// Whether the module reads responses into buffers and caches them.
    fn has_buffers(&self) -> bool {
        matches!(self.name, "uwsgi" | "scgi")
    }
}

const fn family(name: &'static str, rows: &'static [Row]) -> WithoutEffect {
    WithoutEffect {
        name,
        rows,
        variables: &[],
    }
}

/// HTTP/2 and HTTP/3.
pub(crate) const HTTP2: &dyn Family = &WithoutEffect {
    variables: variables::HTTP2,
    ..family("http2", http2::ROWS)
};

/// uwsgi.
pub(crate) const UWSGI: &dyn Family = &family("uwsgi", uwsgi::ROWS);

/// SCGI.
pub(crate) const SCGI: &dyn Family = &family("scgi", scgi::ROWS);

/// gRPC.
pub(crate) const GRPC: &dyn Family = &WithoutEffect {
    variables: variables::GRPC,
    ..family("grpc", grpc::ROWS)
};

/// memcached.
pub(crate) const MEMCACHED: &dyn Family = &family("memcached", memcached::ROWS);

/// How files are read, and the like.
pub(crate) const TUNING: &dyn Family = &family("tuning", others::ROWS);

/// Settings of further modules whose main directive is refused.
pub(crate) const OTHERS: &dyn Family = &WithoutEffect {
    variables: variables::OTHERS,
    ..family("further modules", others::MODULES)
};

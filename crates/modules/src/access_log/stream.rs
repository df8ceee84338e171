//! The family in `stream`.

use turnpike_stream::plan::Family;

use super::{plan, rows};

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream access_log",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    stream: plan::stream,
    server: plan::server,
    ..Family::NONE
};

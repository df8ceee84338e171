//! The family in `stream`.

use turnpike_conf::{ConfError, View};
use turnpike_stream::plan::{Builder, Family};

use super::{plan, rows};

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream map",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    stream,
    ..Family::NONE
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::define_all(view, builder);
    Ok(())
}

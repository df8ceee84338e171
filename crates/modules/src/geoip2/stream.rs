//! The family in `stream`, where no proxy names an address.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_stream::plan::{Builder, Family};

use super::plan::Proxies;
use super::{plan, rows};

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream geoip2",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    stream,
    ..Family::NONE
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::define(view, builder, &Arc::new(Proxies::default()));
    Ok(())
}

//! `geoip2`: variables out of MaxMind DB files, as in the module ngx_http_geoip2_module.
//!
//! A database is read whole, once for all lanes, and a reload keeps it while its file has not
//! changed. The directives of the legacy format (`geoip_country` and its like) are refused.

mod database;
mod handler;
mod plan;
mod reloading;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod value;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "geoip2",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let proxies = plan::proxies(view)?;
    plan::define(view, builder, &proxies);
    Ok(())
}

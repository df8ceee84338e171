//! `geoip2`: variables out of MaxMind DB files, as in the module ngx_http_geoip2_module.
//!
//! A database is read whole, once for all lanes, and a reload keeps it while its file has not
//! changed. The directives of the legacy format (`geoip_country` and its like) are refused.

mod database;
mod handler;
mod plan;
mod reloading;
mod rows;
mod stream;
#[cfg(test)]
mod tests;
mod value;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

pub(crate) struct GeoIp2;

impl Family for GeoIp2 {
    fn name(&self) -> &'static str {
        "geoip2"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        let proxies = plan::proxies(view)?;
        plan::define(view, builder, &proxies);
        Ok(())
    }
}

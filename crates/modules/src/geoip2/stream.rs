//! The family in `stream`, where no proxy names an address.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_stream::plan::{Builder, Family};

use super::plan::Proxies;
use super::{GeoIp2, plan, rows};

impl Family for GeoIp2 {
    fn name(&self) -> &'static str {
        "stream geoip2"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::define(view, builder, &Arc::new(Proxies::default()));
        Ok(())
    }
}

//! The plans of one configuration: one for each protocol.

use std::sync::Arc;

use turnpike_conf::{ConfError, Errors};
use turnpike_plan::protocol::ProtocolPlan as _;
use turnpike_protocols::Plans;

use super::environment::BuildContext;
use crate::configuration::Configuration;
use crate::needs::Listen;

/// What is to be opened for the plans. The places of gates are places in this list.
pub(super) fn listens(plans: &Plans) -> impl Iterator<Item = Listen> + '_ {
    plans.listens().map(|listen| Listen {
        address: listen.address.clone(),
        options: listen.options.clone(),
        mode: listen.mode,
    })
}

/// Calls this once no lane holds any of the plans any more.
pub(super) fn on_release(plans: &mut Plans, released: impl Fn() + Send + Sync + 'static) {
    plans.keep(Arc::new(Released(Box::new(released))));
}

/// Called when it is dropped, with the last plan that holds it.
struct Released(Box<dyn Fn() + Send + Sync>);

impl Drop for Released {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Builds the plans of a configuration.
///
/// # Errors
/// Everything that is wrong with it, as far as its rows could not tell.
pub(super) fn build(
    configuration: &Configuration,
    generation: u64,
    site: &mut BuildContext<'_>,
) -> Result<Plans, Errors> {
    let root = configuration.root();
    let families = turnpike_modules::FAMILIES;
    let http = turnpike_http::plan::Plan::build(root, generation, families, site);
    let mut http = http.map_err(|errors| Errors(errors.0))?;
    let accept = turnpike_stream::plan::Accept {
        mutex: http.events.accept_mutex,
        reuse_port: http.events.reuse_port,
    };
    let families = turnpike_modules::STREAM_FAMILIES;
    let stream = turnpike_stream::plan::Plan::build(root, generation, families, site, accept);
    let mut stream = stream.map_err(|errors| Errors(errors.0))?;
    let http_addresses = http.listens.iter().map(|listen| &listen.address);
    let stream_addresses = stream.listens.iter().map(|listen| &listen.address);
    stream.destinations = http_addresses.chain(stream_addresses).cloned().collect();
    http.add_metric_readers(&stream.offers().readers);
    let plans = Plans {
        generation,
        http: Arc::new(http),
        stream: Arc::new(stream),
    };
    match twice(&plans) {
        None => Ok(plans),
        Some(error) => Err(Errors(vec![error])),
    }
}

/// The error where two protocols listen at an address.
fn twice(plans: &Plans) -> Option<ConfError> {
    let mut seen = std::collections::HashSet::new();
    let mut listens = plans.listens().map(|listen| listen.address);
    let address = listens.find(|address| !seen.insert(*address))?;
    let message = format!("bind() to {address} failed (98: Address already in use)");
    Some(ConfError::unplaced(message))
}

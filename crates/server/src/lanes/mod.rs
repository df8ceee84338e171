//! The lanes of a serving process: what a configuration needs opened for them, and the service that
//! starts them, tells them of a new plan, and looks after them.
//!
//! How a request is answered is not known here.

mod ask;
mod caches;
mod certificates;
mod changes;
mod environment;
mod express;
mod held_gates;
mod lane;
mod plans;
mod rates;
mod requests;
mod self_check;
mod service;
mod standby_lane;
mod succession;
mod upstream_failures;
mod watchdog;

use turnpike_conf::Errors;

use crate::configuration::Configuration;
use crate::needs::Needs;
use crate::service::{Reporter, Service};
use environment::{BuildContext, Zones};

/// Checks what the rows could not, by building everything that a configuration stands for and
/// throwing it away; tells what it needs.
///
/// # Errors
/// Everything that is wrong.
pub fn needs(configuration: &Configuration) -> Result<Needs, Errors> {
    let mut zones = Zones::default();
    let mut site = BuildContext::dry(configuration, &mut zones);
    let plans = plans::build(configuration, 0, &mut site)?;
    let findings = site.into_findings();
    Ok(Needs {
        listens: plans::listens(&plans).collect(),
        ..findings
    })
}

/// A service that serves nothing yet. Called once in a serving process.
pub fn service(reporter: Reporter) -> Box<dyn Service> {
    Box::new(service::LaneService::new(reporter))
}

#[cfg(test)]
mod tests;

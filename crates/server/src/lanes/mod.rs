//! The lanes of a serving process: what a configuration needs opened for them, and the service that
//! starts them, tells them of a new plan, and looks after them.
//!
//! How a request is answered is not known here.

mod ask;
mod changes;
mod environment;
mod lane;
mod self_check;
mod service;
mod standby_lane;
mod watchdog;

use turnpike_conf::Errors;
use turnpike_http::plan::Plan;

use crate::configuration::Configuration;
use crate::plan::{Listen, Needs, Reporter, Service, ServingPlan};
use environment::{BuildContext, Zones};

/// What serves a configuration on lanes.
#[derive(Clone, Copy, Debug)]
pub struct Lanes;

impl ServingPlan for Lanes {
    fn needs(&self, configuration: &Configuration) -> Result<Needs, Errors> {
        let mut zones = Zones::default();
        let mut site = BuildContext::dry(configuration, &mut zones);
        let plan = build(configuration, 0, &mut site)?;
        let findings = site.into_findings();
        Ok(Needs {
            listens: plan.listens.iter().map(needed).collect(),
            ..findings
        })
    }

    fn service(&self, reporter: Reporter) -> Box<dyn Service> {
        Box::new(service::LaneService::new(reporter))
    }
}

fn build(
    configuration: &Configuration,
    generation: u64,
    site: &mut BuildContext<'_>,
) -> Result<Plan, Errors> {
    Plan::build(
        configuration.root(),
        generation,
        turnpike_modules::FAMILIES,
        site,
    )
    .map_err(|errors| Errors(errors.0))
}

fn needed(listen: &turnpike_http::plan::Listen) -> Listen {
    Listen {
        address: listen.address.clone(),
        options: listen.options.clone(),
        mode: listen.mode,
    }
}

#[cfg(test)]
mod tests;

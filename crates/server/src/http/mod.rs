//! HTTP as the process code sees it: what a configuration needs opened, and the service that runs
//! it on lanes.

mod ask;
mod changes;
mod environment;
mod lanes;
mod self_check;
mod service;
mod watchdog;

use std::path::PathBuf;

use turnpike_conf::Errors;
use turnpike_http::plan::Plan;

use crate::configuration::Configuration;
use crate::plan::{Folder, Listen, Reporter, Service, ServingPlan};
use environment::{Site, Zones};

/// The HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct Http;

impl ServingPlan for Http {
    fn check(&self, configuration: &Configuration) -> Result<(), Errors> {
        build(
            configuration,
            0,
            &mut Site::dry(configuration, &mut Zones::default()),
        )
        .map(|_| ())
    }

    fn listens(&self, configuration: &Configuration) -> Vec<Listen> {
        let mut zones = Zones::default();
        let plan = build(configuration, 0, &mut Site::dry(configuration, &mut zones));
        let listens = plan.map(|plan| plan.listens.iter().map(needed).collect());
        listens.unwrap_or_default()
    }

    fn log_files(&self, configuration: &Configuration) -> Vec<PathBuf> {
        let mut zones = Zones::default();
        let mut site = Site::dry(configuration, &mut zones);
        // What is wrong was reported by `check`; here only the names matter.
        let _ = build(configuration, 0, &mut site);
        site.into_log_files()
    }

    fn folders(&self, configuration: &Configuration) -> Vec<Folder> {
        environment::folders(configuration)
    }

    fn service(&self, reporter: Reporter) -> Box<dyn Service> {
        Box::new(service::HttpService::new(reporter))
    }
}

fn build(
    configuration: &Configuration,
    generation: u64,
    site: &mut Site<'_>,
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

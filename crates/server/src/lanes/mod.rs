//! The lanes of a serving process: what a configuration needs opened for them, and the service that
//! starts them, tells them of a new plan, and looks after them.
//!
//! How a request is answered is not known here.

mod ask;
mod changes;
mod environment;
mod handler;
mod lane;
mod self_check;
mod service;
mod standby_lane;
mod watchdog;

use std::sync::Arc;

use turnpike_conf::{ConfError, Errors};
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
        let plans = build(configuration, 0, &mut site)?;
        let findings = site.into_findings();
        Ok(Needs {
            listens: plans.listens().collect(),
            ..findings
        })
    }

    fn service(&self, reporter: Reporter) -> Box<dyn Service> {
        Box::new(service::LaneService::new(reporter))
    }
}

/// The plans of all protocols.
#[derive(Clone)]
struct Plans {
    http: Arc<Plan>,
    stream: Arc<turnpike_stream::plan::Plan>,
}

impl Plans {
    /// Calls this once no lane holds any of them any more.
    fn on_release(&mut self, released: impl Fn() + Send + Sync + 'static) {
        let released = Arc::new(Released(Box::new(released)));
        // Nobody else holds them yet.
        if let Some(http) = Arc::get_mut(&mut self.http) {
            let released = released.clone();
            http.on_release(Box::new(move |_| {
                let _kept = &released;
            }));
        }
        if let Some(stream) = Arc::get_mut(&mut self.stream) {
            stream.kept = Some(released);
        }
    }

    /// The work of the families that goes on in the background.
    fn services(&self) -> Vec<Arc<dyn turnpike_plan::background::Service>> {
        let http = self.http.services().iter();
        http.chain(self.stream.services()).cloned().collect()
    }

    /// What is listened on: HTTP's addresses, then those of stream. The numbers of gates are
    /// places in this list.
    fn listens(&self) -> impl Iterator<Item = Listen> + '_ {
        let http = self.http.listens.iter();
        let http = http.map(|listen| (&listen.address, &listen.options, listen.mode));
        let stream = self.stream.listens.iter();
        let stream = stream.map(|listen| (&listen.address, &listen.options, listen.mode));
        http.chain(stream).map(|(address, options, mode)| Listen {
            address: address.clone(),
            options: options.clone(),
            mode,
        })
    }

    /// How many server blocks there are.
    fn server_count(&self) -> usize {
        self.http.server_count() + self.stream.servers.len()
    }

    /// What is listened on at that place.
    fn listen(&self, place: usize) -> Option<Listen> {
        self.listens().nth(place)
    }
}

/// Called when it is dropped, with the last plan that holds it.
struct Released(Box<dyn Fn() + Send + Sync>);

impl Drop for Released {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn build(
    configuration: &Configuration,
    generation: u64,
    site: &mut BuildContext<'_>,
) -> Result<Plans, Errors> {
    let root = configuration.root();
    let http = Plan::build(root, generation, turnpike_modules::FAMILIES, site);
    let http = http.map_err(|errors| Errors(errors.0))?;
    let accept = turnpike_stream::plan::Accept {
        mutex: http.events.accept_mutex,
        reuse_port: http.events.reuse_port,
    };
    let families = turnpike_modules::STREAM_FAMILIES;
    let stream = turnpike_stream::plan::Plan::build(root, generation, families, site, accept);
    let stream = stream.map_err(|errors| Errors(errors.0))?;
    let twice = stream.listens.iter().find(|listen| {
        let mut http = http.listens.iter();
        http.any(|other| other.address == listen.address)
    });
    if let Some(listen) = twice {
        let address = &listen.address;
        return Err(Errors(vec![ConfError {
            message: format!("bind() to {address} failed (98: Address already in use)"),
            place: None,
        }]));
    }
    Ok(Plans {
        http: Arc::new(http),
        stream: Arc::new(stream),
    })
}

#[cfg(test)]
mod tests;

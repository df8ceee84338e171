//! The plans of one configuration: HTTP's, and that of stream.

use std::sync::Arc;

use turnpike_conf::{ConfError, Errors};
use turnpike_http::plan::Plan;
use turnpike_plan::control::Command;

use super::environment::BuildContext;
use crate::configuration::Configuration;
use crate::needs::Listen;

/// The plans of all protocols.
#[derive(Clone)]
pub(super) struct Plans {
    pub(super) http: Arc<Plan>,
    pub(super) stream: Arc<turnpike_stream::plan::Plan>,
}

impl Plans {
    /// Calls this once no lane holds any of them any more.
    pub(super) fn on_release(&mut self, released: impl Fn() + Send + Sync + 'static) {
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

    /// What carries out the verb of that name.
    pub(super) fn command(&self, name: &str) -> Option<Arc<dyn Command>> {
        let stream = self.stream.commands().iter();
        let of_stream = || {
            let (_, command) = stream.clone().find(|(row, _)| row.name == name)?;
            Some(command.clone())
        };
        self.http.command(name).or_else(of_stream)
    }

    /// The verbs that the families offer, each once.
    pub(super) fn verbs(&self) -> Vec<&'static str> {
        let mut verbs: Vec<&str> = self.http.commands().map(|row| row.name).collect();
        for (row, _) in self.stream.commands() {
            if !verbs.contains(&row.name) {
                verbs.push(row.name);
            }
        }
        verbs
    }

    /// The work of the families that goes on in the background.
    pub(super) fn services(&self) -> Vec<Arc<dyn turnpike_plan::background::Service>> {
        let http = self.http.services().iter();
        http.chain(self.stream.services()).cloned().collect()
    }

    /// What is listened on: HTTP's addresses, then those of stream. The numbers of gates are
    /// places in this list.
    pub(super) fn listens(&self) -> impl Iterator<Item = Listen> + '_ {
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
    pub(super) fn server_count(&self) -> usize {
        self.http.server_count() + self.stream.servers.len()
    }

    /// What is listened on at that place.
    pub(super) fn listen(&self, place: usize) -> Option<Listen> {
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
    let http = Plan::build(root, generation, turnpike_modules::FAMILIES, site);
    let mut http = http.map_err(|errors| Errors(errors.0))?;
    let accept = turnpike_stream::plan::Accept {
        mutex: http.events.accept_mutex,
        reuse_port: http.events.reuse_port,
    };
    let families = turnpike_modules::STREAM_FAMILIES;
    let stream = turnpike_stream::plan::Plan::build(root, generation, families, site, accept);
    let mut stream = stream.map_err(|errors| Errors(errors.0))?;
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
    let http_addresses = http.listens.iter().map(|listen| &listen.address);
    let stream_addresses = stream.listens.iter().map(|listen| &listen.address);
    stream.destinations = http_addresses.chain(stream_addresses).cloned().collect();
    http.add_metric_readers(stream.metric_readers());
    Ok(Plans {
        http: Arc::new(http),
        stream: Arc::new(stream),
    })
}

//! The control API's requests: all of them are the master's own.

use std::os::fd::OwnedFd;

use serde_json::{Value, json};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Event;

use super::Master;
use crate::control::RequestError;
use crate::control::api::{ApiAddress, ApiCall, ApiSocket, Status};
use crate::control::socket::Ticket;
use crate::master::child::State;
use turnpike_plan::product::{NGINX_VERSION, Product, TURNPIKE_VERSION};

/// The API of this master, if it was started with one.
#[derive(Debug)]
pub(super) struct Api {
    address: Option<ApiAddress>,
    /// The listening socket of the master before this one, until this one is up.
    inherited: Option<OwnedFd>,
    pub(super) socket: ApiSocket,
}

impl Api {
    pub(super) fn new(address: Option<ApiAddress>, inherited: Option<OwnedFd>) -> Api {
        Api {
            // Without an address it is nobody's.
            inherited: inherited.filter(|_| address.is_some()),
            address,
            socket: ApiSocket::default(),
        }
    }
}

/// The socket's life.
impl Master {
    /// Listens where the command line says. `false`: that place cannot be had.
    pub(super) fn place_api(&mut self) -> bool {
        let Some(address) = &self.api.address else {
            return true;
        };
        let inherited = self.api.inherited.take();
        let placed = self
            .api
            .socket
            .listen(address, inherited, &self.events.epoll);
        if let Err(error) = &placed {
            let error = Errno(error);
            let message = format_args!("control: listen on \"{address}\" failed {error}");
            self.log.event(Level::Emerg, message);
        }
        placed.is_ok()
    }

    /// Listens no more. The file stays for the other master that has the same socket.
    pub(super) fn close_api(&mut self) {
        let has_heir = self.has_other_master() || self.others.is_succeeded;
        let left = self.api.socket.leave(&self.events.epoll);
        if let Some(socket) = left.filter(|_| !has_heir) {
            self.remove_socket(&socket);
        }
    }
}

/// Requests.
impl Master {
    pub(super) fn take_api(&mut self, event: Event) {
        let product = self.product();
        let asked = self.api.socket.take(event, &self.events.epoll, product);
        let Some((ticket, wish)) = asked else {
            return;
        };
        let shown = match wish {
            ApiCall::Names(names) => json!(names),
            ApiCall::Version => json!({
                "version": NGINX_VERSION,
                "build": format!("turnpike/{TURNPIKE_VERSION}"),
            }),
            ApiCall::Processes => self.processes(),
            ApiCall::Configuration => self.configuration_files(),
            ApiCall::Reload => {
                let message = format_args!("control: a reload is requested through the API");
                self.log.event(Level::Notice, message);
                return self.reload_for(ticket);
            }
        };
        self.answer_api(&ticket, Status::Ok, &shown);
    }

    /// A reload is over, or was refused: what was logged about it.
    pub(super) fn tell_api(&mut self, ticket: &Ticket, outcome: &Result<Value, RequestError>) {
        let mut logs = self.reloads.logs.clone();
        let status = match outcome {
            Ok(_) => Status::Ok,
            Err(failure) => {
                let first = failure.message.lines().next().unwrap_or_default();
                if !logs.iter().any(|line| line.contains(first)) {
                    logs.push(failure.message.clone());
                }
                Status::Unprocessable
            }
        };
        self.answer_api(ticket, status, &json!({ "logs": logs }));
    }

    fn answer_api(&mut self, ticket: &Ticket, status: Status, body: &Value) {
        let product = self.product();
        self.api
            .socket
            .answer(ticket, status, Some(body), product, &self.events.epoll);
    }

    fn product(&self) -> Product {
        self.loaded.configuration.settings.product
    }

    fn processes(&self) -> Value {
        let children = self.serving.children.iter();
        let rows = children.map(|child| {
            json!({
                "name": "worker process",
                "pid": child.number(),
                "exiting": child.state == State::Leaving,
            })
        });
        rows.collect()
    }

    fn configuration_files(&self) -> Value {
        let sources = self.loaded.configuration.tree.sources.iter();
        let rows = sources.map(|source| {
            json!({
                "name": source.path.to_string_lossy(),
                "content": String::from_utf8_lossy(&source.bytes),
            })
        });
        rows.collect()
    }
}

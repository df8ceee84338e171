//! What this family does with a request: a response store may answer it, else servers are asked.

use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Waiting, Work};
use turnpike_lane::log::Level;
use turnpike_upstream::Address;

use super::attempt;
use super::early_hints::Hints;
use super::origin::{Origin, Path};
use super::response_store::{Lookup, Recorder, ResponseStore};
use super::settings::{Destination, Passing};
use super::target::{PassUrl, UrlError};
use crate::upstream::{Directory, Names, Target, Upstream};

/// Times that a response store may let one request wait: for the request's content, for another
/// request, then for a file that is looked through, and once more should that one be broken.
const WAITS_MAX: usize = 5;

/// The content of a location that passes requests on.
pub(crate) struct PassHandler(pub(crate) Arc<Passing>);

impl Handler for PassHandler {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let verdict = self.go(exchange);
        if let Some(response_store) = self.noting_store() {
            let difference = response_store.difference(exchange);
            exchange.walk.note_difference(difference);
        }
        verdict
    }

    /// What differs is noted for each request.
    fn is_same_for_all(&self) -> bool {
        self.noting_store().is_some()
    }
}

impl PassHandler {
    /// The response store, where it notes which answers are the same for all. Where a request names
    /// the server, the key of what is stored may depend on it.
    fn noting_store(&self) -> Option<&Arc<dyn ResponseStore>> {
        let is_fixed = matches!(self.0.destination, Destination::Fixed { .. });
        let response_store = self.0.response_store.as_ref();
        response_store.filter(|store| is_fixed && store.notes_originals())
    }

    /// Finds out where the request goes, and goes on.
    fn go(&self, exchange: &mut Exchange) -> Verdict {
        let passing = &self.0;
        if passing.origin.ends_here(exchange) {
            return Verdict::Respond;
        }
        if let Some(status) = passing.origin.refused(exchange) {
            return Verdict::Status(status);
        }
        match &passing.destination {
            Destination::Fixed { url, .. } => self.go_to(exchange, Route::Fixed, url),
            Destination::Evaluated {
                template,
                directory,
                names,
            } => {
                let text = template.value(exchange);
                if exchange.is_undecided() {
                    return Verdict::Undecided;
                }
                let url = match parse(exchange, &*passing.origin, &text) {
                    Ok(url) => url,
                    Err(verdict) => return verdict,
                };
                match find(exchange, directory, &url) {
                    Ok(upstream) => self.go_to_found(exchange, url, upstream),
                    Err(Missing::Verdict(verdict)) => verdict,
                    Err(Missing::Addresses { name, port }) => {
                        let (directory, names) = (Arc::clone(directory), names.clone());
                        self.look_up(exchange, url, directory, names, name, port)
                    }
                }
            }
        }
    }

    /// Goes on with the group that an evaluated address stands for.
    fn go_to_found(
        &self,
        exchange: &mut Exchange,
        url: PassUrl,
        upstream: Arc<Upstream>,
    ) -> Verdict {
        let route = Route::Evaluated {
            url: Box::new(url.clone()),
            upstream,
        };
        self.go_to(exchange, route, &url)
    }

    fn go_to(&self, exchange: &mut Exchange, route: Route, url: &PassUrl) -> Verdict {
        let passing = &self.0;
        exchange.upstream.set_host(&url.host, &url.port);
        let recorder = match &passing.response_store {
            None => None,
            Some(response_store) => {
                match look_up(&**response_store, exchange, passing, &route, &url.host) {
                    Lookup::Answer(verdict) => return verdict,
                    Lookup::Pass => None,
                    Lookup::Record(recorder) => Some(recorder),
                    Lookup::Wait(waiting) => {
                        let passing = Arc::clone(passing);
                        return Verdict::Wait(Box::new(AskLater {
                            passing,
                            route,
                            waiting,
                        }));
                    }
                }
            }
        };
        let ask = Ask {
            passing: Arc::clone(passing),
            route,
            recorder,
        };
        attempt::begin(exchange, ask)
    }

    /// Looks a name up, and goes on then.
    fn look_up(
        &self,
        exchange: &Exchange,
        url: PassUrl,
        directory: Arc<Directory>,
        names: Option<Names>,
        name: String,
        port: u16,
    ) -> Verdict {
        let Some(names) = names else {
            exchange.log(
                Level::Error,
                format_args!("no resolver defined to resolve {name}"),
            );
            return Verdict::Status(502);
        };
        Verdict::Wait(Box::new(LookUp {
            handler: PassHandler(Arc::clone(&self.0)),
            url,
            directory,
            names,
            name,
            port,
        }))
    }
}

/// Looks the server's name up first. What the address was evaluated to is kept: it may have another
/// value afterwards, whose name these addresses do not have.
struct LookUp {
    handler: PassHandler,
    url: PassUrl,
    directory: Arc<Directory>,
    names: Names,
    name: String,
    port: u16,
}

impl Work for LookUp {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let name = &self.name;
        let found = client
            .unless_gone(self.names.addresses(name, self.port))
            .await;
        match found {
            Some(Ok(addresses)) => {
                let upstream = self.directory.passing(&self.url.url.host, addresses);
                let handler = &self.handler;
                handler.go_to_found(exchange, self.url, Arc::new(upstream))
            }
            Some(Err(error)) => {
                exchange.log(
                    Level::Error,
                    format_args!("{name} could not be resolved {error}"),
                );
                Verdict::Status(502)
            }
            None => exchange.client_went_away(),
        }
    }
}

/// Asks the response store, who wants to know what would be asked of a server.
fn look_up(
    response_store: &dyn ResponseStore,
    exchange: &mut Exchange,
    passing: &Passing,
    route: &Route,
    host: &[u8],
) -> Lookup {
    let mut target = std::mem::take(exchange.upstream.target_mut());
    target.clear();
    target.extend_from_slice(route.scheme(passing));
    target.extend_from_slice(host);
    let path = route.path(passing);
    passing.origin.write_key(exchange, &path, &mut target);
    *exchange.upstream.target_mut() = target;
    let lookup = response_store.look_up(exchange);
    if let Lookup::Answer(_) = lookup {
        exchange.upstream.target_mut().clear();
    }
    lookup
}

/// Where one request goes.
pub(crate) enum Route {
    /// As the location says.
    Fixed,
    /// As was found out for this request.
    Evaluated {
        url: Box<PassUrl>,
        upstream: Arc<Upstream>,
    },
}

impl Route {
    pub(crate) fn upstream<'a>(&'a self, passing: &'a Passing) -> &'a Arc<Upstream> {
        match (self, &passing.destination) {
            (Self::Evaluated { upstream, .. }, _) => upstream,
            (Self::Fixed, Destination::Fixed { upstream, .. }) => upstream,
            (Self::Fixed, Destination::Evaluated { .. }) => {
                unreachable!("a fixed route is made of a fixed destination only")
            }
        }
    }

    /// The scheme, for the log.
    pub(crate) fn scheme<'a>(&'a self, passing: &'a Passing) -> &'a [u8] {
        match (self, &passing.destination) {
            (Self::Evaluated { url, .. }, _) => &url.scheme,
            (Self::Fixed, Destination::Fixed { url, .. }) => &url.scheme,
            (Self::Fixed, Destination::Evaluated { .. }) => b"",
        }
    }

    /// Whether it is `https`.
    pub(crate) fn is_secure(&self, passing: &Passing) -> bool {
        match (self, &passing.destination) {
            (Self::Evaluated { url, .. }, _) => url.secure,
            (Self::Fixed, Destination::Fixed { url, .. }) => url.secure,
            (Self::Fixed, Destination::Evaluated { .. }) => false,
        }
    }

    pub(crate) fn path<'a>(&'a self, passing: &'a Passing) -> Path<'a> {
        match (self, &passing.destination) {
            (Self::Evaluated { url, .. }, _) => Path {
                written: &url.path,
                location: url.path.is_empty().then_some(b""),
            },
            (Self::Fixed, Destination::Fixed { url, location, .. }) => Path {
                written: &url.path,
                location: Some(location),
            },
            (Self::Fixed, Destination::Evaluated { .. }) => Path {
                written: b"",
                location: Some(b""),
            },
        }
    }
}

/// Why a request cannot go on yet, or at all.
enum Missing {
    /// The request ends with this verdict.
    Verdict(Verdict),
    /// The server's addresses are not known.
    Addresses { name: String, port: u16 },
}

/// The address that a text of variables stands for.
fn parse(exchange: &Exchange, origin: &dyn Origin, text: &[u8]) -> Result<PassUrl, Verdict> {
    let text = String::from_utf8_lossy(text);
    origin.parse_url(&text).map_err(|error| {
        match error {
            UrlError::Prefix => exchange.log(
                Level::Error,
                format_args!("invalid URL prefix in \"{text}\""),
            ),
            UrlError::Address(what, of) => {
                exchange.log(Level::Error, format_args!("{what} in upstream \"{of}\""));
            }
        }
        Verdict::Status(500)
    })
}

/// The group that an address made of variables stands for.
fn find(
    exchange: &Exchange,
    directory: &Directory,
    url: &PassUrl,
) -> Result<Arc<Upstream>, Missing> {
    if let Some(upstream) = directory.find(&url.url, url.default_port) {
        return Ok(upstream);
    }
    let port = url.url.port.unwrap_or(url.default_port);
    if port == 0 && !matches!(url.url.target, Target::Unix(_)) {
        let host = &url.url.host;
        exchange.log(Level::Error, format_args!("no port in upstream \"{host}\""));
        return Err(Missing::Verdict(Verdict::Status(500)));
    }
    let addresses = match &url.url.target {
        Target::Unix(path) => vec![Address::unix(path)],
        Target::Ip(address) => vec![Address::Inet((*address, port).into())],
        Target::Name(name) => {
            let name = name.clone();
            return Err(Missing::Addresses { name, port });
        }
    };
    Ok(Arc::new(directory.passing(&url.url.host, addresses)))
}

/// A request that servers are to be asked.
pub(crate) struct Ask {
    pub(crate) passing: Arc<Passing>,
    pub(crate) route: Route,
    pub(crate) recorder: Option<Box<dyn Recorder>>,
}

/// Lets a response store wait first.
struct AskLater {
    passing: Arc<Passing>,
    route: Route,
    waiting: Box<dyn Waiting>,
}

impl Work for AskLater {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let mut waiting = self.waiting;
        let mut waits = 0;
        let mut hints = Hints::of_store(exchange, &self.passing);
        hints.send(exchange, client).await;
        let recorder = loop {
            waits += 1;
            match waiting.run(exchange, client).await {
                Verdict::Declined => {}
                verdict => return verdict,
            }
            let Some(response_store) = &self.passing.response_store else {
                break None;
            };
            match response_store.look_up(exchange) {
                Lookup::Answer(verdict) => {
                    exchange.upstream.target_mut().clear();
                    return verdict;
                }
                Lookup::Wait(again) if waits < WAITS_MAX => waiting = again,
                Lookup::Pass | Lookup::Wait(_) => break None,
                Lookup::Record(recorder) => break Some(recorder),
            }
        };
        let ask = Ask {
            passing: self.passing,
            route: self.route,
            recorder,
        };
        attempt::begin(exchange, ask)
    }
}

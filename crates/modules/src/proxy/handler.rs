//! What this family does with a request: a keeper may answer it, else servers are asked.

use std::sync::Arc;

use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Waiting};
use turnpike_http::response::LocalFuture;
use turnpike_lane::log::Level;
use turnpike_upstream::Address;

use super::attempt;
use super::request::{self, Path};
use super::seam::{Keeper, Keeping, Lookup};
use super::settings::{Destination, Passing};
use super::target::{PassUrl, UrlError};
use crate::upstream::{Directory, Target, Upstream};

/// Times that a keeper may let one request wait: for another request, then for a file that is
/// looked through, and once more should that one be broken.
const WAITS_MAX: usize = 4;

/// The content of a location with `proxy_pass`.
pub(super) struct ProxyPass(pub(super) Arc<Passing>);

impl Handler for ProxyPass {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let passing = &self.0;
        let (route, url) = match &passing.destination {
            Destination::Fixed { url, .. } => (Route::Fixed, url),
            Destination::Evaluated {
                template,
                directory,
            } => {
                let text = template.value(exchange);
                match Route::evaluate(exchange, directory, &text) {
                    Ok((route, url)) => (route, &url.clone()),
                    Err(verdict) => return verdict,
                }
            }
        };
        let upstream = &mut exchange.upstream;
        upstream.host.clear();
        upstream.host.extend_from_slice(&url.host);
        upstream.port.clear();
        upstream.port.extend_from_slice(&url.port);
        let keeping = match &passing.keeper {
            None => None,
            Some(keeper) => match look_up(&**keeper, exchange, passing, &route, &url.host) {
                Lookup::Answer(verdict) => return verdict,
                Lookup::Pass => None,
                Lookup::Keep(keeping) => Some(keeping),
                Lookup::Wait(waiting) => {
                    let passing = Arc::clone(passing);
                    return Verdict::Wait(Box::new(AskLater {
                        passing,
                        route,
                        waiting,
                    }));
                }
            },
        };
        Verdict::Wait(Box::new(Ask {
            passing: Arc::clone(passing),
            route,
            keeping,
        }))
    }
}

/// Asks the keeper, who wants to know what would be asked of a server.
fn look_up(
    keeper: &dyn Keeper,
    exchange: &mut Exchange,
    passing: &Passing,
    route: &Route,
    host: &[u8],
) -> Lookup {
    let mut target = std::mem::take(&mut exchange.upstream.target);
    target.clear();
    target.extend_from_slice(route.scheme(passing));
    target.extend_from_slice(host);
    request::write_target(exchange, &route.path(passing), &mut target);
    exchange.upstream.target = target;
    let lookup = keeper.look_up(exchange);
    if let Lookup::Answer(_) = lookup {
        exchange.upstream.target.clear();
    }
    lookup
}

/// Where one request goes.
pub(super) enum Route {
    /// As the location says.
    Fixed,
    /// As was found out for this request.
    Evaluated {
        url: Box<PassUrl>,
        upstream: Arc<Upstream>,
    },
}

impl Route {
    fn evaluate(
        exchange: &Exchange,
        directory: &Directory,
        text: &[u8],
    ) -> Result<(Self, PassUrl), Verdict> {
        let text = String::from_utf8_lossy(text);
        let url = PassUrl::parse(&text).map_err(|error| {
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
        })?;
        let upstream = find(exchange, directory, &url)?;
        let route = Self::Evaluated {
            url: Box::new(url.clone()),
            upstream,
        };
        Ok((route, url))
    }

    pub(super) fn upstream<'a>(&'a self, passing: &'a Passing) -> &'a Arc<Upstream> {
        match (self, &passing.destination) {
            (Self::Evaluated { upstream, .. }, _) => upstream,
            (Self::Fixed, Destination::Fixed { upstream, .. }) => upstream,
            (Self::Fixed, Destination::Evaluated { .. }) => {
                unreachable!("a fixed route is made of a fixed destination only")
            }
        }
    }

    /// The scheme, for the log.
    pub(super) fn scheme<'a>(&'a self, passing: &'a Passing) -> &'a [u8] {
        match (self, &passing.destination) {
            (Self::Evaluated { url, .. }, _) => &url.scheme,
            (Self::Fixed, Destination::Fixed { url, .. }) => &url.scheme,
            (Self::Fixed, Destination::Evaluated { .. }) => b"",
        }
    }

    /// Whether it is `https`.
    pub(super) fn is_secure(&self, passing: &Passing) -> bool {
        match (self, &passing.destination) {
            (Self::Evaluated { url, .. }, _) => url.secure,
            (Self::Fixed, Destination::Fixed { url, .. }) => url.secure,
            (Self::Fixed, Destination::Evaluated { .. }) => false,
        }
    }

    pub(super) fn path<'a>(&'a self, passing: &'a Passing) -> Path<'a> {
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

/// The group that an address made of variables stands for.
fn find(
    exchange: &Exchange,
    directory: &Directory,
    url: &PassUrl,
) -> Result<Arc<Upstream>, Verdict> {
    if let Some(upstream) = directory.named(&url.url.host) {
        return Ok(Arc::clone(upstream));
    }
    let port = url.url.port.unwrap_or_else(|| url.default_port());
    let address = match &url.url.target {
        Target::Unix(path) => Address::unix(path),
        Target::Ip(address) => Address::Inet((*address, port).into()),
        Target::Name(name) => {
            exchange.log(
                Level::Error,
                format_args!("no resolver defined to resolve {name}"),
            );
            return Err(Verdict::Status(502));
        }
    };
    let name = address.to_string();
    Ok(Arc::new(directory.passing(&name, vec![address])))
}

/// Asks servers.
pub(super) struct Ask {
    pub(super) passing: Arc<Passing>,
    pub(super) route: Route,
    pub(super) keeping: Option<Box<dyn Keeping>>,
}

impl Waiting for Ask {
    fn run<'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange,
        client: &'a mut Stream,
    ) -> LocalFuture<'a, Verdict> {
        Box::pin(attempt::run(*self, exchange, client))
    }
}

/// Lets a keeper wait first.
struct AskLater {
    passing: Arc<Passing>,
    route: Route,
    waiting: Box<dyn Waiting>,
}

impl Waiting for AskLater {
    fn run<'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange,
        client: &'a mut Stream,
    ) -> LocalFuture<'a, Verdict> {
        Box::pin(async move {
            let mut waiting = self.waiting;
            let mut waits = 0;
            let keeping = loop {
                waits += 1;
                match waiting.run(exchange, client).await {
                    Verdict::Declined => {}
                    verdict => return verdict,
                }
                let Some(keeper) = &self.passing.keeper else {
                    break None;
                };
                match keeper.look_up(exchange) {
                    Lookup::Answer(verdict) => {
                        exchange.upstream.target.clear();
                        return verdict;
                    }
                    Lookup::Wait(again) if waits < WAITS_MAX => waiting = again,
                    Lookup::Pass | Lookup::Wait(_) => break None,
                    Lookup::Keep(keeping) => break Some(keeping),
                }
            };
            let ask = Ask {
                passing: self.passing,
                route: self.route,
                keeping,
            };
            attempt::run(ask, exchange, client).await
        })
    }
}

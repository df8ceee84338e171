//! What the directives say that all passing families have, and how their location is made.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, Entry, View, bytes_of};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;

use super::cgi::CgiOrigin;
use super::conditions::NextConditions;
use super::handler::PassHandler;
use super::ignored::Ignored;
use super::names::Names;
use super::origin::Origin;
use super::params;
use super::proxy_header::ProxyHeader;
use super::response::ResponseRules;
use super::response_store::{ResponseStore, ResponseStores};
use super::settings::{Bind, BodyRules, Buffers, Destination, Passing, Timeouts};
use super::store::Store;
use super::target::{PassUrl, UrlError};
use super::tls::Tls;
use super::view::PassView;
use crate::common::predicates;
use crate::upstream;

/// What only the family knows of a location.
pub(crate) struct FamilyParts {
    pub(crate) destination: Destination,
    pub(crate) origin: Box<dyn Origin>,
    /// Fields of a response that are kept from the client unless `..._pass_header` says otherwise.
    pub(crate) hidden: &'static [&'static [u8]],
    /// The body of requests instead of the client's.
    pub(crate) body: Option<Template>,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxy_header: ProxyHeader,
    /// Whether ranges of a response are served though the server does not offer them.
    pub(crate) forces_ranges: bool,
    /// Whether fields and body of requests are passed on, though no directive says so.
    pub(crate) passes_all: bool,
    /// Whether a client that leaves out the slash at the end of the location's name is redirected.
    pub(crate) auto_redirect: bool,
}

impl FamilyParts {
    /// The parts of a family that has nothing of its own beyond these two.
    pub(crate) fn new(
        pass: PassView<'_>,
        destination: Destination,
        origin: Box<dyn Origin>,
    ) -> Self {
        Self {
            destination,
            origin,
            hidden: &[],
            body: None,
            tls: None,
            proxy_header: ProxyHeader::default(),
            forces_ranges: pass.flag("force_ranges"),
            passes_all: false,
            auto_redirect: true,
        }
    }

    /// The parts of a family of applications.
    pub(crate) fn of_application(
        pass: PassView<'_>,
        destination: Destination,
        origin: impl CgiOrigin + 'static,
    ) -> Self {
        Self {
            hidden: params::HIDDEN,
            ..Self::new(pass, destination, Box::new(origin))
        }
    }
}

/// Reads the directives in force, and lets the location pass its requests on.
///
/// # Errors
/// The first value that cannot be read.
pub(crate) fn pass_on(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
    parts: FamilyParts,
) -> Result<Arc<Passing>, ConfError> {
    let origin: Arc<dyn Origin> = parts.origin.into();
    let responses = Arc::new(ResponseRules {
        origin: Arc::clone(&origin),
        hidden: hidden(pass, parts.hidden),
        ignored: Ignored::read(pass),
        forces_ranges: parts.forces_ranges,
    });
    let passing = Passing {
        destination: parts.destination,
        origin,
        passes_fields: parts.passes_all || pass.flag("pass_request_headers"),
        body: BodyRules {
            instead: parts.body,
            passes: parts.passes_all || pass.flag("pass_request_body"),
            buffered: pass.flag("request_buffering"),
        },
        timeouts: Timeouts {
            connect_ms: pass.milliseconds("connect_timeout"),
            send_ms: pass.milliseconds("send_timeout"),
            read_ms: pass.milliseconds("read_timeout"),
        },
        next: NextConditions::read(pass),
        next_tries_max: u32::try_from(pass.number("next_upstream_tries")).unwrap_or(0),
        next_timeout_ms: pass.milliseconds("next_upstream_timeout"),
        intercepts_errors: pass.flag("intercept_errors"),
        ignores_client_abort: pass.flag("ignore_client_abort"),
        early_hints: predicates::read(pass.view, "early_hints", builder)?,
        buffers: Buffers::read(pass, builder.environment)?,
        limit_rate: limit_rate(pass, builder)?,
        tls: parts.tls,
        bind: Bind::read(pass, builder)?,
        proxy_header: parts.proxy_header,
        socket_keepalive: pass.flag("socket_keepalive"),
        send_buffer_bytes: pass.small_size("socket_sndbuf"),
        receive_buffer_bytes: pass.small_size("socket_rcvbuf"),
        location: draft.index.0,
        response_store: response_store(pass, builder, draft, &responses)?,
        responses,
    };
    let passing = Arc::new(passing);
    let is_own = pass.own("pass").is_some();
    draft.set_content(Arc::new(PassHandler(Arc::clone(&passing))), is_own);
    draft.auto_redirect = is_own && parts.auto_redirect;
    Ok(passing)
}

/// The `..._pass` of this location; blocks inside of it (`if`, `limit_except`) share it.
pub(crate) fn pass_in_force(pass: PassView<'_>) -> Option<(View<'_>, &Entry)> {
    let inside = [Context::IfInLocation, Context::LimitExcept];
    pass.look_up("pass", |view, name| view.own_through(name, &inside))
}

/// Where requests go by a `..._pass` directive whose addresses have no path.
///
/// # Errors
/// As [`destination`].
pub(crate) fn destination_without_path(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
    parse: impl FnOnce(&str) -> Result<PassUrl, UrlError>,
) -> Result<Destination, ConfError> {
    destination(view, entry, builder, parse, |_| Ok(Vec::new()))
}

/// Where requests go by the `..._pass` directive in `view`. `location` gives the part of a path
/// that stands for the location.
///
/// # Errors
/// What is wrong with the address, in nginx's words.
pub(crate) fn destination(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
    parse: impl FnOnce(&str) -> Result<PassUrl, UrlError>,
    location: impl FnOnce(&PassUrl) -> Result<Vec<u8>, Complaint>,
) -> Result<Destination, ConfError> {
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    if template.constant().is_none() {
        return evaluated(view, builder, template);
    }
    let refused = |message: Complaint| view.error(entry.span, message);
    let url = parse(text).map_err(|error| {
        refused(match error {
            UrlError::Prefix => "invalid URL prefix".to_owned().into(),
            UrlError::Address(what, text) => format!("{what} in upstream \"{text}\"").into(),
        })
    })?;
    let location = location(&url).map_err(refused)?;
    let upstream = upstream::find(builder, &url.url, url.default_port).map_err(refused)?;
    Ok(Destination::Fixed {
        url,
        upstream,
        location,
    })
}

/// Where requests go by a text that each request gives its value.
///
/// # Errors
/// What is wrong with the directives of name lookups that are in force.
pub(crate) fn evaluated(
    view: View<'_>,
    builder: &mut Builder<'_>,
    template: Template,
) -> Result<Destination, ConfError> {
    Ok(Destination::Evaluated {
        template,
        directory: upstream::directory(builder),
        names: upstream::names(view, builder)?,
    })
}

/// A cache or `..._store`, whichever is written nearer to the location.
fn response_store(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    draft: &LocationDraft,
    responses: &Arc<ResponseRules>,
) -> Result<Option<Arc<dyn ResponseStore>>, ConfError> {
    let stores = builder.store::<ResponseStores>();
    let cache = stores.take(pass.prefix, draft.index);
    if store_is_nearer(pass)?
        && let Some(store) = Store::read(pass, builder)?
    {
        return Ok(Some(store));
    }
    match cache {
        Some(make) => Ok(Some(make(Arc::clone(responses)))),
        None => Store::read(pass, builder),
    }
}

/// Whether `..._store` is written nearer to the location than `..._cache`: a response is not kept
/// twice.
fn store_is_nearer(pass: PassView<'_>) -> Result<bool, ConfError> {
    let mut level = Some(pass);
    while let Some(one) = level {
        let given = |end| one.own(end).filter(|entry| entry.argument(0) != "off");
        match (given("store"), given("cache")) {
            (None, None) => {
                let around = one.view.parent();
                level = around.map(|view| PassView::new(view, pass.prefix));
            }
            (Some(entry), Some(_)) => {
                let (store, cache) = (pass.name("store"), pass.name("cache"));
                let message = format!("\"{store}\" directive is incompatible with \"{cache}\"");
                return Err(pass.view.error(entry.span, message));
            }
            (store, _) => return Ok(store.is_some()),
        }
    }
    Ok(false)
}

fn hidden(pass: PassView<'_>, usual: &[&[u8]]) -> Names {
    let mut hidden = Names::default();
    for name in usual {
        hidden.add(name);
    }
    for entry in pass.nearest_all("pass_header") {
        hidden.remove(&bytes_of(entry.argument(0)));
    }
    for entry in pass.nearest_all("hide_header") {
        hidden.add(&bytes_of(entry.argument(0)));
    }
    hidden
}

fn limit_rate(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
) -> Result<Option<Template>, ConfError> {
    let Some(entry) = pass.nearest("limit_rate") else {
        return Ok(None);
    };
    let text = entry.argument(0);
    let template = builder.template(pass.view, entry, &bytes_of(text))?;
    match template.constant() {
        Some(b"0") => Ok(None),
        Some(_) if turnpike_conf::value::size(text).is_none() => {
            let name = pass.name("limit_rate");
            let message = format!("\"{name}\" directive invalid value");
            Err(pass.view.error(entry.span, message))
        }
        _ => Ok(Some(template)),
    }
}

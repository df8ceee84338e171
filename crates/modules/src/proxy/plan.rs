//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, Entry, Row, View, bytes_of};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::{Template, VariableRow};
use turnpike_upstream::CheckTls;
use turnpike_wire::h1::Version;

use super::hops;
use super::rewrites::{Rewrites, read_rewrites};
use super::rows::ROWS;
use super::tls::Tls;
use super::variables;
use crate::buffers::BufferSizes;
use crate::pass::conditions::NextConditions;
use crate::pass::handler::ProxyPass;
use crate::pass::names::Names;
use crate::pass::proxy_header::ProxyHeader;
use crate::pass::response::Ignored;
use crate::pass::response_store::{Presenter, ResponseStore, ResponseStores};
use crate::pass::settings::{Bind, Buffers, Destination, Fields, Passing, Request, Timeouts};
use crate::pass::store::Store;
use crate::pass::target::{PassUrl, UrlError};
use crate::predicates;
use crate::upstream::{self, Checked};

/// Fields of a client's request that are not passed on as they are.
const REPLACED: &[&[u8]] = &[
    b"Host",
    b"Connection",
    b"Proxy-Connection",
    b"Content-Length",
    b"Transfer-Encoding",
    b"TE",
    b"Keep-Alive",
    b"Expect",
    b"Upgrade",
];

/// Fields of a response that are kept from the client unless `proxy_pass_header` says otherwise.
const HIDDEN: &[&[u8]] = &[
    b"Date",
    b"Server",
    b"X-Pad",
    b"X-Accel-Expires",
    b"X-Accel-Redirect",
    b"X-Accel-Limit-Rate",
    b"X-Accel-Buffering",
    b"X-Accel-Charset",
];

/// The family of `proxy_pass`.
pub(crate) struct Proxy;

impl Family for Proxy {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        check_redirects(view)?;
        let Some((level, entry)) = pass_in_force(view) else {
            return BufferSizes::check(view, "proxy");
        };
        let destination = destination(level, entry, builder)?;
        let tls = match &destination {
            Destination::Fixed { url, .. } if !url.secure => None,
            Destination::Evaluated { template, .. } if !may_be_secure(template) => None,
            _ => Some(Tls::read(view, builder)?),
        };
        let passing = Passing {
            tls,
            redirects: read_redirects(view, level, &destination, builder)?,
            destination,
            request: request(view, builder)?,
            hidden: hidden(view),
            ignored: Ignored::read(view),
            cookie_domains: read_rewrites(view, "proxy_cookie_domain", builder)?,
            cookie_paths: read_rewrites(view, "proxy_cookie_path", builder)?,
            cookie_flags: super::cookies::read_flags(view, builder)?,
            timeouts: timeouts(view),
            next: NextConditions::read(view),
            next_tries_max: u32::try_from(view.number("proxy_next_upstream_tries")).unwrap_or(0),
            next_timeout_ms: view.milliseconds("proxy_next_upstream_timeout"),
            intercepts_errors: view.flag("proxy_intercept_errors"),
            ignores_client_abort: view.flag("proxy_ignore_client_abort"),
            passes_trailers: view.flag("proxy_pass_trailers"),
            early_hints: predicates::read(view, "early_hints", builder)?,
            forces_ranges: view.flag("proxy_force_ranges"),
            buffers: buffers(view, builder)?,
            limit_rate: limit_rate(view, builder)?,
            bind: Bind::read(view, builder)?,
            proxy_header: ProxyHeader::read(view),
            socket_keepalive: view.flag("proxy_socket_keepalive"),
            send_buffer_bytes: u32::try_from(view.size("proxy_socket_sndbuf")).unwrap_or(0),
            receive_buffer_bytes: u32::try_from(view.size("proxy_socket_rcvbuf")).unwrap_or(0),
            location: draft.index.0,
            via: hops::read_via(view)?,
            response_store: response_store(view, builder, draft)?,
        };
        check_health(view, builder, &passing)?;
        let passing = Arc::new(passing);
        if let Some(response_store) = &passing.response_store {
            let presenter: Arc<dyn Presenter> = passing.clone();
            response_store.attach(Arc::downgrade(&presenter));
        }
        draft.content = Some(Arc::new(ProxyPass(passing)));
        draft.auto_redirect = view.own("proxy_pass").is_some();
        Ok(())
    }
}

/// `proxy_redirect default` stands for what a `proxy_pass` before it names.
fn check_redirects(view: View<'_>) -> Result<(), ConfError> {
    let pass = view.own("proxy_pass").map(|pass| pass.sequence);
    for entry in view.own_all("proxy_redirect") {
        let is_default = entry.arguments.len() == 1 && entry.argument(0) == "default";
        if is_default && pass.is_none_or(|pass| pass > entry.sequence) {
            let message = "\"proxy_redirect default\" should be placed after the \"proxy_pass\" \
                           directive";
            return Err(view.error(entry.span, message));
        }
    }
    Ok(())
}

/// A cache or `proxy_store`, whichever is written nearer to the location.
fn response_store(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &LocationDraft,
) -> Result<Option<Arc<dyn ResponseStore>>, ConfError> {
    let cache = builder.store::<ResponseStores>().take(draft.index);
    if store_is_nearer(view)?
        && let Some(store) = Store::read(view, builder)?
    {
        return Ok(Some(store));
    }
    match cache {
        Some(response_store) => Ok(Some(response_store)),
        None => Store::read(view, builder),
    }
}

/// Whether `proxy_store` is written nearer to the location than `proxy_cache`: a response is not
/// kept twice.
fn store_is_nearer(view: View<'_>) -> Result<bool, ConfError> {
    let mut level = Some(view);
    while let Some(one) = level {
        let given = |name| one.own(name).filter(|entry| entry.argument(0) != "off");
        match (given("proxy_store"), given("proxy_cache")) {
            (None, None) => level = one.parent(),
            (Some(entry), Some(_)) => {
                let message = "\"proxy_store\" directive is incompatible with \"proxy_cache\"";
                return Err(view.error(entry.span, message));
            }
            (store, _) => return Ok(store.is_some()),
        }
    }
    Ok(false)
}

/// The `proxy_pass` of this location; blocks inside of it (`if`, `limit_except`) share it.
fn pass_in_force(view: View<'_>) -> Option<(View<'_>, &Entry)> {
    let mut level = view;
    loop {
        if let Some(entry) = level.own("proxy_pass") {
            return Some((level, entry));
        }
        match level.context() {
            Context::IfInLocation | Context::LimitExcept => level = level.parent()?,
            _ => return None,
        }
    }
}

/// Has the servers checked where the location says so.
fn check_health(
    view: View<'_>,
    builder: &mut Builder<'_>,
    passing: &Passing,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("health_check") else {
        return Ok(());
    };
    let Destination::Fixed { url, upstream, .. } = &passing.destination else {
        let message = "\"health_check\" requires \"proxy_pass\" without variables";
        return Err(view.error(entry.span, message));
    };
    let tls = passing.tls.as_ref().map(|tls| CheckTls {
        connector: Arc::clone(&tls.connector),
        name: tls.name_without_request(&url.host),
    });
    let checked = Checked {
        upstream,
        host: &url.host,
        tls,
        proxy_header: passing.proxy_header.header(None),
        connect_timeout_ms: passing.timeouts.connect_ms,
        read_timeout_ms: passing.timeouts.read_ms,
    };
    upstream::check(view, builder, &checked)
}

fn destination(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<Destination, ConfError> {
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    if template.constant().is_none() {
        let directory = upstream::directory(builder);
        let names = upstream::names(view, builder)?;
        return Ok(Destination::Evaluated {
            template,
            directory,
            names,
        });
    }
    let refused = |message: String| view.error(entry.span, message);
    let url = PassUrl::parse(text).map_err(|error| {
        refused(match error {
            UrlError::Prefix => "invalid URL prefix".to_owned(),
            UrlError::Address(what, text) => format!("{what} in upstream \"{text}\""),
        })
    })?;
    let location = match location_prefix(view) {
        Some(prefix) => prefix,
        None if url.path.is_empty() => Vec::new(),
        None => {
            return Err(refused(
                "\"proxy_pass\" cannot have URI part in location given by regular expression, \
                 or inside named location, or inside \"if\" statement, \
                 or inside \"limit_except\" block"
                    .to_owned(),
            ));
        }
    };
    let upstream = upstream::find(builder, &url.url, url.default_port()).map_err(refused)?;
    Ok(Destination::Fixed {
        url,
        upstream,
        location,
    })
}

/// Whether a URL made of variables may be one of `https`.
fn may_be_secure(template: &Template) -> bool {
    let text = template.text().to_ascii_lowercase();
    !text.starts_with(b"http://")
}

/// The part of a path that stands for the location; `None` where none does.
fn location_prefix(view: View<'_>) -> Option<Vec<u8>> {
    if view.context() != Context::Location {
        return None;
    }
    let words = view.arguments();
    let text = match words {
        [modifier, name] => match modifier.text.as_str() {
            "=" | "^~" => name.text.as_str(),
            _ => return None,
        },
        [name] => {
            let text = name.text.as_str();
            match text.strip_prefix("^~").or_else(|| text.strip_prefix('=')) {
                Some(rest) => rest,
                None if text.starts_with(['~', '@']) => return None,
                None => text,
            }
        }
        _ => return None,
    };
    Some(bytes_of(text))
}

fn request(view: View<'_>, builder: &mut Builder<'_>) -> Result<Request, ConfError> {
    let optional = |name: &str, builder: &mut Builder<'_>| match view.nearest(name) {
        None => Ok(None),
        Some(entry) => {
            let text = bytes_of(entry.argument(0));
            builder.template(view, entry, &text).map(Some)
        }
    };
    Ok(Request {
        method: optional("proxy_method", builder)?,
        version: match view.choice("proxy_http_version") {
            "1.0" => Version::Http10,
            _ => Version::Http11,
        },
        fields: fields(view, builder)?,
        body: optional("proxy_set_body", builder)?,
        passes_fields: view.flag("proxy_pass_request_headers"),
        passes_body: view.flag("proxy_pass_request_body"),
        buffered: view.flag("proxy_request_buffering"),
    })
}

/// `proxy_set_header`.
fn fields(view: View<'_>, builder: &mut Builder<'_>) -> Result<Fields, ConfError> {
    let mut fields = Fields::default();
    for name in REPLACED {
        fields.replaced.add(name);
    }
    for entry in view.nearest_all("proxy_set_header") {
        let name = bytes_of(entry.argument(0));
        let value = turnpike_wire::h1::unfold(&bytes_of(entry.argument(1)));
        let value = builder.template(view, entry, &value)?;
        fields.replaced.add(&name);
        fields.names_via |= name.eq_ignore_ascii_case(b"Via");
        if name.eq_ignore_ascii_case(b"Host") {
            fields.host = Some(value);
        } else if name.eq_ignore_ascii_case(b"Content-Length") {
            // The length of a body that is passed is ours to say; this one is for requests
            // without.
            fields.length = Some(value);
        } else if name.eq_ignore_ascii_case(b"Transfer-Encoding") || value.text().is_empty() {
            // Framing is ours to say, and an empty value sends no field.
        } else {
            fields.names_connection |= name.eq_ignore_ascii_case(b"Connection");
            fields.set.push((name, value));
        }
    }
    Ok(fields)
}

fn hidden(view: View<'_>) -> Names {
    let mut hidden = Names::default();
    for name in HIDDEN {
        hidden.add(name);
    }
    for entry in view.nearest_all("proxy_pass_header") {
        hidden.remove(&bytes_of(entry.argument(0)));
    }
    for entry in view.nearest_all("proxy_hide_header") {
        hidden.add(&bytes_of(entry.argument(0)));
    }
    hidden
}

fn read_redirects(
    view: View<'_>,
    level: View<'_>,
    destination: &Destination,
    builder: &mut Builder<'_>,
) -> Result<Rewrites, ConfError> {
    let usual = match destination {
        Destination::Evaluated { .. } => None,
        Destination::Fixed { url, location, .. } => {
            let written = level
                .own("proxy_pass")
                .map_or("", |entry| entry.argument(0));
            let written = bytes_of(written);
            Some(match url.path.is_empty() {
                true => ([written.as_slice(), b"/"].concat(), b"/".to_vec()),
                false => (written, location.clone()),
            })
        }
    };
    Rewrites::redirects(view, usual, builder)
}

fn timeouts(view: View<'_>) -> Timeouts {
    Timeouts {
        connect_ms: view.milliseconds("proxy_connect_timeout"),
        send_ms: view.milliseconds("proxy_send_timeout"),
        read_ms: view.milliseconds("proxy_read_timeout"),
    }
}

fn buffers(view: View<'_>, builder: &Builder<'_>) -> Result<Buffers, ConfError> {
    Buffers::read(view, builder.environment.prefix())
}

fn limit_rate(view: View<'_>, builder: &mut Builder<'_>) -> Result<Option<Template>, ConfError> {
    let Some(entry) = view.nearest("proxy_limit_rate") else {
        return Ok(None);
    };
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    match template.constant() {
        Some(b"0") => Ok(None),
        Some(_) if turnpike_conf::value::size(text).is_none() => {
            let message = "\"proxy_limit_rate\" directive invalid value";
            Err(view.error(entry.span, message))
        }
        _ => Ok(Some(template)),
    }
}

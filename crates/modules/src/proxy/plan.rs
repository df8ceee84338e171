//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, Context, Entry, View, bytes_of};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;
use turnpike_upstream::CheckTls;
use turnpike_wire::message::Version;

use crate::common::buffer_sizes::BufferSizes;
use crate::pass::http_origin::{CookieRewrites, Fields, HttpOrigin, Request, Rewrites, read_via};
use crate::pass::plan::{self as pass, FamilyParts, pass_in_force, pass_on};
use crate::pass::proxy_header::ProxyHeader;
use crate::pass::settings::{Destination, Passing};
use crate::pass::target::PassUrl;
use crate::pass::tls::Tls;
use crate::pass::upgrade::Upgrades;
use crate::pass::view::PassView;
use crate::upstream::{self, Checked};

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

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let pass = PassView::new(view, "proxy");
    pass.declare_temporary_folder(builder.environment);
    check_redirects(view)?;
    let Some((level, entry)) = pass_in_force(pass) else {
        return BufferSizes::check(pass);
    };
    let destination = destination(level, entry, builder)?;
    let tls = match &destination {
        Destination::Fixed { url, .. } if !url.secure => None,
        Destination::Evaluated { template, .. } if !may_be_secure(template) => None,
        _ => Some(Tls::read(pass, builder, protocols(version(view)))?),
    };
    let origin = HttpOrigin {
        parse_url: PassUrl::parse,
        request: Request {
            method: pass.template("method", builder)?,
            version: version(view),
            fields: fields(pass, builder)?,
            is_grpc: false,
        },
        redirects: read_redirects(view, level, &destination, builder)?,
        cookies: CookieRewrites::read(view, builder)?,
        passes_trailers: view.flag("proxy_pass_trailers"),
        via: read_via(view)?,
    };
    let parts = FamilyParts {
        hidden: HIDDEN,
        body: pass.template("set_body", builder)?,
        tls,
        proxy_header: ProxyHeader::read(view, builder)?,
        ..FamilyParts::new(pass, destination, Box::new(origin))
    };
    let passing = pass_on(pass, builder, draft, parts)?;
    check_health(view, builder, &passing)
}

/// The fields of requests, and which upgrades are passed on: none where lines for their fields say
/// it all.
fn fields(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Fields, ConfError> {
    let mut fields = Fields::read(pass, builder)?;
    let is_told = fields.names_upgrade || fields.names_connection;
    fields.upgrades = match pass.view.choice("proxy_websocket") {
        "on" if !is_told => Upgrades::Any,
        "auto" if !is_told => Upgrades::WebSocket,
        _ => Upgrades::None,
    };
    Ok(fields)
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
        connector: tls.connector_without_request(),
        name: tls.name_without_request(&url.host),
    });
    let checked = Checked {
        upstream,
        host: &url.host,
        tls,
        proxy_header: passing.proxy_header.of_nobody(),
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
    let location = |url: &PassUrl| match location_prefix(view) {
        Some(prefix) => Ok(prefix),
        None if url.path.is_empty() => Ok(Vec::new()),
        None => Err(
            "\"proxy_pass\" cannot have URI part in location given by regular expression, \
             or inside named location, or inside \"if\" statement, \
             or inside \"limit_except\" block"
                .into(),
        ),
    };
    pass::destination(view, entry, builder, PassUrl::parse, location)
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
                None if text.starts_with(['~', '@', '$']) => return None,
                None => text,
            }
        }
        _ => return None,
    };
    Some(bytes_of(text))
}

/// `proxy_http_version`.
fn version(view: View<'_>) -> Version {
    match view.choice("proxy_http_version") {
        "1.0" => Version::Http10,
        "2" => Version::Http20,
        _ => Version::Http11,
    }
}

/// What is offered to servers with TLS.
fn protocols(version: Version) -> &'static [&'static [u8]] {
    match version {
        Version::Http20 => &[b"h2"],
        _ => &[],
    }
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
            Some(if url.path.is_empty() {
                ([written.as_slice(), b"/"].concat(), b"/".to_vec())
            } else {
                (written, location.clone())
            })
        }
    };
    Rewrites::redirects(view, usual, builder)
}

//! What a server of `stream` says of passing on.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, bytes_of, value};
use turnpike_plan::template::Template;
use turnpike_stream::plan::{Builder, ServerDraft};
use turnpike_stream::session::Session;
use turnpike_upstream::CheckTls;

use super::buffer_size;
use super::quic::Connections;
use crate::pass::proxy_header::ProxyHeader;
use crate::pass::settings::Bind;
use crate::pass::tls::Tls;
use crate::pass::view::PassView;
use crate::upstream::{self, CheckedServers, Directory, Names, Upstream, Url};

/// Everything that the directives in force in a server say.
pub(super) struct Passing {
    pub(super) destination: Destination,
    pub(super) bind: Bind,
    pub(super) buffer_bytes: usize,
    /// Milliseconds, here and below; 0 is without limit.
    pub(super) connect_timeout_ms: u64,
    pub(super) idle_timeout_ms: u64,
    pub(super) upload_rate: Template,
    pub(super) download_rate: Template,
    pub(super) half_close: bool,
    /// Datagrams of a client in one session; 0 has no limit.
    pub(super) requests: u64,
    /// Datagrams of the server that each of the client's calls for; `None`: nobody knows.
    pub(super) responses: Option<u64>,
    pub(super) tries_next: bool,
    /// Servers that one session is passed to; 0 has no limit.
    pub(super) next_tries_max: u32,
    pub(super) next_timeout_ms: u64,
    pub(super) proxy_header: ProxyHeader,
    /// The connections of QUIC that are known; `None`: flows are not looked into.
    pub(super) quic: Option<Arc<Connections>>,
    pub(super) socket_keepalive: bool,
    /// `proxy_ssl`; `None`: bytes go as they are.
    pub(super) tls: Option<Tls>,
    /// `proxy_ssl_alpn`.
    pub(super) protocols: Vec<Template>,
}

/// Where sessions go.
pub(super) enum Destination {
    /// As written.
    Fixed(Arc<Upstream>),
    /// Known when a session is there.
    Evaluated {
        template: Template,
        directory: Arc<Directory>,
        /// The resolver of names.
        names: Option<Names>,
    },
}

/// Adds the content of a server with `proxy_pass`.
pub(super) fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("proxy_pass") else {
        return Ok(());
    };
    let destination = destination(view, entry, builder)?;
    let passing = Passing {
        destination,
        bind: Bind::of(view, view.nearest("proxy_bind"), builder)?,
        buffer_bytes: buffer_size::in_force(view),
        connect_timeout_ms: view.milliseconds("proxy_connect_timeout"),
        idle_timeout_ms: view.milliseconds("proxy_timeout"),
        upload_rate: rate(view, "proxy_upload_rate", builder)?,
        download_rate: rate(view, "proxy_download_rate", builder)?,
        half_close: view.flag("proxy_half_close"),
        requests: count(view, "proxy_requests"),
        responses: view
            .nearest("proxy_responses")
            .map(|_| count(view, "proxy_responses")),
        tries_next: view.flag("proxy_next_upstream"),
        next_tries_max: u32::try_from(view.number("proxy_next_upstream_tries")).unwrap_or(0),
        next_timeout_ms: view.milliseconds("proxy_next_upstream_timeout"),
        proxy_header: ProxyHeader::read(view, builder)?,
        quic: if view.flag("ssl_preread") {
            Some(Connections::open(builder))
        } else {
            None
        },
        socket_keepalive: view.flag("proxy_socket_keepalive"),
        tls: if view.flag("proxy_ssl") {
            Some(Tls::read(PassView::new(view, "proxy"), builder, &[])?)
        } else {
            None
        },
        protocols: protocols(view, builder)?,
    };
    check_health(view, builder, &passing)?;
    draft
        .set_content(Arc::new(passing))
        .map_err(|what| view.error(entry.span, format!("\"proxy_pass\" directive {what}")))
}

/// Has the servers checked where the server says so.
fn check_health(
    view: View<'_>,
    builder: &mut Builder<'_>,
    passing: &Passing,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("health_check") else {
        return Ok(());
    };
    let Destination::Fixed(upstream) = &passing.destination else {
        let message = "\"health_check\" requires \"proxy_pass\" without variables";
        return Err(view.error(entry.span, message));
    };
    let checked = CheckedServers {
        upstream,
        tls: passing.tls.as_ref().map(|tls| CheckTls {
            connector: tls.connector_without_request(),
            name: tls.name_without_request(upstream.group().name().as_bytes()),
        }),
        proxy_header: passing.proxy_header.of_nobody(),
    };
    upstream::check_servers(view, builder, checked)
}

fn destination(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<Destination, ConfError> {
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    if template.constant().is_none() {
        return Ok(Destination::Evaluated {
            template,
            directory: upstream::directory::<Session>(builder),
            names: upstream::names(view, builder)?,
        });
    }
    let place = |message: Complaint| view.error(entry.span, message);
    let url =
        Url::parse(text).map_err(|what| place(format!("{what} in upstream \"{text}\"").into()))?;
    let found = upstream::find(builder, &url, 0).map_err(place)?;
    Ok(Destination::Fixed(found))
}

/// The protocols to offer.
fn protocols(view: View<'_>, builder: &mut Builder<'_>) -> Result<Vec<Template>, ConfError> {
    let mut templates = Vec::new();
    for entry in view.nearest_all("proxy_ssl_alpn") {
        for word in entry.arguments.iter() {
            templates.push(builder.template(view, entry, &word.bytes())?);
        }
    }
    Ok(templates)
}

/// A count; numbers that are not positive are none.
fn count(view: View<'_>, name: &str) -> u64 {
    u64::try_from(view.number(name)).unwrap_or(0)
}

/// A rate, which may be made of variables.
fn rate(view: View<'_>, name: &str, builder: &mut Builder<'_>) -> Result<Template, ConfError> {
    let Some(entry) = view.nearest(name) else {
        return Ok(Template::literal(b"0"));
    };
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    if template.constant().is_some() && value::size(text).is_none() {
        let message = format!("\"{name}\" directive invalid value");
        return Err(view.error(entry.span, message));
    }
    Ok(template)
}

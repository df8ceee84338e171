//! Settings of a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, Value, View, value};
use turnpike_plan::environment::Environment;
use turnpike_plan::product::Product;

use super::error_page::ErrorPage;
use super::root::Root;
use super::rows::ROWS;
use super::types::{self, TypesTable};
use turnpike_plan::template::Template;
use turnpike_plan::temporary::{Removal, TemporaryFolder};
use turnpike_plan::variables::VariableTable;

/// Folder for request bodies, below the prefix.
const CLIENT_BODY_FOLDER: &str = "client_body_temp";

/// `satisfy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Satisfy {
    /// Every access handler must grant.
    All,
    /// One is enough.
    Any,
}

/// `lingering_close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LingeringClose {
    /// Never wait for what the client still sends.
    Off,
    /// Where the client may still be sending.
    On,
    /// At every close.
    Always,
}

/// What a location's directives say.
#[derive(Clone)]
pub struct LocationSettings {
    /// Where its files are.
    pub root: Arc<Root>,
    /// Content types by extension.
    pub types: Arc<TypesTable>,
    /// For extensions that are not in `types`.
    pub default_type: Arc<[u8]>,
    /// Largest request body in bytes; 0 has no limit.
    pub client_max_body_bytes: u64,
    /// Between two reads of the body, in milliseconds.
    pub client_body_timeout_ms: u64,
    /// Bytes of a body that are kept in memory.
    pub client_body_buffer_bytes: usize,
    /// Where larger ones are kept.
    pub client_body_folder: Arc<TemporaryFolder>,
    /// Every body is kept in a file, that outlives its request or not.
    pub client_body_in_file: Option<Removal>,
    /// Between two writes of the response, in milliseconds.
    pub send_timeout_ms: u64,
    /// Bytes of a body in a frame of HTTP/2.
    pub http2_chunk_bytes: usize,
    /// How long an idle connection is kept, in milliseconds; 0 keeps none.
    pub keepalive_timeout_ms: u64,
    /// How long an idle connection is closed neither by a drain nor for others.
    pub keepalive_min_timeout_ms: u64,
    /// `Keep-Alive: timeout=` in seconds, where it is to be sent.
    pub keepalive_header_s: Option<u64>,
    /// Requests on one connection.
    pub keepalive_requests: u64,
    /// Life of one connection in milliseconds.
    pub keepalive_time_ms: u64,
    /// No keep-alive after POST for old MSIE.
    pub keepalive_disable_msie6: bool,
    /// No keep-alive for Safari on macOS.
    pub keepalive_disable_safari: bool,
    /// `lingering_close`.
    pub lingering_close: LingeringClose,
    /// The whole of lingering, in milliseconds.
    pub lingering_time_ms: u64,
    /// Between two reads while lingering, in milliseconds.
    pub lingering_timeout_ms: u64,
    /// Timed-out connections are reset.
    pub reset_timedout_connection: bool,
    /// Files are sent by sendfile(2).
    pub sendfile: bool,
    /// Bytes that one sendfile call may send; 0 has no limit.
    pub sendfile_chunk_bytes_max: u64,
    /// Head and file start in one packet.
    pub tcp_nopush: bool,
    /// Nagle's algorithm is off on kept-alive connections.
    pub tcp_nodelay: bool,
    /// Buffer for reading a file, in bytes.
    pub output_buffer_bytes: usize,
    /// Bytes of a response of parts that are made before its head is sent.
    pub postpone_output_bytes: usize,
    /// Bytes per second; 0 has no limit.
    pub limit_rate: Option<Template>,
    /// Bytes sent before the limit holds.
    pub limit_rate_after: Option<Template>,
    pub error_pages: Arc<[ErrorPage]>,
    /// `error_page` may lead to another.
    pub recursive_error_pages: bool,
    /// How access handlers are combined.
    pub satisfy: Satisfy,
    /// How long a refusal for want of credentials is held back, in milliseconds.
    pub auth_delay_ms: u64,
    /// Only internal redirects come here.
    pub internal: bool,
    /// The server's name in `Server` and on error pages, as `server_tokens` has it.
    pub product: &'static str,
    /// Whether the server's pages have its own style; under nginx's name they are nginx's to the
    /// byte.
    pub has_own_pages: bool,
    /// Redirects carry scheme and host.
    pub absolute_redirect: bool,
    /// Redirects carry the server's own name.
    pub server_name_in_redirect: bool,
    /// Redirects carry the port.
    pub port_in_redirect: bool,
    /// Error pages are padded for old browsers.
    pub msie_padding: bool,
    /// Redirects are pages with Refresh for MSIE.
    pub msie_refresh: bool,
    /// Missing files are written to the error log.
    pub log_not_found: bool,
    /// Whether subrequests are written to the access log.
    pub log_subrequest: bool,
    /// Bytes of a subrequest's response that may be kept in memory.
    pub subrequest_output_bytes: usize,
    /// HTTP/1.1 bodies of unknown length are chunked.
    pub chunked_transfer_encoding: bool,
}

impl LocationSettings {
    /// Reads the directives in force in a location, server or http block.
    ///
    /// # Errors
    /// The first value that cannot be read.
    pub fn read<S>(
        view: View<'_>,
        environment: &dyn Environment,
        variables: &mut VariableTable<S>,
    ) -> Result<Self, ConfError> {
        let (prefix, product) = (environment.prefix(), environment.product());
        let (keepalive_timeout_ms, keepalive_header_s) = keepalive_timeout(view)?;
        let disabled = |browser| words(view, "keepalive_disable").any(|word| word == browser);
        let default_disable = view.nearest("keepalive_disable").is_none();
        Ok(Self {
            root: Arc::new(Root::read(view, prefix, variables)?),
            types: types::read(view)?,
            default_type: Arc::from(view.text("default_type").as_bytes()),
            client_max_body_bytes: view.offset("client_max_body_size"),
            client_body_timeout_ms: view.milliseconds("client_body_timeout"),
            client_body_buffer_bytes: view.size("client_body_buffer_size") as usize,
            client_body_folder: Arc::new(client_body_folder(view, environment)?),
            client_body_in_file: client_body_in_file(view),
            send_timeout_ms: view.milliseconds("send_timeout"),
            http2_chunk_bytes: (view.size("http2_chunk_size") as usize).max(1),
            keepalive_timeout_ms,
            keepalive_min_timeout_ms: view.milliseconds("keepalive_min_timeout"),
            keepalive_header_s,
            keepalive_requests: u64::try_from(view.number("keepalive_requests")).unwrap_or(0),
            keepalive_time_ms: view.milliseconds("keepalive_time"),
            keepalive_disable_msie6: default_disable || disabled("msie6"),
            keepalive_disable_safari: disabled("safari"),
            lingering_close: match view.choice("lingering_close") {
                "off" => LingeringClose::Off,
                "always" => LingeringClose::Always,
                _ => LingeringClose::On,
            },
            lingering_time_ms: view.milliseconds("lingering_time"),
            lingering_timeout_ms: view.milliseconds("lingering_timeout"),
            reset_timedout_connection: view.flag("reset_timedout_connection"),
            sendfile: view.flag("sendfile"),
            sendfile_chunk_bytes_max: view.size("sendfile_max_chunk"),
            tcp_nopush: view.flag("tcp_nopush"),
            tcp_nodelay: view.flag("tcp_nodelay"),
            output_buffer_bytes: view.buffers("output_buffers").1 as usize,
            postpone_output_bytes: usize::try_from(view.size("postpone_output"))
                .unwrap_or(usize::MAX),
            limit_rate: template(view, "limit_rate", variables)?,
            limit_rate_after: template(view, "limit_rate_after", variables)?,
            error_pages: ErrorPage::read_all(view, variables)?.into(),
            recursive_error_pages: view.flag("recursive_error_pages"),
            satisfy: satisfy(view),
            auth_delay_ms: view.milliseconds("auth_delay"),
            internal: view.nearest("internal").is_some(),
            product: product_shown(view, product),
            has_own_pages: product == Product::Turnpike,
            absolute_redirect: view.flag("absolute_redirect"),
            server_name_in_redirect: view.flag("server_name_in_redirect"),
            port_in_redirect: view.flag("port_in_redirect"),
            msie_padding: view.flag("msie_padding"),
            msie_refresh: view.flag("msie_refresh"),
            log_not_found: view.flag("log_not_found"),
            log_subrequest: view.flag("log_subrequest"),
            subrequest_output_bytes: view.size("subrequest_output_buffer_size") as usize,
            chunked_transfer_encoding: view.flag("chunked_transfer_encoding"),
        })
    }
}

/// The directives that [`LocationSettings`] are read from. All of them are inherited, so that
/// blocks without any of their own have the settings of the block around them.
pub(crate) fn location_names() -> impl Iterator<Item = &'static str> {
    let rows = ROWS.iter();
    let rows = rows.filter(|row| row.contexts.contains(&Context::Location));
    let is_block = |value| matches!(value, Value::Block(_));
    rows.filter(move |row| !is_block(row.value))
        .map(|row| row.name)
}

/// Declares the folders that the core writes to.
pub(crate) fn declare_folders(view: View<'_>, environment: &mut dyn Environment) {
    TemporaryFolder::declare(
        view,
        "client_body_temp_path",
        CLIENT_BODY_FOLDER,
        environment,
    );
}

fn client_body_folder(
    view: View<'_>,
    environment: &dyn Environment,
) -> Result<TemporaryFolder, ConfError> {
    TemporaryFolder::read(
        view,
        "client_body_temp_path",
        CLIENT_BODY_FOLDER,
        environment,
    )
}

fn client_body_in_file(view: View<'_>) -> Option<Removal> {
    match view.choice("client_body_in_file_only") {
        "on" => Some(Removal::Never),
        "clean" => Some(Removal::AtEnd),
        _ => None,
    }
}

fn product_shown(view: View<'_>, product: Product) -> &'static str {
    match view.choice("server_tokens") {
        "off" => product.name(),
        "build" => product.name_and_build(),
        _ => product.name_and_version(),
    }
}

fn satisfy(view: View<'_>) -> Satisfy {
    match view.choice("satisfy") {
        "any" => Satisfy::Any,
        _ => Satisfy::All,
    }
}

fn words<'a>(view: View<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    let entries = view.nearest_all(name);
    entries
        .into_iter()
        .flat_map(|entry| entry.arguments.iter())
        .map(|word| word.text.as_str())
}

/// A template from a directive of one argument, where it is given.
fn template<S>(
    view: View<'_>,
    name: &str,
    variables: &mut VariableTable<S>,
) -> Result<Option<Template>, ConfError> {
    let Some(entry) = view.nearest(name) else {
        return Ok(None);
    };
    let Some(word) = entry.arguments.first() else {
        return Ok(None);
    };
    let compiled = Template::compile(&word.bytes(), variables)
        .map_err(|message| view.error(entry.span, message))?;
    match compiled.constant() {
        Some(b"0") => Ok(None),
        Some(_) if value::size(&word.text).is_none() => {
            Err(view.error(entry.span, format!("\"{name}\" directive invalid value")))
        }
        _ => Ok(Some(compiled)),
    }
}

fn keepalive_timeout(view: View<'_>) -> Result<(u64, Option<u64>), ConfError> {
    const DEFAULT_MS: u64 = 75_000;
    let Some(entry) = view.nearest("keepalive_timeout") else {
        return Ok((DEFAULT_MS, None));
    };
    let arguments = &entry.arguments;
    let read = |index: usize, parse: fn(&str) -> Option<u64>| match arguments.get(index) {
        None => Ok(None),
        Some(word) => match parse(&word.text) {
            Some(read) => Ok(Some(read)),
            None => Err(view.error(
                entry.span,
                "\"keepalive_timeout\" directive invalid value".to_owned(),
            )),
        },
    };
    Ok((
        read(0, value::milliseconds)?.unwrap_or(DEFAULT_MS),
        read(1, value::seconds)?,
    ))
}

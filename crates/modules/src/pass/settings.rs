//! What a location passes on, where to, and how: resolved once, shared by all lanes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, bytes_of};
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;
use turnpike_plan::environment::Capability;
use turnpike_plan::environment::Environment;
use turnpike_plan::temporary::TemporaryFolder;
use turnpike_plan::variables::Subject;

use super::conditions::NextConditions;
use super::origin::Origin;
use super::proxy_header::ProxyHeader;
use super::response::ResponseRules;
use super::response_store::ResponseStore;
use super::target::PassUrl;
use super::tls::Tls;
use super::view::PassView;
use crate::common::buffer_sizes::BufferSizes;
use crate::upstream::{self, Directory, Upstream};

/// Everything that the directives in force in a location say.
pub(crate) struct Passing {
    pub(crate) destination: Destination,
    /// The protocol of the servers.
    pub(crate) origin: Arc<dyn Origin>,
    /// Whether the client's fields are passed on.
    pub(crate) passes_fields: bool,
    pub(crate) body: BodyRules,
    /// How responses become ours.
    pub(crate) responses: Arc<ResponseRules>,
    pub(crate) timeouts: Timeouts,
    pub(crate) next: NextConditions,
    /// Servers that one request is passed to; 0 has no limit.
    pub(crate) next_tries_max: u32,
    /// Time for all of them, in milliseconds; 0 has no limit.
    pub(crate) next_timeout_ms: u64,
    pub(crate) intercepts_errors: bool,
    pub(crate) ignores_client_abort: bool,
    /// One that holds lets early hints reach the client.
    pub(crate) early_hints: Vec<Template>,
    pub(crate) buffers: Buffers,
    /// Bytes per second that are read of a response.
    pub(crate) limit_rate: Option<Template>,
    /// Where servers may have to be spoken to by TLS.
    pub(crate) tls: Option<Tls>,
    pub(crate) bind: Bind,
    pub(crate) proxy_header: ProxyHeader,
    pub(crate) socket_keepalive: bool,
    /// 0 leaves it to the kernel.
    pub(crate) send_buffer_bytes: u32,
    /// 0 leaves it to the kernel.
    pub(crate) receive_buffer_bytes: u32,
    /// Number of the location: connections may be kept for it alone.
    pub(crate) location: u32,
    /// The store that may answer in place of the upstream servers, and keep what they answer.
    pub(crate) response_store: Option<Arc<dyn ResponseStore>>,
}

/// Where requests go.
pub(crate) enum Destination {
    /// As written.
    Fixed {
        url: PassUrl,
        upstream: Arc<Upstream>,
        /// The part of a path that stands for the location.
        location: Vec<u8>,
    },
    /// Known when a request is there.
    Evaluated {
        template: Template,
        directory: Arc<Directory>,
        /// The resolver of names.
        names: Option<upstream::Names>,
    },
}

impl Destination {
    /// Whether it is known only when a request is there.
    pub(crate) fn is_evaluated(&self) -> bool {
        matches!(self, Self::Evaluated { .. })
    }
}

/// What is sent as the body of requests.
pub(crate) struct BodyRules {
    /// Instead of the client's.
    pub(crate) instead: Option<Template>,
    /// Whether the client's is passed on.
    pub(crate) passes: bool,
    /// Whether the client's is read whole first.
    pub(crate) buffered: bool,
}

/// How long each step may pause, in milliseconds; 0 is without limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect_ms: u64,
    pub(crate) send_ms: u64,
    pub(crate) read_ms: u64,
}

/// Memory and files for one response.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    /// For the head and what comes with it.
    pub(crate) first_bytes: usize,
    /// For what the client has not taken.
    pub(crate) all_bytes: usize,
    /// Most in one piece for the client.
    pub(crate) busy_bytes: usize,
    /// In a temporary file; 0 uses none.
    pub(crate) file_bytes_max: u64,
    /// Written to it at one time.
    pub(crate) file_write_bytes: usize,
    pub(crate) folder: TemporaryFolder,
    /// Whether a response is read ahead of the client.
    pub(crate) ahead: bool,
}

impl Buffers {
    /// Reads the directives of buffers, and checks that they fit one another. A family may have one
    /// buffer only.
    ///
    /// # Errors
    /// nginx's words.
    pub(crate) fn read(
        pass: PassView<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfError> {
        if !pass.has_row("buffers") {
            let size_bytes = pass.small_size("buffer_size") as usize;
            return Ok(Self {
                first_bytes: size_bytes,
                all_bytes: size_bytes,
                busy_bytes: size_bytes,
                file_bytes_max: 0,
                file_write_bytes: size_bytes,
                folder: pass.temporary_folder(environment)?,
                ahead: false,
            });
        }
        let sizes = BufferSizes::read(pass)?;
        Ok(Self {
            first_bytes: sizes.first as usize,
            all_bytes: sizes.all as usize,
            busy_bytes: sizes.busy as usize,
            file_bytes_max: sizes.file_max,
            file_write_bytes: sizes.file_write as usize,
            folder: pass.temporary_folder(environment)?,
            ahead: pass.flag("buffering"),
        })
    }
}

/// `..._bind`.
pub(crate) enum Bind {
    /// The kernel chooses.
    No,
    Address(SocketAddr),
    /// One that is known when a request is there; and whether it may be any.
    Evaluated(Template, bool),
    /// This address, which need not be ours.
    Transparent(SocketAddr),
}

impl Bind {
    pub(crate) fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        Self::of(pass.view, pass.nearest("bind"), builder)
    }

    /// What the directive in force in a block says.
    ///
    /// # Errors
    /// nginx's.
    pub(crate) fn of<S>(
        view: View<'_>,
        entry: Option<&Entry>,
        builder: &mut turnpike_plan::builder::Builder<'_, S>,
    ) -> Result<Self, ConfError> {
        let Some(entry) = entry else {
            return Ok(Self::No);
        };
        let text = entry.argument(0);
        let transparent = match entry.arguments.get(1).map(|word| word.text.as_str()) {
            None if text == "off" => return Ok(Self::No),
            None => false,
            Some("transparent") => {
                builder.environment.capability(Capability::NetRaw);
                true
            }
            Some(other) => {
                let message = format!("invalid parameter \"{other}\"");
                return Err(view.error(entry.span, message));
            }
        };
        let template = builder.template(view, entry, &bytes_of(text))?;
        if template.constant().is_none() {
            return Ok(Self::Evaluated(template, transparent));
        }
        let Some(address) = local_address(text) else {
            let message = format!("invalid address \"{text}\"");
            return Err(view.error(entry.span, message));
        };
        Ok(if transparent {
            Self::Transparent(address)
        } else {
            Self::Address(address)
        })
    }

    /// The address to bind to, and whether it may be one that is not ours.
    pub(crate) fn address<S: Subject>(&self, subject: &S) -> Option<(SocketAddr, bool)> {
        match self {
            Self::No => None,
            Self::Address(address) => Some((*address, false)),
            Self::Transparent(address) => Some((*address, true)),
            Self::Evaluated(template, transparent) => {
                let text = template.value(subject);
                let address = local_address(std::str::from_utf8(&text).ok()?)?;
                Some((address, *transparent))
            }
        }
    }
}

/// An address with or without a port.
fn local_address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address: IpAddr = bare.unwrap_or(text).parse().ok()?;
    Some(SocketAddr::new(address, 0))
}

/// `address [transparent] | off`.
pub(crate) fn check_bind(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        [_, other] if *other != "transparent" => {
            Err(format!("invalid parameter \"{other}\"").into())
        }
        [text, ..] if !text.contains('$') && local_address(text).is_none() => {
            Err(format!("invalid address \"{text}\"").into())
        }
        _ => Ok(()),
    }
}

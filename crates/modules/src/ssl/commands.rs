//! `ssl_conf_command` and its kin: OpenSSL's configuration commands, as far as the library has what
//! they are about. What it has not is a warning where a client is served all the same, and an error
//! where somebody relies on it.

use turnpike_conf::{ConfError, Entry, View, value};
use turnpike_plan::builder::Builder;

use super::files;

/// Options that hold whatever is said: with the sign that they are on by, or off.
const HOLDING: [(&str, bool); 10] = [
    ("bugs", true),
    ("compression", false),
    ("dhsingle", true),
    ("ecdhsingle", true),
    ("encryptthenmac", true),
    ("extendedmastersecret", true),
    ("ktls", false),
    ("middleboxcompat", true),
    ("norenegotiation", true),
    ("unsafelegacyrenegotiation", false),
];

/// Commands without effect that clients are served without.
const IGNORED: [&str; 6] = [
    "clientsignaturealgorithms",
    "dhparameters",
    "ecdhparameters",
    "recordpadding",
    "signaturealgorithms",
    "strict",
];

/// Tickets that a session of TLS 1.3 gives at most: more than a client keeps.
const TICKETS_MAX: i64 = 16;

/// The commands of a server.
#[derive(Default)]
pub(super) struct Commands<'a> {
    /// A certificate and its key, which replace those of the same kind.
    certificate: Option<&'a Entry>,
    key: Option<&'a Entry>,
    /// The cipher suites of TLS 1.2, in place of `ssl_ciphers`.
    pub(super) ciphers: Option<&'a Entry>,
    /// The cipher suites of TLS 1.3.
    pub(super) ciphersuites: Option<&'a Entry>,
    /// The groups for the key exchange, in place of `ssl_ecdh_curve`.
    pub(super) groups: Option<&'a Entry>,
    /// Whether the server's order of cipher suites counts, in place of `ssl_prefer_server_ciphers`.
    pub(super) server_order: Option<bool>,
    /// Whether there are tickets, in place of `ssl_session_tickets`.
    pub(super) tickets: Option<bool>,
    /// Tickets that a session of TLS 1.3 gives.
    pub(super) ticket_count: Option<usize>,
    oldest: Option<&'a Entry>,
    newest: Option<&'a Entry>,
}

impl<'a> Commands<'a> {
    /// Reads the commands of these directives; of a command that is given twice the last counts.
    ///
    /// # Errors
    /// A command or a value that is unknown or not supported.
    pub(super) fn read<S>(
        view: View<'a>,
        builder: &mut Builder<'_, S>,
        entries: Vec<&'a Entry>,
    ) -> Result<Commands<'a>, ConfError> {
        let mut commands = Commands::default();
        for entry in entries {
            commands.add(view, builder, entry)?;
        }
        Ok(commands)
    }

    fn add<S>(
        &mut self,
        view: View<'a>,
        builder: &mut Builder<'_, S>,
        entry: &'a Entry,
    ) -> Result<(), ConfError> {
        let name = entry.argument(0).to_ascii_lowercase();
        match name.as_str() {
            "certificate" => self.certificate = Some(entry),
            "privatekey" => self.key = Some(entry),
            "cipherstring" => self.ciphers = Some(entry),
            "ciphersuites" => self.ciphersuites = Some(entry),
            "curves" | "groups" => self.groups = Some(entry),
            "minprotocol" => self.oldest = Some(known_version(view, entry)?),
            "maxprotocol" => self.newest = Some(known_version(view, entry)?),
            "numtickets" => self.ticket_count = Some(count(view, entry)?),
            "options" => {
                for option in entry.argument(1).split(',') {
                    self.option(view, builder, entry, option.trim());
                }
            }
            name if IGNORED.contains(&name) => ignored(view, builder, entry, entry.argument(1)),
            _ => {
                let (directive, name) = (entry.row.name, entry.argument(0));
                let message =
                    format!("\"{directive} {name}\" is not supported: use the directives of ssl");
                return Err(view.error(entry.span, message));
            }
        }
        Ok(())
    }

    fn option<S>(
        &mut self,
        view: View<'a>,
        builder: &mut Builder<'_, S>,
        entry: &Entry,
        option: &str,
    ) {
        let (is_on, name) = match option.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, option.trim_start_matches('+')),
        };
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "sessionticket" => self.tickets = Some(is_on),
            "serverpreference" => self.server_order = Some(is_on),
            name if HOLDING.contains(&(name, is_on)) => {}
            _ => ignored(view, builder, entry, option),
        }
    }

    /// The certificate and the key that the commands name; `None`: they name none.
    ///
    /// # Errors
    /// One of the two is missing.
    pub(super) fn pair(&self, view: View<'_>) -> Result<Option<[&'a Entry; 2]>, ConfError> {
        let (one, missing) = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => return Ok(Some([certificate, key])),
            (None, None) => return Ok(None),
            (Some(one), None) => (one, "PrivateKey"),
            (None, Some(one)) => (one, "Certificate"),
        };
        let (directive, name) = (one.row.name, one.argument(0));
        let message = format!("\"{directive} {name}\" needs \"{directive} {missing}\" beside it");
        Err(view.error(one.span, message))
    }

    /// Whether the limits let a version be spoken, 2 for TLS 1.2.
    pub(super) fn allows(&self, version: u8) -> bool {
        let limit = |entry: &Entry| version_of(entry.argument(1)).flatten();
        let oldest = self.oldest.and_then(limit);
        let newest = self.newest.and_then(limit);
        oldest.is_none_or(|oldest| version >= oldest)
            && newest.is_none_or(|newest| version <= newest)
    }

    /// The directive that limits versions; `None`: there is none.
    pub(super) fn limit(&self) -> Option<&'a Entry> {
        self.newest.or(self.oldest)
    }
}

fn ignored<S>(view: View<'_>, builder: &mut Builder<'_, S>, entry: &Entry, what: &str) {
    let (directive, name) = (entry.row.name, entry.argument(0));
    let message = format!("\"{directive} {name} {what}\" ignored");
    builder.warn(view, entry, message);
}

fn known_version<'a>(view: View<'_>, entry: &'a Entry) -> Result<&'a Entry, ConfError> {
    match version_of(entry.argument(1)) {
        Some(_) => Ok(entry),
        None => Err(failed(view, entry, "a version is wanted, such as TLSv1.2")),
    }
}

/// The second number of a version of TLS 1; `Some(None)` is no limit, `None` is unknown.
fn version_of(name: &str) -> Option<Option<u8>> {
    match name {
        "None" => Some(None),
        "SSLv3" | "TLSv1" => Some(Some(0)),
        "TLSv1.1" => Some(Some(1)),
        "TLSv1.2" => Some(Some(2)),
        "TLSv1.3" => Some(Some(3)),
        _ => None,
    }
}

fn count(view: View<'_>, entry: &Entry) -> Result<usize, ConfError> {
    let count = value::number(entry.argument(1)).filter(|count| (0..=TICKETS_MAX).contains(count));
    count
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| failed(view, entry, &format!("0 to {TICKETS_MAX} are possible")))
}

fn failed(view: View<'_>, entry: &Entry, why: &str) -> ConfError {
    let (name, value) = (entry.argument(0), files::name_of(entry));
    let message = format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed: {why}");
    view.error(entry.span, message)
}

//! The cipher suites and groups that a session is offered, by lists in OpenSSL's language.

use rustls::SupportedProtocolVersion;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, DEFAULT_CIPHER_SUITES};
use turnpike_conf::{ConfError, Entry, View};
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::group_name;

use super::ciphers;
use super::commands::Commands;
use super::files;

/// Groups for the key exchange that `auto` stands for, the best first.
const CURVES_DEFAULT: &str = "X25519MLKEM768:X25519:prime256v1:secp384r1";

/// Other names of groups.
const CURVE_ALIASES: [(&str, &str); 3] = [
    ("P-256", "prime256v1"),
    ("secp256r1", "prime256v1"),
    ("P-384", "secp384r1"),
];

/// The list of a directive.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    /// `None`: it is not written.
    pub(super) entry: Option<&'a Entry>,
    pub(super) default: &'a str,
}

/// The cipher suites of a list, the best first. `commands` may replace it.
///
/// # Errors
/// Nothing of the list is there.
pub(super) fn cipher_suites<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    listed: Listed<'_>,
    (versions, commands): (&[&'static SupportedProtocolVersion], &Commands<'_>),
) -> Result<Vec<rustls::SupportedCipherSuite>, ConfError> {
    let is_new = |suite: &&rustls::SupportedCipherSuite| suite.tls13().is_some();
    let mut suites: Vec<_> = DEFAULT_CIPHER_SUITES.to_vec();
    suites.retain(|suite| is_new(&suite));
    if let Some(entry) = commands.ciphersuites {
        let (name, value) = (entry.argument(0), entry.argument(1));
        suites = ciphers::choose_tls13(value).map_err(|unknown| {
            let message = format!(
                "SSL_CONF_cmd(\"{name}\", \"{value}\") failed: \"{unknown}\" is not supported"
            );
            view.error(entry.span, message)
        })?;
    }
    let entry = commands.ciphers.or(listed.entry);
    let list = entry.map_or(listed.default, files::name_of);
    let chosen = ciphers::choose(list);
    if let Some(entry) = entry {
        let directive = entry.row.name;
        if !chosen.not_there.is_empty() {
            let names = chosen.not_there.join(", ");
            let message = format!("cipher suites in \"{directive}\" are not supported: {names}");
            builder.warn(view, entry, message);
        }
        if !chosen.unknown.is_empty() {
            let names = chosen.unknown.join(", ");
            let message = format!("unknown words in \"{directive}\": {names}");
            builder.warn(view, entry, message);
        }
        let speaks_new = versions.contains(&&rustls::version::TLS13);
        let speaks_old = versions.contains(&&rustls::version::TLS12);
        if chosen.suites.is_empty() && speaks_old {
            let message = format!(
                "SSL_CTX_set_cipher_list(\"{list}\") failed (SSL: no cipher match): no cipher \
                 suite of TLSv1.2 is left"
            );
            if speaks_new && !chosen.not_there.is_empty() {
                builder.warn(view, entry, message)
            } else {
                return Err(view.error(entry.span, message));
            }
        }
    }
    let old = chosen.suites.iter();
    suites.extend(old.filter_map(|name| ciphers::by_name(name)));
    Ok(suites)
}

/// The groups of a list, the best first. `commands` may replace it.
///
/// # Errors
/// Nothing of the list is there.
pub(super) fn groups<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    listed: Listed<'_>,
    commands: &Commands<'_>,
) -> Result<Vec<&'static dyn SupportedKxGroup>, ConfError> {
    let entry = commands.groups.or(listed.entry);
    let text = entry.map_or(listed.default, files::name_of);
    let list = match text {
        "" | "auto" => CURVES_DEFAULT,
        list => list,
    };
    let mut groups: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    let mut missing = Vec::new();
    for name in list.split(':') {
        // A question mark lets OpenSSL pass over what it does not know.
        let plain = name.trim_start_matches('?');
        let alias = CURVE_ALIASES
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(plain));
        let plain = alias.map_or(plain, |(_, name)| *name);
        let is_it = |group: &&&'static dyn SupportedKxGroup| {
            let known = group_name(group.name().into());
            known.is_some_and(|known| known.eq_ignore_ascii_case(plain))
        };
        match ALL_KX_GROUPS.iter().find(is_it) {
            Some(group) => groups.push(*group),
            None => missing.push(name),
        }
    }
    let Some(entry) = entry else {
        return Ok(groups);
    };
    let missing = missing.join(", ");
    if groups.is_empty() {
        let message = format!("SSL_CTX_set1_curves_list(\"{text}\") failed: none is supported");
        return Err(view.error(entry.span, message));
    }
    if !missing.is_empty() {
        let directive = entry.row.name;
        let message = format!("groups in \"{directive}\" are not supported: {missing}");
        builder.warn(view, entry, message);
    }
    Ok(groups)
}

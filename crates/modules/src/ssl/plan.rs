//! From the directives of a server to what its handshakes need.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion};
use turnpike_conf::{Complaint, ConfError, View};
use turnpike_lane::transport::alerting_suites;
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::{Certificates, ServerIdentity, ServerTls};
use turnpike_wire::certificate;
use turnpike_wire::pem::{Piece, Pieces};

use super::certificate_compression::COMPRESSORS;
use super::client_status;
use super::clients::Clients;
use super::commands::Commands;
use super::files;
use super::identity::Identities;
use super::key_log::key_log;
use super::offered::{self, Listed};
use super::sessions::Resumption;
use super::stapling;

/// Bytes that a record adds to its content at most, as the library counts.
const RECORD_OVERHEAD_BYTES: u64 = 5;

/// Largest content of a record (RFC 8446 section 5.1), and the least that the library can.
const RECORD_BYTES_MAX: u64 = 16 * 1024;
const RECORD_BYTES_MIN: u64 = 32;

/// Bytes of early data that a client may send; nginx's number.
const EARLY_DATA_BYTES_MAX: u32 = 16 * 1024;

/// TLS of a server that offers these protocols (ALPN), the best first; empty offers none. `None`:
/// it has no certificate.
///
/// # Errors
/// What cannot be read, or cannot be done yet.
pub(super) fn server<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    protocols: Vec<Vec<u8>>,
) -> Result<Option<ServerTls>, ConfError> {
    if view.flag("ssl_reject_handshake") {
        return Ok(Some(ServerTls::Reject));
    }
    // Without a certificate nobody is served by them.
    let commands = match view.nearest("ssl_certificate") {
        Some(_) => Commands::read(view, builder, view.nearest_all("ssl_conf_command"))?,
        None => Commands::default(),
    };
    let Some(identities) = Identities::read(view, builder, &commands)? else {
        return Ok(None);
    };
    refuse_unsupported(view)?;
    read_dh_parameters(view, builder)?;
    let clients = Clients::read(view, builder)?;
    let (mut config, speaks_tls13) =
        config(view, builder, &identities, (clients.as_ref(), &commands))?;
    config.alpn_protocols = protocols;
    if let Some(entry) = view.nearest("ssl_key_log") {
        config.key_log = key_log(view, builder, entry)?;
    }
    let by_name = match identities {
        Identities::Read(keys) => {
            config.cert_resolver = stapling::resolver(view, builder, keys)?;
            None
        }
        Identities::ByName(named) => Some(Arc::new(named)),
    };
    Ok(Some(ServerTls::Serve(Arc::new(ServerIdentity {
        config: Arc::new(config),
        speaks_tls13,
        by_name,
        clients: clients.map(|clients| Arc::new(clients.trust)),
        statuses: client_status::statuses(view, builder)?,
        quic: None,
    }))))
}

/// The configuration of the library, and whether it has TLS 1.3.
fn config<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    identities: &Identities,
    (clients, commands): (Option<&Clients>, &Commands<'_>),
) -> Result<(ServerConfig, bool), ConfError> {
    let trusted = clients.map_or(&[][..], |clients| clients.trust.anchors());
    let trusted = trusted.iter().map(|anchor| anchor.as_ref());
    let ends = identities.ends().into_iter();
    let resumption = Resumption::new(view, ends.chain(trusted));
    let versions = versions(view, builder, commands)?;
    let ciphers = listed(view, "ssl_ciphers");
    let suites = offered::cipher_suites(view, builder, ciphers, (&versions, commands))?;
    let provider = CryptoProvider {
        cipher_suites: alerting_suites(&suites),
        kx_groups: offered::groups(view, builder, listed(view, "ssl_ecdh_curve"), commands)?,
        ..default_provider()
    };
    let library = |why: String| view.error(view.end(), format!("cannot set TLS up: {why}"));
    let builder_of_config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .map_err(|error| library(error.to_string()))?;
    let mut config = match clients {
        None => builder_of_config.with_no_client_auth(),
        Some(clients) => builder_of_config.with_client_cert_verifier(Arc::new(clients.verifier())),
    }
    // What is shown follows.
    .with_cert_resolver(Arc::new(Certificates(Vec::new())));
    let server_order = commands.server_order;
    config.ignore_client_order =
        server_order.unwrap_or_else(|| view.flag("ssl_prefer_server_ciphers"));
    config.cert_compressors = if view.flag("ssl_certificate_compression") {
        COMPRESSORS.to_vec()
    } else {
        Vec::new()
    };
    let bytes = if view.has_row("ssl_buffer_size") {
        view.size("ssl_buffer_size")
    } else {
        RECORD_BYTES_MAX
    };
    let bytes = bytes.clamp(RECORD_BYTES_MIN, RECORD_BYTES_MAX) + RECORD_OVERHEAD_BYTES;
    config.max_fragment_size = usize::try_from(bytes).ok();
    let (cache, tickets) = if takes_early_data(view) {
        // The library takes early data in sessions that it can forget: each once, so that what
        // somebody has recorded is not taken again.
        config.max_early_data_size = EARLY_DATA_BYTES_MAX;
        config.send_half_rtt_data = true;
        warn_of_ticket_keys(view, builder);
        (Some(resumption.own_cache(view, builder)), None)
    } else {
        (
            resumption.cache(view, builder),
            resumption.tickets(view, builder, commands.tickets)?,
        )
    };
    if cache.is_none() && tickets.is_none() {
        config.send_tls13_tickets = 0;
    } else if let Some(count) = commands.ticket_count {
        config.send_tls13_tickets = count;
    }
    config.session_storage = cache.unwrap_or_else(|| Arc::new(NoServerSessionStorage {}));
    if let Some(tickets) = tickets {
        config.ticketer = tickets;
    }
    let speaks_tls13 = versions.contains(&&rustls::version::TLS13);
    Ok((config, speaks_tls13))
}

fn listed<'a>(view: View<'a>, name: &'static str) -> Listed<'a> {
    Listed {
        entry: view.nearest(name),
        default: view.text(name),
    }
}

/// What would be done otherwise than the configuration says.
fn refuse_unsupported(view: View<'_>) -> Result<(), ConfError> {
    let refused = |name: &str, text: &str| match view.nearest(name) {
        Some(entry) => {
            let message = format!("{text} is not supported yet");
            Err(view.error(entry.span, message))
        }
        None => Ok(()),
    };
    refused(
        "ssl_ech_file",
        "\"ssl_ech_file\": the library has no Encrypted Client Hello for servers; it",
    )
}

/// Whether clients may send early data; `stream` has no such directive.
fn takes_early_data(view: View<'_>) -> bool {
    view.has_row("ssl_early_data") && view.flag("ssl_early_data")
}

fn warn_of_ticket_keys<S>(view: View<'_>, builder: &mut Builder<'_, S>) {
    if let Some(entry) = view.nearest("ssl_session_ticket_key") {
        let message = "\"ssl_session_ticket_key\" ignored: with \"ssl_early_data on\" this server \
                       keeps its sessions itself, so that early data is accepted only once";
        builder.warn(view, entry, message);
    }
}

/// Reads the file of `ssl_dhparam` as nginx does, though nobody is worse off without it.
fn read_dh_parameters<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    let entry = view.nearest("ssl_dhparam");
    let Some(entry) = entry.filter(|entry| !entry.argument(0).is_empty()) else {
        return Ok(());
    };
    let (name, pem) = files::read(builder, entry);
    let failed = |call: &str, why: &dyn fmt::Display| {
        view.error(entry.span, format!("{call}(\"{name}\") failed {why}"))
    };
    let pem = pem.map_err(|why| failed("BIO_new_file", &why))?;
    if let Err(why) = find_dh_parameters(&pem) {
        return Err(failed(
            "PEM_read_bio_DHparams",
            &format_args!("(SSL: {why})"),
        ));
    }
    let message = "DHE key exchange is never used, so \"ssl_dhparam\" has no effect";
    builder.warn(view, entry, message);
    Ok(())
}

/// The error is OpenSSL's.
fn find_dh_parameters(pem: &[u8]) -> Result<(), Complaint> {
    for piece in Pieces::new(pem) {
        match piece.map_err(|error| error.to_string())? {
            Piece::Block(block) if block.label.ends_with(b"DH PARAMETERS") => {
                return if certificate::is_sequence(&block.data) {
                    Ok(())
                } else {
                    Err("error:0488000D:PEM routines::ASN1 lib".into())
                };
            }
            _ => {}
        }
    }
    Err("error:0480006C:PEM routines::no start line:Expecting: DH PARAMETERS".into())
}

fn versions<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    commands: &Commands<'_>,
) -> Result<Vec<&'static SupportedProtocolVersion>, ConfError> {
    let mut versions = named_versions(view, builder)?;
    versions.retain(|version| {
        let is_new = **version == rustls::version::TLS13;
        commands.allows(if is_new { 3 } else { 2 })
    });
    match commands.limit() {
        Some(entry) if versions.is_empty() => {
            let name = entry.argument(0);
            let message = format!("\"ssl_conf_command {name}\" leaves neither TLSv1.2 nor TLSv1.3");
            Err(view.error(entry.span, message))
        }
        _ => Ok(versions),
    }
}

fn named_versions<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Vec<&'static SupportedProtocolVersion>, ConfError> {
    let entries = view.nearest_all("ssl_protocols");
    let Some(last) = entries.last() else {
        return Ok(vec![&rustls::version::TLS13, &rustls::version::TLS12]);
    };
    let mut versions = Vec::new();
    let mut old = Vec::new();
    for word in entries.iter().flat_map(|entry| entry.arguments.iter()) {
        match word.text.to_ascii_lowercase().as_str() {
            "tlsv1.3" => versions.push(&rustls::version::TLS13),
            "tlsv1.2" => versions.push(&rustls::version::TLS12),
            _ => old.push(word.text.as_str()),
        }
    }
    let old = old.join(", ");
    if versions.is_empty() {
        let message = format!("{old} are not supported, add TLSv1.2 or TLSv1.3");
        return Err(view.error(last.span, message));
    }
    if !old.is_empty() {
        let message = format!("{old} ignored: only TLSv1.2 and TLSv1.3 are supported");
        builder.warn(view, last, message);
    }
    Ok(versions)
}

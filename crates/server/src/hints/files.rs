//! Users, certificates and keys: what a library's complaint means.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use turnpike_conf::did_you_mean;

use super::mistake::Mistake;

/// Bytes of a file of accounts that are read for names.
const ACCOUNTS_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let message = mistake.message;
    let name = mistake.quoted()?;
    if message.starts_with("getpwnam(\"") {
        return Some(account("user", name, "/etc/passwd"));
    }
    if message.starts_with("getgrnam(\"") {
        return Some(account("group", name, "/etc/group"));
    }
    if message.starts_with("SSL_CTX_use_PrivateKey(") && message.contains("key values mismatch") {
        return Some("; the key belongs to another certificate".to_owned());
    }
    let is_certificate = message.starts_with("cannot load certificate \"");
    let is_key = message.starts_with("cannot load certificate key \"");
    if !is_certificate && !is_key {
        return None;
    }
    if message.contains("(2: ") {
        return Some(format!("; there is no file \"{name}\""));
    }
    if message.contains("bad password read") {
        return Some(password(mistake));
    }
    if message.contains("(13: ") {
        return Some("; this user may not read it".to_owned());
    }
    contents(mistake, name, is_key)
}

fn account(kind: &str, name: &str, file: &str) -> String {
    let mut text = String::new();
    // Without the file no name is near.
    let _ = File::open(file).map(|file| file.take(ACCOUNTS_BYTES_MAX).read_to_string(&mut text));
    let names = text.lines().filter_map(|line| line.split(':').next());
    let near = did_you_mean(name, names).unwrap_or_default();
    format!("; there is no {kind} \"{name}\"{near}")
}

fn password(mistake: &Mistake<'_>) -> String {
    let is_named = mistake.configuration.root().is_written("ssl_password_file");
    let words = if is_named {
        "the key is encrypted, and no line of \"ssl_password_file\" opens it"
    } else {
        "the key is encrypted, and \"ssl_password_file\" is missing"
    };
    format!("; {words}")
}

/// What is in a file that is not what it should be.
fn contents(mistake: &Mistake<'_>, name: &str, is_key: bool) -> Option<String> {
    let bytes = mistake.configuration.file(Path::new(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (has_certificate, has_key) = (
        text.contains("-----BEGIN CERTIFICATE-----"),
        text.contains("PRIVATE KEY-----"),
    );
    let words = match (is_key, has_certificate, has_key) {
        (false, false, true) => {
            "this file is a key: are \"ssl_certificate\" and \"ssl_certificate_key\" swapped?"
        }
        (true, true, false) => {
            "this file is a certificate: are \"ssl_certificate\" and \"ssl_certificate_key\" \
             swapped?"
        }
        (false, false, false) => "it has no line \"-----BEGIN CERTIFICATE-----\"",
        (true, _, false) => "it has no line \"-----BEGIN PRIVATE KEY-----\"",
        (false, true, _) | (true, _, true) => "it is damaged",
    };
    Some(format!("; {words}"))
}

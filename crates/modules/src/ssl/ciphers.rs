//! OpenSSL's language for lists of cipher suites (openssl-ciphers(1)), over the suites of TLS 1.2
//! that are there: all with forward secrecy and AEAD.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use turnpike_plan::tls::{cipher_name, has_cipher};

/// A suite of TLS 1.2, and what it is made of, in OpenSSL's words.
struct Suite {
    name: &'static str,
    /// Words that stand for it and for others.
    is: &'static [&'static str],
}

/// Words that stand for all of them. `PROFILE=SYSTEM` is the policy of the machine with the OpenSSL
/// of Fedora and Red Hat, and stands in their stock files.
const COMMON: &[&str] = &[
    "ALL",
    "DEFAULT",
    "ECDH",
    "ECDHE",
    "EECDH",
    "HIGH",
    "KECDHE",
    "KEECDH",
    "PROFILE=SYSTEM",
    "TLSV1.2",
];

/// In OpenSSL's own order: the strongest first, ECDSA before RSA.
const SUITES: &[Suite] = &[
    suite(
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        &["AECDSA", "ECDSA", "AES", "AES256", "AESGCM"],
    ),
    suite(
        "ECDHE-RSA-AES256-GCM-SHA384",
        &["ARSA", "AES", "AES256", "AESGCM"],
    ),
    suite(
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        &["AECDSA", "ECDSA", "CHACHA20"],
    ),
    suite("ECDHE-RSA-CHACHA20-POLY1305", &["ARSA", "CHACHA20"]),
    suite(
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        &["AECDSA", "ECDSA", "AES", "AES128", "AESGCM"],
    ),
    suite(
        "ECDHE-RSA-AES128-GCM-SHA256",
        &["ARSA", "AES", "AES128", "AESGCM"],
    ),
];

/// Words that OpenSSL knows and that stand for none of the suites that are there.
const OTHER_WORDS: &[&str] = &[
    "3DES",
    "ADH",
    "ADSS",
    "AECDH",
    "AESCCM",
    "AESCCM8",
    "ANULL",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "CBC",
    "COMPLEMENTOFALL",
    "COMPLEMENTOFDEFAULT",
    "DES",
    "DH",
    "DHE",
    "DSS",
    "EDH",
    "ENULL",
    "EXP",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "GOST89MAC",
    "IDEA",
    "KDHE",
    "KDHEPSK",
    "KECDHEPSK",
    "KECDH",
    "KEDH",
    "KPSK",
    "KRSA",
    "KRSAPSK",
    "KSRP",
    "LOW",
    "MD5",
    "MEDIUM",
    "NULL",
    "PSK",
    "RC2",
    "RC4",
    "RSA",
    "SEED",
    "SHA",
    "SHA1",
    "SHA256",
    "SHA384",
    "SRP",
    "SSLV2",
    "SSLV3",
    "TLSV1",
    "TLSV1.0",
];

/// What a list says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Names of the suites, the best first.
    pub(super) suites: Vec<&'static str>,
    /// Suites that are named and not there.
    pub(super) not_there: Vec<String>,
    /// Words that mean nothing.
    pub(super) unknown: Vec<String>,
}

const fn suite(name: &'static str, is: &'static [&'static str]) -> Suite {
    Suite { name, is }
}

/// Reads a list.
pub(super) fn choose(list: &str) -> Chosen {
    let mut chosen = Chosen::default();
    let mut killed: Vec<&'static str> = Vec::new();
    // A command may stand right behind a word.
    let list = list.replace('@', ":@");
    let words = list.split([':', ',', ' ', ';']);
    for word in words.filter(|word| !word.is_empty()) {
        if let Some(command) = word.strip_prefix('@') {
            by_command(command, &mut chosen);
            continue;
        }
        let (sign, name) = match word.as_bytes()[0] {
            sign @ (b'!' | b'-' | b'+') => (sign, &word[1..]),
            _ => (b' ', word),
        };
        if sign == b' ' {
            note_missing(name, &mut chosen);
        }
        let meant: Vec<&'static str> = meant(name);
        match sign {
            b'!' => {
                chosen.suites.retain(|suite| !meant.contains(suite));
                killed.extend(meant);
            }
            b'-' => chosen.suites.retain(|suite| !meant.contains(suite)),
            b'+' => {
                let moved = |suite: &&str| meant.contains(suite);
                let (mut moved, kept): (Vec<_>, Vec<_>) =
                    chosen.suites.iter().copied().partition(moved);
                chosen.suites = kept;
                chosen.suites.append(&mut moved);
            }
            _ => {
                for suite in meant {
                    if !killed.contains(&suite) && !chosen.suites.contains(&suite) {
                        chosen.suites.push(suite);
                    }
                }
            }
        }
    }
    chosen
}

/// The suites of TLS 1.3 in that list; the error is a name that is not one of them.
pub(super) fn choose_tls13(list: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let names = list.split(':').filter(|name| !name.is_empty());
    let found = names.map(|name| {
        let is_it = |suite: &&SupportedCipherSuite| {
            suite.tls13().is_some() && cipher_name(suite.suite().into()) == Some(name)
        };
        let suite = ALL_CIPHER_SUITES.iter().find(is_it);
        suite.copied().ok_or_else(|| name.to_owned())
    });
    found.collect()
}

/// The suite of TLS 1.2 with that name.
pub(super) fn by_name(name: &str) -> Option<SupportedCipherSuite> {
    let is_it = |suite: &&SupportedCipherSuite| cipher_name(suite.suite().into()) == Some(name);
    ALL_CIPHER_SUITES.iter().find(is_it).copied()
}

fn by_command(command: &str, chosen: &mut Chosen) {
    match command {
        // 256 bits before 128.
        "STRENGTH" => chosen.suites.sort_by_key(|suite| suite.contains("AES128")),
        // All that is there is of the highest levels.
        _ if command.starts_with("SECLEVEL=") => {}
        _ => chosen.unknown.push(format!("@{command}")),
    }
}

/// What a word, or several with `+` between them, stands for.
fn meant(name: &str) -> Vec<&'static str> {
    let fits = |suite: &&Suite| name.split('+').all(|part| stands_for(part, suite));
    SUITES.iter().filter(fits).map(|suite| suite.name).collect()
}

fn stands_for(part: &str, suite: &Suite) -> bool {
    let upper = part.to_ascii_uppercase();
    let words = COMMON.iter().chain(suite.is);
    suite.name == part || words.into_iter().any(|word| **word == *upper)
}

fn note_missing(name: &str, chosen: &mut Chosen) {
    let is_there = |part: &str| SUITES.iter().any(|suite| stands_for(part, suite));
    for part in name.split('+') {
        if is_there(part) || OTHER_WORDS.contains(&part.to_ascii_uppercase().as_str()) {
            continue;
        }
        let (known, unknown) = (&mut chosen.not_there, &mut chosen.unknown);
        let list = if has_cipher(part) { known } else { unknown };
        list.push(part.to_owned());
    }
}

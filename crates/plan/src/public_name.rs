//! Which names a public certificate authority can certify. One that is asked for others refuses
//! the whole order, and each refusal counts against the account.

use std::net::IpAddr;

/// The most bytes of a name, and of one label (RFC 1035 section 2.3.4).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Last labels that never lead to a public host: reserved (RFC 2606, RFC 6761, RFC 6762, RFC 7686,
/// RFC 8375), or in use inside networks.
const PRIVATE: &[&str] = &[
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// Why a public authority cannot certify a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPublic {
    /// `_` and the like, an empty name, or one with a star or a pattern: it stands for no host.
    NoName,
    /// An address.
    Address,
    /// A name of one label, or below a label that is not of the public DNS.
    Private,
}

/// In words, after "it is".
impl std::fmt::Display for NotPublic {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            NotPublic::NoName => "not the name of one host",
            NotPublic::Address => "an address",
            NotPublic::Private => "not a name of the public DNS",
        })
    }
}

/// Checks a name as `server_name` has it.
///
/// # Errors
/// Why no public authority certifies it.
pub fn check(name: &str) -> Result<(), NotPublic> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return Err(NotPublic::Address);
    }
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_long = label.is_empty() || label.len() > LABEL_BYTES_MAX;
        !is_long && label.bytes().all(fits) && !label.starts_with('-') && !label.ends_with('-')
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return Err(NotPublic::NoName);
    }
    let last = name.rsplit_once('.').map(|(_, last)| last);
    let last = last.map(str::to_ascii_lowercase);
    let is_public = last.is_some_and(|last| {
        !PRIVATE.contains(&&*last) && last.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    if is_public {
        Ok(())
    } else {
        Err(NotPublic::Private)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_public_dns_are_certified() {
        let cases = [
            ("example.com", Ok(())),
            ("www.Example.CO.UK", Ok(())),
            ("xn--bcher-kva.example.com", Ok(())),
            ("", Err(NotPublic::NoName)),
            ("_", Err(NotPublic::NoName)),
            ("*.example.com", Err(NotPublic::NoName)),
            (".example.com", Err(NotPublic::NoName)),
            ("www.example.*", Err(NotPublic::NoName)),
            ("~^www", Err(NotPublic::NoName)),
            ("$hostname", Err(NotPublic::NoName)),
            ("-a.com", Err(NotPublic::NoName)),
            ("127.0.0.1", Err(NotPublic::Address)),
            ("[::1]", Err(NotPublic::Address)),
            ("localhost", Err(NotPublic::Private)),
            ("app.localhost", Err(NotPublic::Private)),
            ("printer.LAN", Err(NotPublic::Private)),
            ("a.home.arpa", Err(NotPublic::Private)),
            ("host.42", Err(NotPublic::Private)),
        ];
        for (name, expected) in cases {
            assert_eq!(check(name), expected, "{name}");
        }
    }
}

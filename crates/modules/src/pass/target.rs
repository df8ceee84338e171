//! What a `..._pass` directive names: scheme, address, path.

use turnpike_conf::bytes_of;

use crate::upstream::{Target, Url};

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassUrl {
    /// Whether it is `https`.
    pub(crate) secure: bool,
    /// The scheme as written, with its slashes.
    pub(crate) scheme: Vec<u8>,
    /// The address.
    pub(crate) url: Url,
    /// `Host` of requests, unless it is set otherwise (`$proxy_host`).
    pub(crate) host: Vec<u8>,
    /// `$proxy_port`.
    pub(crate) port: Vec<u8>,
    /// What stands behind the address, from its slash on; empty when nothing does.
    pub(crate) path: Vec<u8>,
    /// The port where none is written; 0: one must be.
    pub(crate) default_port: u16,
}

/// Why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UrlError {
    /// None of the schemes.
    Prefix,
    /// The address: nginx's words, and the text they are said of.
    Address(&'static str, String),
}

impl PassUrl {
    /// Reads `http://address[/path]`, `http://unix:path[:/path]`, or the same with `https`.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let starts = |scheme: &str| {
            let head = text.get(..scheme.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
        };
        let secure = starts("https://");
        if !secure && !starts("http://") {
            return Err(UrlError::Prefix);
        }
        let (scheme, rest) = text.split_at(if secure { 8 } else { 7 });
        let (address, path) = split(rest);
        let url = Url::parse(address).map_err(|what| UrlError::Address(what, rest.to_owned()))?;
        let mut path = bytes_of(path);
        if path.first() == Some(&b'?') {
            path.insert(0, b'/');
        }
        let default_port = if secure { 443 } else { 80 };
        let (host, port) = host_and_port(&url, default_port);
        Ok(Self {
            secure,
            scheme: bytes_of(scheme),
            url,
            host,
            port,
            path,
            default_port,
        })
    }

    /// Reads an address of a protocol without default port, of which log lines show `scheme`.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub(crate) fn parse_address(scheme: &str, text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text).map_err(|what| UrlError::Address(what, text.to_owned()))?;
        Ok(Self {
            secure: false,
            scheme: bytes_of(scheme),
            url,
            host: Vec::new(),
            port: Vec::new(),
            path: Vec::new(),
            default_port: 0,
        })
    }

    /// Reads `grpc://address`, `grpcs://address`, or an address alone.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub(crate) fn parse_grpc(text: &str) -> Result<Self, UrlError> {
        let lower = text.to_ascii_lowercase();
        let (secure, start) = match lower.as_str() {
            lower if lower.starts_with("grpc://") => (false, 7),
            lower if lower.starts_with("grpcs://") => (true, 8),
            _ => (false, 0),
        };
        let scheme = if secure { "grpcs://" } else { "grpc://" };
        let url = Self::parse_address(scheme, &text[start..])?;
        let (host, port) = host_and_port(&url.url, url.default_port);
        let host = match url.url.port {
            // The default is no port.
            None if port == b"0" => bytes_of(&url.url.host),
            _ => host,
        };
        Ok(Self {
            secure,
            host,
            port,
            ..url
        })
    }

    /// Reads an address as [`PassUrl::parse_address`] does, of a server that is spoken to by TLS.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub(crate) fn parse_secure_address(scheme: &str, text: &str) -> Result<Self, UrlError> {
        let url = Self::parse_address(scheme, text)?;
        // The certificate is for the host.
        let (host, port) = host_and_port(&url.url, url.default_port);
        Ok(Self {
            secure: true,
            host,
            port,
            ..url
        })
    }
}

/// The address, and what stands behind it.
fn split(rest: &str) -> (&str, &str) {
    if rest
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("unix:"))
    {
        return match rest[5..].find(':') {
            Some(colon) => (&rest[..5 + colon], &rest[6 + colon..]),
            None => (rest, ""),
        };
    }
    match rest.find(['/', '?', '#']) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    }
}

fn host_and_port(url: &Url, default_port: u16) -> (Vec<u8>, Vec<u8>) {
    if let Target::Unix(_) = url.target {
        return (b"localhost".to_vec(), Vec::new());
    }
    let host = bytes_of(&url.host);
    match url.port {
        Some(port) if port != default_port => {
            let port = port.to_string().into_bytes();
            ([host.as_slice(), b":", &port].concat(), port)
        }
        _ => (host, default_port.to_string().into_bytes()),
    }
}

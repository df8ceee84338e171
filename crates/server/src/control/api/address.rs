//! The value of `-l`: where the API listens.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{PathBuf, absolute};

/// Where the API listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiAddress {
    /// A unix socket at this absolute path.
    Unix(PathBuf),
    /// A port of a loopback address.
    Port(SocketAddr),
}

impl ApiAddress {
    /// Reads the value of `-l`: `unix:FILE`, a port, or a loopback address and a port.
    ///
    /// # Errors
    /// A sentence, in nginx's words where it has some.
    pub fn parse(value: &OsStr) -> Result<ApiAddress, String> {
        let text = value.to_string_lossy();
        if let Some(path) = value.as_bytes().strip_prefix(b"unix:") {
            if path.is_empty() {
                return Err(format!(
                    "control: no path in the unix domain socket in \"{text}\""
                ));
            }
            return absolute(OsStr::from_bytes(path))
                .map(ApiAddress::Unix)
                .map_err(|_| format!("control: invalid path in \"{text}\""));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", &text));
        let port = port.parse().ok().filter(|port: &u16| *port > 0);
        let Some(port) = port else {
            return Err(format!("control: invalid port in \"{text}\""));
        };
        let address = match host {
            "" | "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host => {
                let literal = host
                    .strip_prefix('[')
                    .and_then(|host| host.strip_suffix(']'));
                literal.unwrap_or(host).parse().ok()
            }
        };
        match address.filter(IpAddr::is_loopback) {
            Some(address) => Ok(ApiAddress::Port(SocketAddr::new(address, port))),
            None => Err(format!(
                "control: \"{text}\" is not a loopback address, and the API has no \
                 authentication: use \"-l unix:FILE\", or a port alone, which means 127.0.0.1"
            )),
        }
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiAddress::Unix(path) => write!(out, "unix:{}", path.display()),
            ApiAddress::Port(address) => write!(out, "{address}"),
        }
    }
}

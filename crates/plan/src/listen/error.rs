//! Why a `listen` directive cannot be used.

use std::fmt;
use turnpike_conf::Complaint;

/// Why the words of a `listen` directive are refused. The messages are nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// There is no address.
    NoArgument,
    /// The address, as written, has this fault.
    Address(AddressFault, String),
    /// No parameter has this name.
    Unknown(String),
    /// The text is no value of the parameter.
    Value(&'static str, String),
    /// `reuseport` for a unix socket.
    UnixReuseport,
    /// A parameter that says something of TCP, beside `quic`.
    NotWithQuic(&'static str),
    /// `quic` for a unix socket.
    UnixQuic,
    /// `multipath` for a unix socket.
    UnixMultipath,
    /// A parameter of a protocol that is not there.
    NotYet(String),
    /// `setfib`, which only FreeBSD has.
    SetFib,
}

/// The part of an address that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFault {
    /// A unix socket without a path.
    NoPath,
    /// No host.
    NoHost,
    /// The host is neither a name nor an address.
    InvalidHost,
    /// The host's name has no address.
    HostNotFound,
    /// No port, where there is no usual one.
    NoPort,
    /// The port is no number from 1 to 65535, or no range of them.
    InvalidPort,
    /// The range has more ports than one directive may open.
    ManyPorts,
}

impl fmt::Display for ListenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::NoArgument => {
                out.write_str("invalid number of arguments in \"listen\" directive")
            }
            ListenError::Address(fault, text) => {
                write!(out, "{fault} in \"{text}\" of the \"listen\" directive")
            }
            ListenError::Unknown(text) => write!(out, "invalid parameter \"{text}\""),
            ListenError::Value(name, text) => write!(out, "invalid {name} \"{text}\""),
            ListenError::UnixReuseport => {
                out.write_str("\"reuseport\" is not supported for unix domain sockets")
            }
            ListenError::NotWithQuic(name) => write!(
                out,
                "\"listen\" directive \"{name}\" parameter is incompatible with \"quic\""
            ),
            ListenError::UnixQuic => {
                out.write_str("\"quic\" is not supported for unix domain sockets")
            }
            ListenError::UnixMultipath => {
                out.write_str("\"multipath\" is not supported for unix domain sockets")
            }
            ListenError::NotYet(text) => write!(
                out,
                "the \"{text}\" parameter of \"listen\" is not supported yet"
            ),
            ListenError::SetFib => out.write_str("setfib is not supported on this platform"),
        }
    }
}

impl std::error::Error for ListenError {}

impl From<ListenError> for Complaint {
    fn from(error: ListenError) -> Complaint {
        error.to_string().into()
    }
}

impl fmt::Display for AddressFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            AddressFault::NoPath => "no path in the unix domain socket",
            AddressFault::NoHost => "no host",
            AddressFault::InvalidHost => "invalid host",
            AddressFault::HostNotFound => "host not found",
            AddressFault::NoPort => "no port",
            AddressFault::InvalidPort => "invalid port",
            AddressFault::ManyPorts => "too many ports in the range",
        })
    }
}

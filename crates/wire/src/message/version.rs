//! Protocol versions.

/// The protocol version of a message; minor versions above 1 are read as 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// A request line without a version.
    Http09,
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http20,
    /// HTTP/3
    Http30,
}

impl Version {
    /// The version as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::Http09 => "HTTP/0.9",
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http20 => "HTTP/2.0",
            Version::Http30 => "HTTP/3.0",
        }
    }
}

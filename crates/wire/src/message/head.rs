//! A head: the control data of a message (RFC 9110 section 6.2) and its fields.

use super::field::Fields;
use super::known::Known;
use super::value::decimal;
use super::version::Version;
use crate::Span;

#[cfg(test)]
mod tests;

/// The form of the request target (RFC 9112 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `scheme://authority/path?query`
    Absolute {
        /// The scheme without the colon.
        scheme: Span,
        /// Host and port as written.
        authority: Span,
    },
    /// `*`, for an `OPTIONS` request to the whole server; nginx refuses it.
    Asterisk,
    /// `host:port` of a `CONNECT`
    Authority {
        /// Host and port as written.
        authority: Span,
    },
}

/// The options of `Connection`. By the RFC, `close` in any line wins. As in nginx, the words may be
/// anywhere in the value, `close` wins over `keep-alive` within a line, and a later line wins over
/// an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// `close`
    pub close: bool,
    /// `keep-alive`
    pub keep_alive: bool,
    /// `upgrade`
    pub upgrade: bool,
    /// The number of other options: names of fields that belong to this connection only.
    pub options: u16,
}

impl Connection {
    /// Whether the connection stays open after a message of this version (RFC 9112 section 9.3).
    #[must_use]
    pub fn is_kept(self, version: Version) -> bool {
        match self {
            Connection { close: true, .. } => false,
            Connection {
                keep_alive: true, ..
            } => true,
            _ => version == Version::Http11,
        }
    }
}

/// The head of a response; it is reused from message to message.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The status code, three digits; 0 if there is none.
    pub status: u16,
    /// The version the message is handled as.
    pub version: Version,
    /// The options of `Connection` (RFC 9110 section 7.6.1); protocols without it leave it empty.
    pub connection: Connection,
    /// The fields in order.
    pub fields: Fields,
    pub(crate) reason: Span,
}

impl Head {
    /// The head of a response without fields. An empty reason is left out.
    #[must_use]
    pub fn response(status: u16, reason: &[u8]) -> Head {
        let mut head = Head::default();
        head.status = status;
        head.reason = head.fields.append(reason);
        head
    }

    /// The head of a response with these fields, for tables.
    #[must_use]
    pub fn of(status: u16, fields: &[(&str, &str)]) -> Head {
        let mut head = Head::response(status, b"");
        for (name, value) in fields {
            head.fields.add(name.as_bytes(), value.as_bytes());
        }
        head
    }

    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Head {
            fields,
            ..Head::default()
        };
    }

    /// A copy of a response's head without unused bytes: the bytes of a head that was moved in may
    /// include others.
    #[must_use]
    pub fn compacted(&self) -> Head {
        let mut head = Head::response(self.status, self.reason());
        head.version = self.version;
        head.connection = self.connection;
        for (name, value) in self.fields.iter() {
            head.fields.add(name, value);
        }
        head
    }

    /// The reason after the status as written, possibly empty.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.reason.of(self.fields.bytes())
    }

    /// Value of the first field of a known name.
    #[must_use]
    pub fn known(&self, known: Known) -> Option<&[u8]> {
        self.fields.known(known)
    }

    /// Value of the first field of that name.
    #[must_use]
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.value(name)
    }

    /// Values of the fields of that name.
    pub fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.fields.values(name)
    }

    /// Whether `Connection` names this field; such a field is not passed on (RFC 9110 section
    /// 7.6.1).
    #[must_use]
    pub fn is_connection_option(&self, name: &[u8]) -> bool {
        self.connection.options > 0 && self.fields.is_connection_option(name)
    }

    /// Whether this is an interim response, after which another head follows (RFC 9110 section
    /// 15.2). `101` is final: another protocol follows.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// `Content-Length`, where it is a number; also where there is no body, as for `HEAD`.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.known(Known::ContentLength).and_then(decimal)
    }

    /// The approximate memory that it takes, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.fields.size_bytes()
    }
}

impl PartialEq for Head {
    /// Whether both have the same content.
    fn eq(&self, other: &Head) -> bool {
        self.status == other.status
            && self.version == other.version
            && self.reason() == other.reason()
            && self.fields == other.fields
    }
}

impl Eq for Head {}

//! The head of a request of any protocol.

use super::field::Fields;
use super::head::{Connection, TargetForm};
use super::known::Known;
use super::method::Method;
use super::version::Version;
use crate::Span;

#[cfg(test)]
mod tests;

/// The length of the body after a head (RFC 9110 section 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// This many bytes.
    Bytes(u64),
    /// The body marks its own end.
    Unknown,
}

/// The head of a request; it is reused from request to request.
///
/// The bytes hold the request line in HTTP/1's format, for any protocol: logs and variables show
/// it. If a head was refused, the parts that were not parsed are empty.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    pub method: Method,
    /// The version the message is handled as.
    pub version: Version,
    pub form: TargetForm,
    /// Whether the request line was read to its end. The parts of one that was not are of no use.
    pub has_line: bool,
    /// Whether the path is already in normal form, so that it needs no
    /// [`normalise`](crate::target::normalise).
    pub path_is_clean: bool,
    /// Port that came with the host; 0 if none.
    pub host_port: u16,
    /// The length of the body.
    pub body: BodyLength,
    /// Whether the client waits for `100 Continue` (RFC 9110 section 10.1.1).
    pub expects_continue: bool,
    /// Whether it is an extended CONNECT (RFC 8441). It has the parts of HTTP/1's request for the
    /// same: GET, `Upgrade` and `Connection`.
    pub is_extended_connect: bool,
    /// The options of `Connection` (RFC 9110 section 7.6.1); protocols without it leave it empty.
    pub connection: Connection,
    /// The fields in order.
    pub fields: Fields,
    /// Fields left out because of their names, as lines, for the log; at most a few.
    pub(crate) ignored: Vec<Span>,
    pub(crate) method_text: Span,
    pub(crate) line: Span,
    pub(crate) origin: Span,
    pub(crate) path: Span,
    pub(crate) query: Span,
    pub(crate) protocol: Span,
    pub(crate) host: Option<Span>,
}

impl RequestHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        let mut ignored = std::mem::take(&mut self.ignored);
        fields.clear();
        ignored.clear();
        *self = RequestHead {
            fields,
            ignored,
            ..RequestHead::default()
        };
    }

    /// The request line without its line end; empty if it was not parsed.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        self.text(self.line)
    }

    /// The method as written.
    #[must_use]
    pub fn method_text(&self) -> &[u8] {
        self.text(self.method_text)
    }

    /// Path, query and fragment as written, without scheme and authority: nginx's `$request_uri`.
    #[must_use]
    pub fn origin(&self) -> &[u8] {
        self.text(self.origin)
    }

    /// The path as written, without query and fragment; empty if the target has none.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.text(self.path)
    }

    /// The query as written, without the question mark and the fragment.
    #[must_use]
    pub fn query(&self) -> &[u8] {
        self.text(self.query)
    }

    /// The protocol as written; empty in HTTP/0.9.
    #[must_use]
    pub fn protocol(&self) -> &[u8] {
        self.text(self.protocol)
    }

    /// The scheme of the target, if it has one.
    #[must_use]
    pub fn scheme(&self) -> Option<&[u8]> {
        match self.form {
            TargetForm::Absolute { scheme, .. } => Some(self.text(scheme)),
            _ => None,
        }
    }

    /// Host and port of the target as written, if it has them.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        match self.form {
            TargetForm::Absolute { authority, .. } | TargetForm::Authority { authority } => {
                Some(self.text(authority))
            }
            TargetForm::Origin | TargetForm::Asterisk => None,
        }
    }

    /// The host of the request, from the target or else from `Host`, without port and final dot, in
    /// its original case.
    #[must_use]
    pub fn host(&self) -> Option<&[u8]> {
        self.host.map(|host| self.text(host))
    }

    /// The lines of fields that were left out because of their names.
    pub fn ignored(&self) -> impl Iterator<Item = &[u8]> {
        self.ignored.iter().map(|line| self.text(*line))
    }

    /// Value of the first field of a known name.
    #[must_use]
    pub fn known(&self, known: Known) -> Option<&[u8]> {
        self.fields.known(known)
    }

    /// Whether the client allows the connection to stay open after the response (RFC 9112 section
    /// 9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.connection.is_kept(self.version)
    }

    /// Whether `Connection` names this field; such a field is not passed on (RFC 9110 section
    /// 7.6.1).
    #[must_use]
    pub fn is_connection_option(&self, name: &[u8]) -> bool {
        self.connection.options > 0 && self.fields.is_connection_option(name)
    }

    fn text(&self, span: Span) -> &[u8] {
        span.of(self.fields.bytes())
    }
}

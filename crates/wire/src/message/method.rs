//! The request methods that nginx knows by name.

/// A request method; a method outside of nginx's list is `Other`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `MKCOL`
    Mkcol,
    /// `COPY`
    Copy,
    /// `MOVE`
    Move,
    /// `OPTIONS`
    Options,
    /// `PROPFIND`
    Propfind,
    /// `PROPPATCH`
    Proppatch,
    /// `LOCK`
    Lock,
    /// `UNLOCK`
    Unlock,
    /// `PATCH`
    Patch,
    /// `TRACE`
    Trace,
    /// `CONNECT`
    Connect,
    /// Any other token; the text is in the head's `method_span`.
    #[default]
    Other,
}

impl Method {
    /// All methods with a variant of their own.
    pub const ALL: [Method; 16] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Mkcol,
        Method::Copy,
        Method::Move,
        Method::Options,
        Method::Propfind,
        Method::Proppatch,
        Method::Lock,
        Method::Unlock,
        Method::Patch,
        Method::Trace,
        Method::Connect,
    ];

    /// The method written as `text`; methods are case-sensitive (RFC 9110 section 9.1).
    #[must_use]
    pub fn of(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"MKCOL" => Method::Mkcol,
            b"COPY" => Method::Copy,
            b"MOVE" => Method::Move,
            b"OPTIONS" => Method::Options,
            b"PROPFIND" => Method::Propfind,
            b"PROPPATCH" => Method::Proppatch,
            b"LOCK" => Method::Lock,
            b"UNLOCK" => Method::Unlock,
            b"PATCH" => Method::Patch,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }

    /// The method as it is written; empty for `Other`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Mkcol => "MKCOL",
            Method::Copy => "COPY",
            Method::Move => "MOVE",
            Method::Options => "OPTIONS",
            Method::Propfind => "PROPFIND",
            Method::Proppatch => "PROPPATCH",
            Method::Lock => "LOCK",
            Method::Unlock => "UNLOCK",
            Method::Patch => "PATCH",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
            Method::Other => "",
        }
    }
}

//! Header names that the server or the client acts on.
//!
//! A name is found by its length and first letter, which leave a few candidates, and then compared
//! once. There is no allocation, no hash and no list walk.

#[cfg(test)]
mod tests;

macro_rules! known_names {
    ($( $variant:ident $text:literal ),+ $(,)?) => {
        /// A header name with a special meaning; all others are `Other`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            /// A name outside of this list.
            #[default]
            Other,
            $(
                #[doc = concat!("`", $text, "`")]
                $variant,
            )+
        }

        impl Known {
            /// Every known name.
            pub const ALL: &'static [Known] = &[$( Known::$variant ),+];

            /// The name as it is usually written; empty for `Other`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    Known::Other => "",
                    $( Known::$variant => $text, )+
                }
            }
        }
    };
}

known_names! {
    Accept "Accept",
    AcceptEncoding "Accept-Encoding",
    AcceptLanguage "Accept-Language",
    AcceptRanges "Accept-Ranges",
    Age "Age",
    Authorization "Authorization",
    CacheControl "Cache-Control",
    Connection "Connection",
    ContentEncoding "Content-Encoding",
    ContentLength "Content-Length",
    ContentRange "Content-Range",
    ContentType "Content-Type",
    Cookie "Cookie",
    Date "Date",
    Depth "Depth",
    Destination "Destination",
    Etag "ETag",
    Expect "Expect",
    Expires "Expires",
    Host "Host",
    IfMatch "If-Match",
    IfModifiedSince "If-Modified-Since",
    IfNoneMatch "If-None-Match",
    IfRange "If-Range",
    IfUnmodifiedSince "If-Unmodified-Since",
    KeepAlive "Keep-Alive",
    LastModified "Last-Modified",
    Link "Link",
    Location "Location",
    Origin "Origin",
    Overwrite "Overwrite",
    Pragma "Pragma",
    ProxyAuthorization "Proxy-Authorization",
    ProxyConnection "Proxy-Connection",
    Range "Range",
    Referer "Referer",
    Refresh "Refresh",
    RetryAfter "Retry-After",
    Server "Server",
    SetCookie "Set-Cookie",
    Te "TE",
    Trailer "Trailer",
    TransferEncoding "Transfer-Encoding",
    Upgrade "Upgrade",
    UserAgent "User-Agent",
    Vary "Vary",
    Via "Via",
    WwwAuthenticate "WWW-Authenticate",
    XAccelBuffering "X-Accel-Buffering",
    XAccelCharset "X-Accel-Charset",
    XAccelExpires "X-Accel-Expires",
    XAccelLimitRate "X-Accel-Limit-Rate",
    XAccelRedirect "X-Accel-Redirect",
    XForwardedFor "X-Forwarded-For",
    XForwardedProto "X-Forwarded-Proto",
    XRealIp "X-Real-IP",
}

impl Known {
    /// The known name equal to `name` in any case.
    #[must_use]
    pub fn of(name: &[u8]) -> Known {
        let Some(first) = name.first() else {
            return Known::Other;
        };
        match name.len() {
            2..=6 => Known::of_short(name, first | 0x20),
            7..=9 => Known::of_middle(name, first | 0x20),
            10..=13 => Known::of_long(name, first | 0x20),
            14..=19 => Known::of_longest(name, first | 0x20),
            _ => Known::Other,
        }
    }

    /// The names that nginx accepts only once, in every version of HTTP.
    pub(crate) const ONCE: [Known; 11] = [
        Known::Host,
        Known::IfModifiedSince,
        Known::IfUnmodifiedSince,
        Known::IfMatch,
        Known::IfNoneMatch,
        Known::ContentLength,
        Known::ContentRange,
        Known::IfRange,
        Known::Expect,
        Known::Authorization,
        Known::ProxyAuthorization,
    ];

    /// A set with this name as its only member; 0 for `Other`.
    pub(crate) fn bit(self) -> u64 {
        (1u64 << (self as u8)) & !1
    }

    fn of_short(name: &[u8], first: u8) -> Known {
        match (name.len(), first) {
            (2, b't') => pick(name, b"te", Known::Te),
            (3, b'v') => pick(name, b"via", Known::Via),
            (3, b'a') => pick(name, b"age", Known::Age),
            (4, b'h') => pick(name, b"host", Known::Host),
            (4, b'd') => pick(name, b"date", Known::Date),
            (4, b'e') => pick(name, b"etag", Known::Etag),
            (4, b'v') => pick(name, b"vary", Known::Vary),
            (4, b'l') => pick(name, b"link", Known::Link),
            (5, b'r') => pick(name, b"range", Known::Range),
            (5, b'd') => pick(name, b"depth", Known::Depth),
            (6, b'a') => pick(name, b"accept", Known::Accept),
            (6, b'c') => pick(name, b"cookie", Known::Cookie),
            (6, b's') => pick(name, b"server", Known::Server),
            (6, b'o') => pick(name, b"origin", Known::Origin),
            (6, b'e') => pick(name, b"expect", Known::Expect),
            (6, b'p') => pick(name, b"pragma", Known::Pragma),
            _ => Known::Other,
        }
    }

    fn of_middle(name: &[u8], first: u8) -> Known {
        match (name.len(), first) {
            (7, b'r') => pick2(
                name,
                (b"referer", Known::Referer),
                (b"refresh", Known::Refresh),
            ),
            (7, b'u') => pick(name, b"upgrade", Known::Upgrade),
            (7, b'e') => pick(name, b"expires", Known::Expires),
            (7, b't') => pick(name, b"trailer", Known::Trailer),
            (8, b'i') => pick2(
                name,
                (b"if-match", Known::IfMatch),
                (b"if-range", Known::IfRange),
            ),
            (8, b'l') => pick(name, b"location", Known::Location),
            (9, b'o') => pick(name, b"overwrite", Known::Overwrite),
            (9, b'x') => pick(name, b"x-real-ip", Known::XRealIp),
            _ => Known::Other,
        }
    }

    fn of_long(name: &[u8], first: u8) -> Known {
        match (name.len(), first) {
            (10, b'u') => pick(name, b"user-agent", Known::UserAgent),
            (10, b'c') => pick(name, b"connection", Known::Connection),
            (10, b'k') => pick(name, b"keep-alive", Known::KeepAlive),
            (10, b's') => pick(name, b"set-cookie", Known::SetCookie),
            (11, b'd') => pick(name, b"destination", Known::Destination),
            (11, b'r') => pick(name, b"retry-after", Known::RetryAfter),
            (12, b'c') => pick(name, b"content-type", Known::ContentType),
            (13, b'a') => pick2(
                name,
                (b"authorization", Known::Authorization),
                (b"accept-ranges", Known::AcceptRanges),
            ),
            (13, b'c') => pick2(
                name,
                (b"cache-control", Known::CacheControl),
                (b"content-range", Known::ContentRange),
            ),
            (13, b'i') => pick(name, b"if-none-match", Known::IfNoneMatch),
            (13, b'l') => pick(name, b"last-modified", Known::LastModified),
            _ => Known::Other,
        }
    }

    fn of_longest(name: &[u8], first: u8) -> Known {
        match (name.len(), first) {
            (14, b'c') => pick(name, b"content-length", Known::ContentLength),
            (15, b'a') => pick2(
                name,
                (b"accept-encoding", Known::AcceptEncoding),
                (b"accept-language", Known::AcceptLanguage),
            ),
            (15, b'x') => match name[2] | 0x20 {
                b'f' => pick(name, b"x-forwarded-for", Known::XForwardedFor),
                _ => pick2(
                    name,
                    (b"x-accel-charset", Known::XAccelCharset),
                    (b"x-accel-expires", Known::XAccelExpires),
                ),
            },
            (16, b'c') => pick(name, b"content-encoding", Known::ContentEncoding),
            (16, b'p') => pick(name, b"proxy-connection", Known::ProxyConnection),
            (16, b'w') => pick(name, b"www-authenticate", Known::WwwAuthenticate),
            (16, b'x') => pick(name, b"x-accel-redirect", Known::XAccelRedirect),
            (17, b'i') => pick(name, b"if-modified-since", Known::IfModifiedSince),
            (17, b't') => pick(name, b"transfer-encoding", Known::TransferEncoding),
            (17, b'x') => pick2(
                name,
                (b"x-accel-buffering", Known::XAccelBuffering),
                (b"x-forwarded-proto", Known::XForwardedProto),
            ),
            (18, b'x') => pick(name, b"x-accel-limit-rate", Known::XAccelLimitRate),
            (19, b'i') => pick(name, b"if-unmodified-since", Known::IfUnmodifiedSince),
            (19, b'p') => pick(name, b"proxy-authorization", Known::ProxyAuthorization),
            _ => Known::Other,
        }
    }
}

fn pick<const N: usize>(name: &[u8], lower: &[u8; N], known: Known) -> Known {
    if equals(name, lower) {
        known
    } else {
        Known::Other
    }
}

fn pick2<const N: usize>(
    name: &[u8],
    first: (&[u8; N], Known),
    second: (&[u8; N], Known),
) -> Known {
    if equals(name, first.0) {
        first.1
    } else {
        pick(name, second.0, second.1)
    }
}

/// Compares in any case. `lower` holds only letters and hyphens. A byte below space matches one of
/// them with its 0x20 bit set only if it is a carriage return, which no name holds.
fn equals<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else {
        return false;
    };
    let differing = name
        .iter()
        .zip(lower)
        .fold(0u8, |sum, (a, b)| sum | ((a | 0x20) ^ b));
    differing == 0
}

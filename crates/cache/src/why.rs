//! The reasons why a response was not stored: one closed list, which the log field uses.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident => $text:literal,)*) => {
        /// Why a response was not stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WhyNotStored {
            $($(#[doc = $doc])* $name,)*
        }

        impl WhyNotStored {
            /// All reasons, for references and metrics.
            pub const ALL: &'static [WhyNotStored] = &[$(WhyNotStored::$name,)*];

            /// The word in logs and metrics.
            pub const fn text(self) -> &'static str {
                match self {
                    $(WhyNotStored::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// The request's method is not among those that are cached.
    Method => "method",
    /// The request has content that its key does not hold.
    Content => "content",
    /// The request has `no-store`, and the configuration obeys it.
    RequestNoStore => "request-no-store",
    /// The request was authorized, and the response does not allow sharing (section 3.5).
    Authorization => "authorization",
    /// The response has `no-store`.
    NoStore => "no-store",
    /// The response has `private`.
    Private => "private",
    /// The response has `no-cache`.
    NoCache => "no-cache",
    /// Neither the response nor the configuration gives a lifetime.
    NoFreshness => "no-freshness",
    /// The response was stale on arrival.
    Expired => "expired",
    /// `X-Accel-Expires: 0`.
    AccelExpires => "x-accel-expires",
    /// A time in Cache-Control is malformed.
    Malformed => "malformed",
    /// The response sets a cookie.
    SetCookie => "set-cookie",
    /// `Vary: *`.
    VaryAny => "vary-any",
    /// The `Vary` list is too long.
    VaryTooLong => "vary-too-long",
    /// A part of a response that cannot be joined with others.
    Partial => "partial",
    /// `must-understand`, with a status whose caching rules are unknown.
    NotUnderstood => "not-understood",
    /// The status is not final, or is a 304 to a request that was not conditional here.
    Status => "status",
    /// `proxy_no_cache`.
    Configured => "configured",
    /// The key has not been requested often enough yet.
    MinUses => "min-uses",
    /// The request waited too long for another request's response, which will be stored.
    LockTimeout => "lock-timeout",
    /// The requested range begins too far after the start.
    RangeOffset => "range-offset",
    /// The response is larger than the zone.
    TooLarge => "too-large",
    /// The responses on their way into a zone in memory are larger than the zone.
    ZoneBusy => "zone-busy",
    /// The upstream server closed the connection early.
    Truncated => "truncated",
    /// The file could not be written: no space, no permission.
    WriteFailed => "write-failed",
    /// A purge came between the request and the response.
    Purged => "purged",
    /// What a 304 is about was removed or replaced between the request and the response.
    Replaced => "replaced",
}

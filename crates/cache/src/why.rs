//! Why a response was not stored: one closed list, from which the log field derives.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident => $text:literal,)*) => {
        /// Why a response was not stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WhyNotStored {
            $($(#[doc = $doc])* $name,)*
        }

        impl WhyNotStored {
            /// Every reason, for references and metrics.
            pub const ALL: &'static [WhyNotStored] = &[$(WhyNotStored::$name,)*];

            /// The word that logs and metrics have.
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
    /// The request says `no-store` and the configuration listens to it.
    RequestNoStore => "request-no-store",
    /// The request was authorized and the response does not say that it is for all (section 3.5).
    Authorization => "authorization",
    /// The response says `no-store`.
    NoStore => "no-store",
    /// The response says `private`.
    Private => "private",
    /// The response says `no-cache`.
    NoCache => "no-cache",
    /// Neither the response nor the configuration says how long it is fresh.
    NoFreshness => "no-freshness",
    /// The response was stale when it came.
    Expired => "expired",
    /// `X-Accel-Expires: 0`.
    AccelExpires => "x-accel-expires",
    /// A time in Cache-Control is none.
    Malformed => "malformed",
    /// The response sets a cookie.
    SetCookie => "set-cookie",
    /// `Vary: *`.
    VaryAny => "vary-any",
    /// A Vary that names too much.
    VaryTooLong => "vary-too-long",
    /// A part of a response, which is not put together with others here.
    Partial => "partial",
    /// `must-understand`, and the status is not one whose caching is understood.
    NotUnderstood => "not-understood",
    /// The status is not a final one, or a 304 that nobody here asked for.
    Status => "status",
    /// `proxy_no_cache`.
    Configured => "configured",
    /// Not asked for often enough yet.
    MinUses => "min-uses",
    /// The request waited too long for another request's answer, which is the one that is stored.
    LockTimeout => "lock-timeout",
    /// The range asked for begins too far behind the start.
    RangeOffset => "range-offset",
    /// The response is larger than the zone holds.
    TooLarge => "too-large",
    /// The upstream server broke off.
    Truncated => "truncated",
    /// The file could not be written: no room, no permission.
    WriteFailed => "write-failed",
    /// A purge came between the question and the answer.
    Purged => "purged",
}

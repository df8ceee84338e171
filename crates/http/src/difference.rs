//! Why responses may differ between two requests with the same host, path and query. Where there is
//! no reason, one answer does for all: the express lane may send it.

/// The first reason that was found. Handlers and filters say themselves that they are the same for
/// all; what says nothing counts as different, so that a new family is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The client's address is taken from the request (`set_real_ip_from`).
    ClientAddress,
    /// The server has locations that a variable chooses.
    Predicate,
    /// Rewriting looks at the request.
    Rewrite,
    /// Requests or connections are counted and limited.
    Limit,
    /// Access is controlled.
    Access,
    /// What happens before the content looks at the request, or copies it.
    BeforeContent,
    /// The content is not a constant or a file.
    Content,
    /// The folder of files has variables in its name.
    Folder,
    /// A filter changes the response by the request.
    Filter,
    /// The rules of a cache, or its key, look at more than host, path and query.
    CacheRules,
    /// The content did not come from a cache, or is not its only response for the key, or not
    /// fresh.
    Uncached,
}

impl Difference {
    /// Every reason.
    pub const ALL: &[Difference] = &[
        Difference::ClientAddress,
        Difference::Predicate,
        Difference::Rewrite,
        Difference::Limit,
        Difference::Access,
        Difference::BeforeContent,
        Difference::Content,
        Difference::Folder,
        Difference::Filter,
        Difference::CacheRules,
        Difference::Uncached,
    ];

    /// The name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Difference::ClientAddress => "client_address",
            Difference::Predicate => "predicate",
            Difference::Rewrite => "rewrite",
            Difference::Limit => "limit",
            Difference::Access => "access",
            Difference::BeforeContent => "before_content",
            Difference::Content => "content",
            Difference::Folder => "folder",
            Difference::Filter => "filter",
            Difference::CacheRules => "cache_rules",
            Difference::Uncached => "uncached",
        }
    }
}

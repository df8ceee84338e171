//! What the key of a request says of its content: clients that ask for the same path with other
//! content get another answer.
//!
//! Where the configuration lets the key, `..._cache_bypass` or `..._no_cache` see the content, it
//! is read before they are evaluated. An answer to content that the key does not hold belongs to
//! the client that sent it, and is no other one's.

use turnpike_http::variables::{Sources, Template, VariableTable};

/// What the key says of a request's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// There is none.
    Absent,
    /// The key holds it.
    InKey,
    /// The key would be the same for other content.
    Unseen,
}

/// The directives of a location that may see the content of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// The key, by whatever way: a value that `set` stores is made before the content is read.
    pub(super) by_key: bool,
    /// The key, or a condition.
    pub(super) at_all: bool,
}

impl Sight {
    /// What the key and these conditions may be made from.
    pub(super) fn of<'a>(
        key: Option<&Template>,
        conditions: impl Iterator<Item = &'a Template>,
        variables: &VariableTable,
    ) -> Self {
        let by_key = variables.may_be_unsettled(&Sources::of(key));
        let at_all = by_key || variables.may_be_unsettled(&Sources::of(conditions));
        Self { by_key, at_all }
    }
}

//! The challenges of all orders of this process, which lanes answer.
//!
//! They belong to the process, not to a plan: an order goes on during a reload.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The path below which tokens are asked for (RFC 8555 section 8.3).
pub(super) const HTTP_PATH: &[u8] = b"/.well-known/acme-challenge/";

/// The key authorizations by their tokens. An order publishes one for each of its identifiers, and
/// an issuer runs one order at a time.
static TOKENS: LazyLock<RwLock<HashMap<Vec<u8>, Vec<u8>>>> = LazyLock::new(RwLock::default);

/// A challenge that can be answered while this lives.
pub(super) enum Published {
    Http(Vec<u8>),
}

impl Published {
    /// Has requests for a token answered with its key authorization.
    pub(super) fn http(token: &str, authorization: &str) -> Published {
        let token = token.as_bytes().to_vec();
        let mut tokens = TOKENS.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(token.clone(), authorization.as_bytes().to_vec());
        Published::Http(token)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        match self {
            Published::Http(token) => {
                let mut tokens = TOKENS.write().unwrap_or_else(PoisonError::into_inner);
                tokens.remove(token);
            }
        }
    }
}

/// The answer to a request for this path; `None`: it asks for no known token.
pub(super) fn http_answer(path: &[u8]) -> Option<Vec<u8>> {
    let token = path.strip_prefix(HTTP_PATH)?;
    let tokens = TOKENS.read().unwrap_or_else(PoisonError::into_inner);
    tokens.get(token).cloned()
}

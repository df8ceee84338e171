//! Variables: what the cache had to do with an answer.

use turnpike_http::variables::{VariableRow, append_number};
use turnpike_wire::date;

use super::note::noted;

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "upstream_cache_status",
        get: |exchange, out| {
            let status = noted(exchange).map_or("", |note| note.status);
            out.extend_from_slice(status.as_bytes());
            !status.is_empty()
        },
        set: None,
        summary: "How the cache was used: MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or \
            HIT.",
    },
    VariableRow {
        name: "upstream_cache_last_modified",
        get: |exchange, out| match noted(exchange).and_then(|note| note.modified) {
            Some(modified) => {
                out.extend_from_slice(&date::format(modified));
                true
            }
            None => false,
        },
        set: None,
        summary: "The last modification time of the stored response that is being revalidated.",
    },
    VariableRow {
        name: "upstream_cache_etag",
        get: |exchange, out| {
            let etag = noted(exchange).map(|note| &*note.etag);
            out.extend_from_slice(etag.unwrap_or_default());
            etag.is_some_and(|etag| !etag.is_empty())
        },
        set: None,
        summary: "The entity tag of the stored response that is being revalidated.",
    },
    VariableRow {
        name: "upstream_cache_age",
        get: |exchange, out| match noted(exchange).and_then(|note| note.age_s) {
            Some(age_s) => {
                append_number(out, age_s);
                true
            }
            None => false,
        },
        set: None,
        summary: "The age of the stored response that was sent, in seconds.",
    },
    VariableRow {
        name: "upstream_cache_not_stored",
        get: |exchange, out| {
            let reason = noted(exchange).map_or("", |note| note.not_stored);
            out.extend_from_slice(reason.as_bytes());
            !reason.is_empty()
        },
        set: None,
        summary: "The reason why the server's response was not stored. It is empty if the response \
            was stored.",
    },
];

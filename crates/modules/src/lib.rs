//! The directive families: one folder each, always the same files in the same order (`mod.rs`,
//! `rows.rs`, `plan.rs`, `handler.rs`, `tests.rs`; a family that needs one fewer has one fewer). A
//! family of a hundred lines is one file.
//!
//! A family says which directives it has, reads them when a plan is built, and adds handlers,
//! filters and loggers to locations. It must not know another family, nor how a request came in.

mod access;
mod access_log;
mod acme;
mod addition;
mod alt_svc;
mod auth_basic;
mod auth_request;
mod autoindex;
mod browser;
mod charset;
mod common;
mod compression;
mod dav;
mod early_body;
mod echo;
mod empty_gif;
mod express;
mod fastcgi;
mod flv;
mod geo;
mod geoip2;
mod grpc;
mod headers;
mod health;
mod heavy_hitters;
mod index;
mod json;
mod limit_conn;
mod limit_req;
mod map;
mod memcached;
mod metric_zone;
mod metrics;
mod mirror;
mod more_headers;
mod mp4;
mod not_modified;
mod otel;
mod pass;
mod post_action;
mod proxy;
mod proxy_cache;
mod random_index;
mod range;
mod realip;
mod referer;
mod rewrite;
mod scgi;
mod secure_link;
mod slice;
mod split_clients;
mod ssi;
mod ssl;
mod ssl_preread;
mod static_files;
mod status;
mod stream_pass;
mod stream_proxy;
mod stream_return;
mod stream_set;
mod stub_status;
mod sub_filter;
mod time_format;
mod try_files;
mod tunnel;
mod upstream;
mod userid;
mod uwsgi;
mod without_effect;

use turnpike_http::plan::Family;

/// Every family, in the order in which they read a location. What they add there has places of its
/// own (`HandlerPlace`, `FilterPlace`), and what one needs of another is read before
/// (`Family::prepare_location`), so a new family may stand anywhere.
pub const FAMILIES: &[Family] = &[
    map::FAMILY,
    geo::FAMILY,
    geoip2::FAMILY,
    upstream::FAMILY,
    split_clients::FAMILY,
    referer::FAMILY,
    acme::FAMILY,
    // Its variables are there for what rewrites.
    otel::FAMILY,
    rewrite::FAMILY,
    more_headers::FAMILY,
    headers::FAMILY,
    alt_svc::FAMILY,
    userid::FAMILY,
    realip::FAMILY,
    limit_req::FAMILY,
    limit_conn::FAMILY,
    access::FAMILY,
    auth_basic::FAMILY,
    auth_request::FAMILY,
    access_log::FAMILY,
    metric_zone::FAMILY,
    secure_link::FAMILY,
    metrics::FAMILY,
    heavy_hitters::FAMILY,
    status::FAMILY,
    stub_status::FAMILY,
    not_modified::FAMILY,
    addition::FAMILY,
    sub_filter::FAMILY,
    charset::FAMILY,
    ssi::FAMILY,
    compression::FAMILY,
    range::FAMILY,
    try_files::FAMILY,
    mirror::FAMILY,
    early_body::FAMILY,
    json::FAMILY,
    time_format::FAMILY,
    slice::FAMILY,
    post_action::FAMILY,
    express::FAMILY,
    empty_gif::FAMILY,
    health::FAMILY,
    echo::FAMILY,
    proxy_cache::PROXY,
    proxy::FAMILY,
    proxy_cache::FASTCGI,
    fastcgi::FAMILY,
    proxy_cache::SCGI,
    scgi::FAMILY,
    proxy_cache::UWSGI,
    uwsgi::FAMILY,
    grpc::FAMILY,
    memcached::FAMILY,
    tunnel::FAMILY,
    dav::FAMILY,
    mp4::FAMILY,
    flv::FAMILY,
    random_index::FAMILY,
    index::FAMILY,
    autoindex::FAMILY,
    static_files::FAMILY,
    browser::FAMILY,
    ssl::FAMILY,
    without_effect::HTTP2,
    without_effect::QUIC,
    without_effect::TUNING,
    without_effect::OTHERS,
];

/// Every family of `stream`, in the order in which they read a server. What they add there has
/// places of its own (`turnpike_stream::phase::HandlerPlace`).
pub const STREAM_FAMILIES: &[turnpike_stream::plan::Family] = &[
    map::stream::FAMILY,
    geo::stream::FAMILY,
    geoip2::stream::FAMILY,
    upstream::stream::FAMILY,
    split_clients::stream::FAMILY,
    realip::stream::FAMILY,
    metrics::stream::FAMILY,
    limit_conn::stream::FAMILY,
    access::stream::FAMILY,
    access_log::stream::FAMILY,
    metric_zone::stream::FAMILY,
    ssl::stream::FAMILY,
    ssl_preread::FAMILY,
    stream_set::FAMILY,
    stream_pass::FAMILY,
    stream_proxy::FAMILY,
    stream_return::FAMILY,
];

#[cfg(test)]
mod tests {
    //! The tables of all families together.

    use std::collections::HashSet;

    use super::FAMILIES;

    fn is_plain(name: &str, more: &str) -> bool {
        let fits = |letter: char| letter.is_ascii_lowercase() || more.contains(letter);
        !name.is_empty() && name.chars().all(fits)
    }

    #[test]
    fn every_metric_stands_once_and_says_what_it_is() {
        let mut names = HashSet::new();
        for row in FAMILIES.iter().flat_map(|family| family.metrics) {
            assert!(names.insert(row.name), "{} twice", row.name);
            assert!(is_plain(row.name, "_0123456789"), "{row:?}");
            assert!(is_plain(row.unit, "_"), "{row:?}");
            assert!(
                row.labels.iter().all(|label| is_plain(label, "_")),
                "{row:?}"
            );
            assert!(row.help.ends_with('.') && row.help.len() > 10, "{row:?}");
        }
    }

    #[test]
    fn every_verb_stands_once_and_says_what_it_does() {
        let mut names = HashSet::new();
        for row in FAMILIES.iter().flat_map(|family| family.commands) {
            assert!(names.insert(row.name), "{} twice", row.name);
            let (subject, verb) = row.name.split_once('.').unwrap_or_default();
            assert!(is_plain(subject, "_") && is_plain(verb, "_"), "{row:?}");
            assert!(row.summary.ends_with('.'), "{row:?}");
        }
    }
}

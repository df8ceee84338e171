//! The directive families: one folder each, always the same files in the same order (`mod.rs`,
//! `rows.rs`, `plan.rs`, `handler.rs`, `tests.rs`; a family that needs one fewer has one fewer). A
//! family of a hundred lines is one file.
//!
//! A family says which directives it has, reads them when a plan is built, and adds handlers,
//! filters and loggers to locations. It must not know another family, nor how a request came in.

mod access;
mod access_log;
mod acme;
mod added_body;
mod addition;
mod address;
mod alt_svc;
mod auth_basic;
mod auth_request;
mod autoindex;
mod browser;
mod buffers;
mod by_location;
mod charset;
mod compression;
mod conditions;
mod constant_time;
mod content;
mod cookie_expiry;
mod copies;
mod dav;
mod early_body;
mod echo;
mod empty_gif;
mod entity;
mod expiry;
mod express;
mod fastcgi;
mod file_access;
mod file_response;
mod files;
mod flv;
mod folder;
mod geo;
mod geoip2;
mod grpc;
mod headers;
mod health;
mod hostnames;
mod html;
mod index;
mod internal_target;
mod issued;
mod json;
mod limit_conn;
mod limit_req;
mod limits;
mod map;
mod memcached;
mod metrics;
mod mirror;
mod more_headers;
mod mp4;
mod not_modified;
mod otel;
mod own_request;
mod part;
mod pass;
mod pem_key;
mod post_action;
mod predicates;
mod proxy;
mod proxy_cache;
mod query;
mod random_index;
mod range;
mod realip;
mod referer;
mod refused;
mod rewrite;
mod rows;
mod safe_path;
mod scgi;
mod secure_link;
mod shards;
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
mod types;
mod upstream;
mod userid;
mod uwsgi;
mod wanted_part;
mod without_effect;
mod zone;

use turnpike_http::plan::Family;

/// Every family, in the order in which they read a location. What they add there has places of its
/// own (`HandlerPlace`, `FilterPlace`), and what one needs of another is read before
/// (`Family::prepare_location`), so a new family may stand anywhere.
pub const FAMILIES: &[&dyn Family] = &[
    &map::Map,
    &geo::Geo,
    &geoip2::GeoIp2,
    &upstream::Upstreams,
    &split_clients::SplitClients,
    &referer::Referer,
    &acme::Acme,
    // Its variables are there for what rewrites.
    &otel::OpenTelemetry,
    &rewrite::Rewrite,
    &more_headers::MoreHeaders,
    &headers::Headers,
    &alt_svc::AltSvc,
    &userid::UserId,
    &realip::RealIp,
    &limit_req::LimitReq,
    &limit_conn::LimitConn,
    &access::Access,
    &auth_basic::AuthBasic,
    &auth_request::AuthRequest,
    &access_log::AccessLog,
    &secure_link::SecureLink,
    &metrics::Metrics,
    &status::Status,
    &stub_status::StubStatus,
    &not_modified::NotModified,
    &addition::Addition,
    &sub_filter::SubFilter,
    &charset::Charset,
    &ssi::Ssi,
    &compression::Compression,
    &range::Ranges,
    &try_files::TryFiles,
    &mirror::Mirror,
    &early_body::EarlyBody,
    &json::Json,
    &time_format::TimeFormat,
    &slice::Slice,
    &post_action::PostAction,
    &express::Express,
    &empty_gif::EmptyGif,
    &health::Health,
    &echo::Echo,
    &proxy_cache::PROXY,
    &proxy::Proxy,
    &proxy_cache::FASTCGI,
    &fastcgi::FastCgi,
    &proxy_cache::SCGI,
    &scgi::Scgi,
    &proxy_cache::UWSGI,
    &uwsgi::Uwsgi,
    &grpc::Grpc,
    &memcached::Memcached,
    &tunnel::Tunnels,
    &dav::Dav,
    &mp4::Mp4,
    &flv::Flv,
    &random_index::RandomIndex,
    &index::Index,
    &autoindex::Autoindex,
    &static_files::StaticFiles,
    &browser::Browser,
    &ssl::Ssl,
    without_effect::HTTP2,
    without_effect::QUIC,
    without_effect::TUNING,
    without_effect::OTHERS,
];

/// Every family of `stream`, in the order in which they read a server. What they add there has
/// places of its own (`turnpike_stream::phase::HandlerPlace`).
pub const STREAM_FAMILIES: &[&dyn turnpike_stream::plan::Family] = &[
    &map::Map,
    &geo::Geo,
    &geoip2::GeoIp2,
    &upstream::Upstreams,
    &split_clients::SplitClients,
    &realip::RealIp,
    &metrics::Metrics,
    &limit_conn::LimitConn,
    &access::Access,
    &access_log::AccessLog,
    &ssl::Ssl,
    &ssl_preread::SslPreread,
    &stream_set::StreamSet,
    &stream_pass::StreamPass,
    &stream_proxy::StreamProxy,
    &stream_return::StreamReturn,
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
        for row in FAMILIES.iter().flat_map(|family| family.metrics()) {
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
        for row in FAMILIES.iter().flat_map(|family| family.commands()) {
            assert!(names.insert(row.name), "{} twice", row.name);
            let (subject, verb) = row.name.split_once('.').unwrap_or_default();
            assert!(is_plain(subject, "_") && is_plain(verb, "_"), "{row:?}");
            assert!(row.summary.ends_with('.'), "{row:?}");
        }
    }
}

//! Tests of the built binary. A module is named after the family of directives or the part of the
//! server that it tests; "also" names the families that it tests too. All are one program, so that
//! they are linked once. `secure_link` and `without_effect` have unit tests and verdicts alone.

#![allow(clippy::unwrap_used)]

// also limit_conn, limit_req, realip
mod access;
mod access_log;
mod acme;
// also memcached, scgi, uwsgi
mod applications;
mod auth_basic;
mod beside_nginx;
mod browser;
mod charset;
mod command_line;
mod compression;
mod dav;
mod debug_connection;
mod documentation;
mod echo;
mod express;
mod fastcgi;
mod fifos;
mod geoip2;
mod header_injection;
mod headers;
mod hoarding;
mod http1;
// also grpc
mod http2;
// also alt_svc
mod http3;
// also early_body
mod json;
// also heavy_hitters, metric_zone, status, stub_status
mod metrics;
// also auth_request, post_action
mod mirror;
mod more_headers;
// also flv
mod mp4;
// also health
mod operations;
mod otel;
mod proxy;
mod proxy_cache;
// also geo, map, referer, split_clients, time_format
mod rewrite;
mod simple;
mod slice;
mod ssi;
mod ssl;
// also autoindex, empty_gif, index, not_modified, random_index, range, try_files
mod static_files;
// also ssl_preread, stream_pass, stream_proxy, stream_return, stream_set
mod stream;
// also addition
mod sub_filter;
mod support;
mod tunnel;
mod upstream;
mod userid;

//! Where each directive comes from, for the reference: the version of nginx that first had it,
//! another module, or this server.

use turnpike_conf::Row;

/// The directives of nginx and the first version whose sources have them; those of `stream` are
/// named apart where both have one.
const SINCE: &str = include_str!("since.txt");

/// The directives of others: the beginning of their names, and whose they are. The first row that
/// fits counts.
const OTHERS: &[(&str, &str)] = &[
    ("acme_", "nginx's module nginx-acme"),
    ("brotli", "the module ngx_brotli"),
    ("dav_ext_", "the module nginx-dav-ext"),
    ("echo", "the module echo-nginx"),
    ("fancyindex", "the module ngx-fancyindex"),
    ("geoip2", "the module ngx_http_geoip2"),
    ("goto", "Angie"),
    ("grpc_ssl_key_log", PLUS),
    ("health_check", PLUS),
    ("match", PLUS),
    ("metric", "Angie"),
    ("more_", "the module headers-more"),
    ("num_map", "Angie"),
    ("otel_", "nginx's module nginx-otel"),
    ("proxy_ssl_key_log", PLUS),
    ("queue", PLUS),
    ("reuse_port", "Tengine"),
    ("set_", "the module set-misc"),
    ("ssl_key_log", PLUS),
    ("state", PLUS),
    ("time_format", "Angie"),
    ("upload_progress", "the module nginx-upload-progress"),
    ("upstream_list", "the module ngx_devel_kit"),
    ("uwsgi_ssl_key_log", PLUS),
    ("zstd", "the module zstd-nginx"),
];

const PLUS: &str = "NGINX Plus";

/// The directives of this server alone: their names, or parts of them.
const OWN: &[&str] = &[
    "alt_svc",
    "compatibility",
    "control",
    "env_subst",
    "express",
    "health",
    "heavy_hitters",
    "http09",
    "http_strictness",
    "lane_rescue_timeout",
    "metrics",
    "proxy_protocol",
    "proxy_protocol_v2_tlv",
    "proxy_websocket",
    "retry_budget",
    "sandbox",
    "shutdown_delay",
    "scgi_send_lowat",
    "uwsgi_send_lowat",
    "via",
];

/// The directives of the caches that are this server's, without the family's prefix.
const OWN_OF_CACHES: &[&str] = &[
    "_cache_early_hints",
    "_cache_heuristic",
    "_cache_honor_request",
    "_cache_invalidate",
    "_cache_status",
];

/// Where a directive of a family comes from; `None` if nobody has said so yet.
pub(super) fn origin(family: &str, row: &Row) -> Option<String> {
    let name = row.name;
    if let Some(version) = since(family, name) {
        return Some(format!("nginx, since {version}"));
    }
    let is_own = OWN.contains(&name)
        || name.starts_with("express_")
        || OWN_OF_CACHES.iter().any(|end| name.ends_with(end));
    if is_own {
        return Some("Turnpike".to_owned());
    }
    if name.ends_with("_cache_purge") {
        return Some(PLUS.to_owned());
    }
    let other = OTHERS.iter().find(|(begin, _)| name.starts_with(begin));
    other.map(|(_, whose)| (*whose).to_owned())
}

fn since(family: &str, name: &str) -> Option<&'static str> {
    let version = |wanted: &str| {
        let lines = SINCE.lines();
        let mut lines = lines.filter_map(|line| line.rsplit_once(' '));
        lines
            .find(|(name, _)| *name == wanted)
            .map(|(_, version)| version)
    };
    let of_stream = if family.starts_with("stream") {
        version(&format!("stream {name}"))
    } else {
        None
    };
    of_stream.or_else(|| version(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{FAMILIES, registry};

    #[test]
    fn every_directive_has_an_origin() {
        let registry = registry();
        let unknown = registry
            .rows()
            .filter(|(family, row)| origin(family, row).is_none());
        let unknown: Vec<&str> = unknown.map(|(_, row)| row.name).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn versions_stand_in_order_and_are_of_directives_that_are_here() {
        let names: Vec<&str> = SINCE
            .lines()
            .filter_map(|line| Some(line.rsplit_once(' ')?.0))
            .collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        for name in names {
            let (is_stream, bare) = match name.strip_prefix("stream ") {
                Some(bare) => (true, bare),
                None => (false, name),
            };
            let has = FAMILIES.iter().any(|family| {
                family.rows.iter().any(|row| row.name == bare)
                    && (!is_stream || family.name.starts_with("stream"))
            });
            assert!(has, "{name}");
        }
    }
}

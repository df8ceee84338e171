//! Which of nginx's modules are built in: the one table behind `-V`.
//!
//! Tools decide by the `configure arguments` whether a feature may be used, so an absent module
//! that nginx builds by default must be denied with its `--without-...`, and one that nginx
//! builds only on demand must stay silent. A module is marked present when its directives work.

/// How nginx's `configure` names a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// Built in unless `--without-NAME` is given.
    Without(&'static str),
    /// Built in only if `--with-NAME` is given.
    With(&'static str),
}

/// One module of nginx's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Module {
    /// The switch.
    pub flag: Flag,
    /// Whether its directives work here.
    pub present: bool,
}

const fn without(name: &'static str, present: bool) -> Module {
    Module {
        flag: Flag::Without(name),
        present,
    }
}

const fn with(name: &'static str, present: bool) -> Module {
    Module {
        flag: Flag::With(name),
        present,
    }
}

/// Every module, in the order of nginx's own `configure`.
pub const MODULES: &[Module] = &[
    without("http", true),
    without("http-cache", true),
    without("pcre", true),
    without("http_charset_module", true),
    without("http_gzip_module", true),
    without("http_ssi_module", true),
    without("http_userid_module", true),
    without("http_access_module", true),
    without("http_auth_basic_module", true),
    without("http_mirror_module", true),
    without("http_autoindex_module", true),
    without("http_status_module", false),
    without("http_geo_module", true),
    without("http_map_module", true),
    without("http_split_clients_module", true),
    without("http_referer_module", true),
    without("http_rewrite_module", true),
    without("http_proxy_module", true),
    without("http_fastcgi_module", true),
    without("http_uwsgi_module", true),
    without("http_scgi_module", true),
    without("http_grpc_module", true),
    without("http_tunnel_module", true),
    without("http_memcached_module", true),
    without("http_limit_conn_module", true),
    without("http_limit_req_module", true),
    without("http_empty_gif_module", true),
    without("http_browser_module", true),
    without("http_upstream_hash_module", true),
    without("http_upstream_ip_hash_module", true),
    without("http_upstream_least_conn_module", true),
    without("http_upstream_least_time_module", true),
    without("http_upstream_random_module", true),
    without("http_upstream_keepalive_module", true),
    without("http_upstream_zone_module", true),
    without("http_upstream_sticky_module", true),
    without("mail_pop3_module", false),
    without("mail_imap_module", false),
    without("mail_smtp_module", false),
    without("stream_limit_conn_module", true),
    without("stream_access_module", true),
    without("stream_geo_module", true),
    without("stream_map_module", true),
    without("stream_split_clients_module", true),
    without("stream_return_module", true),
    without("stream_pass_module", true),
    without("stream_set_module", true),
    without("stream_upstream_hash_module", true),
    without("stream_upstream_least_conn_module", true),
    without("stream_upstream_least_time_module", true),
    without("stream_upstream_random_module", true),
    without("stream_upstream_zone_module", true),
    with("threads", false),
    with("http_ssl_module", true),
    with("http_v2_module", true),
    with("http_v3_module", true),
    with("http_realip_module", true),
    with("http_addition_module", true),
    with("http_xslt_module", false),
    with("http_image_filter_module", false),
    with("http_geoip_module", false),
    with("http_sub_module", true),
    with("http_dav_module", true),
    with("http_flv_module", true),
    with("http_mp4_module", true),
    with("http_gunzip_module", true),
    with("http_gzip_static_module", true),
    with("http_auth_request_module", true),
    with("http_random_index_module", true),
    with("http_secure_link_module", true),
    with("http_slice_module", true),
    with("http_stub_status_module", true),
    with("http_json_module", true),
    with("mail", false),
    with("mail_ssl_module", false),
    with("stream", true),
    with("stream_ssl_module", true),
    with("stream_realip_module", true),
    with("stream_geoip_module", false),
    with("stream_ssl_preread_module", true),
    with("debug", true),
];

/// Modules of others whose directives work here, by their files without `.so`.
const OTHERS_PRESENT: &[&str] = &[
    "ndk_http_module",
    "ngx_http_brotli_filter_module",
    "ngx_http_brotli_static_module",
    "ngx_http_cache_purge_module",
    "ngx_http_dav_ext_module",
    "ngx_http_echo_module",
    "ngx_http_fancyindex_module",
    "ngx_http_geoip2_module",
    "ngx_http_headers_more_filter_module",
    "ngx_http_set_misc_module",
    "ngx_http_zstd_filter_module",
    "ngx_http_zstd_static_module",
    "ngx_otel_module",
    "ngx_stream_geoip2_module",
];

/// Modules that do nothing unless one of their directives is used, and these are refused: the
/// packages of distributions load them whether they are used or not. The switches of nginx's own
/// among them have other names, or are not among those that tools ask for.
const OTHERS_ABSENT: &[&str] = &[
    "ngx_http_array_var_module",
    "ngx_http_auth_pam_module",
    "ngx_http_js_module",
    "ngx_http_lua_module",
    "ngx_http_perl_module",
    "ngx_http_shibboleth_module",
    "ngx_http_subs_filter_module",
    "ngx_http_upload_module",
    "ngx_http_uploadprogress_module",
    "ngx_http_upstream_fair_module",
    "ngx_http_vhost_traffic_status_module",
    "ngx_http_xslt_filter_module",
    "ngx_nchan_module",
    "ngx_rtmp_module",
    "ngx_stream_js_module",
];

/// Whether what `load_module` names is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The module's directives work.
    Present,
    /// The module is a known one, whose directives are refused by name.
    Absent,
    /// The module is not a known one, or does something without a directive.
    Unknown,
}

/// Whether the module of a file, such as `modules/ngx_http_gzip_static_module.so`, is here.
pub fn standing(file: &str) -> Standing {
    let name = file.rsplit('/').next().unwrap_or_default();
    let Some(name) = name.strip_suffix(".so") else {
        return Standing::Unknown;
    };
    if OTHERS_PRESENT.contains(&name) {
        return Standing::Present;
    }
    if OTHERS_ABSENT.contains(&name) {
        return Standing::Absent;
    }
    let Some(name) = name.strip_prefix("ngx_") else {
        return Standing::Unknown;
    };
    let names = |module: &&Module| {
        let (Flag::Without(flag) | Flag::With(flag)) = module.flag;
        flag == name || name.strip_suffix("_module") == Some(flag)
    };
    match MODULES.iter().find(names) {
        Some(module) if module.present => Standing::Present,
        Some(_) => Standing::Absent,
        None => Standing::Unknown,
    }
}

/// The text after `configure arguments:`, each argument with a space before it.
pub fn configure_arguments() -> String {
    let mut text = String::new();
    for module in MODULES {
        match (module.flag, module.present) {
            (Flag::Without(name), false) => text.extend([" --without-", name]),
            (Flag::With(name), true) => text.extend([" --with-", name]),
            (Flag::Without(_), true) | (Flag::With(_), false) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_module_stands_twice() {
        let name = |module: &Module| match module.flag {
            Flag::Without(name) | Flag::With(name) => name,
        };
        let names: BTreeSet<&str> = MODULES.iter().map(name).collect();
        assert_eq!(names.len(), MODULES.len());
    }

    #[test]
    fn a_module_is_known_by_its_file() {
        for (file, standing) in [
            ("modules/ngx_http_gzip_static_module.so", Standing::Present),
            (
                "/usr/lib/nginx/modules/ngx_http_realip_module.so",
                Standing::Present,
            ),
            ("ngx_stream_module.so", Standing::Present),
            ("ngx_mail_module.so", Standing::Absent),
            ("modules/ngx_http_image_filter_module.so", Standing::Absent),
            ("modules/ngx_http_xslt_filter_module.so", Standing::Absent),
            ("modules/ngx_http_perl_module.so", Standing::Absent),
            ("modules/ngx_http_js_module.so", Standing::Absent),
            (
                "modules/ngx_http_headers_more_filter_module.so",
                Standing::Present,
            ),
            ("modules/ngx_http_lua_module.so", Standing::Absent),
            ("modules/ngx_rtmp_module.so", Standing::Absent),
            ("modules/ndk_http_module.so", Standing::Present),
            ("ngx_http_brotli_static_module.so", Standing::Present),
            ("modules/ngx_http_dav_ext_module.so", Standing::Present),
            ("modules/ngx_stream_geoip2_module.so", Standing::Present),
            ("modules/ngx_http_geoip_module.so", Standing::Absent),
            ("modules/ngx_http_zip_module.so", Standing::Unknown),
            ("ngx_http_headers_more_filter_module", Standing::Unknown),
            ("a.so", Standing::Unknown),
        ] {
            assert_eq!(super::standing(file), standing, "{file}");
        }
    }

    #[test]
    fn absent_modules_are_denied_and_absent_extras_unnamed() {
        let text = configure_arguments();
        for module in MODULES {
            let (argument, expected) = match module.flag {
                Flag::Without(name) => (format!(" --without-{name} "), !module.present),
                Flag::With(name) => (format!(" --with-{name} "), module.present),
            };
            assert_eq!(
                format!("{text} ").contains(&argument),
                expected,
                "{argument}"
            );
        }
    }
}

//! Advice for directives that are refused: a row for each module of nginx's that is missing or not
//! whole, and for each other module that is often met.
//!
//! A row whose directives have all come is found for no name any more; a test asks for its removal.

/// One module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    /// The module as people call it.
    pub(crate) module: &'static str,
    /// The names of the directives, or a directive and its parameter; a star stands for any
    /// letters.
    pub(crate) names: &'static [&'static str],
    /// What to do instead, as a sentence.
    pub(crate) instead: &'static str,
}

const fn advice(
    module: &'static str,
    names: &'static [&'static str],
    instead: &'static str,
) -> Advice {
    Advice {
        module,
        names,
        instead,
    }
}

/// The advice for a name, if there is any.
pub(crate) fn find(name: &str) -> Option<&'static Advice> {
    let rows = || NGINX.iter().chain(OTHERS);
    let exact = rows().find(|row| row.names.contains(&name));
    let by_pattern = |row: &&Advice| row.names.iter().any(|pattern| matches(pattern, name));
    exact.or_else(|| rows().find(by_pattern))
}

/// Parameters of directives that are refused, with the names of the directives before them.
pub(crate) fn parameters() -> impl Iterator<Item = &'static str> {
    let names = NGINX.iter().flat_map(|row| row.names.iter().copied());
    names.filter(|name| name.contains(' ') && !name.contains('*'))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let rest = name.strip_prefix(head);
            rest.is_some_and(|rest| rest.ends_with(tail))
        }
    }
}

/// Modules that nginx itself has, in the order of the reference.
pub(crate) static NGINX: &[Advice] = &[
    advice(
        "SPDY",
        &["spdy_*"],
        "Remove the line, and use \"http2 on\".",
    ),
    advice(
        "TLS of a whole server",
        &["ssl"],
        "Give the addresses of the server the ssl parameter of listen.",
    ),
    advice(
        "mail proxying",
        &[
            "mail",
            "imap_*",
            "pop3_*",
            "smtp_*",
            "auth_http*",
            "starttls",
        ],
        "Leave the mail block to nginx in a process of its own.",
    ),
    advice(
        "XSLT",
        &["xslt_*", "xml_*"],
        "Let the application send the final text, or leave these locations to nginx on another \
         port.",
    ),
    advice(
        "image and media filters",
        &["image_filter", "hls*", "f4f*"],
        "Prepare the files beforehand, or leave these locations to nginx on another port.",
    ),
    advice(
        "GeoIP",
        &["geoip_*"],
        "Use geoip2 with a MaxMind DB file (mmdb), or write the networks into a geo block.",
    ),
    advice(
        "njs and Perl",
        &["js_*", "perl", "perl_*"],
        "Express it with map, set, if and rewrite, or move it to the application.",
    ),
    advice(
        "profiling",
        &["google_perftools_profiles"],
        "Remove the line; metrics; shows what the server does.",
    ),
    advice(
        "NGINX Plus: sign-in",
        &["auth_jwt*", "auth_oidc", "auth_require"],
        "Let the application or a sign-in proxy check the token.",
    ),
    advice(
        "NGINX Plus: live activity and interface",
        &[
            "api",
            "mgmt",
            "status_zone",
            "status_format",
            "upstream_conf",
            "session_log*",
        ],
        "Use status; and metrics;, and turnpike upstream to change servers at run time.",
    ),
    advice(
        "NGINX Plus: shared data",
        &["keyval*", "zone_sync*", "ntlm", "mqtt*"],
        "Use map with a file that is included, and reload when it changes.",
    ),
    advice(
        "events of other systems",
        &[
            "acceptex_read",
            "degradation",
            "degrade",
            "devpoll_*",
            "eventport_events",
            "iocp_threads",
            "kqueue_*",
            "post_acceptex",
        ],
        "Remove the line: they are not for Linux.",
    ),
];

/// Modules of others that are often met.
pub(crate) static OTHERS: &[Advice] = &[
    advice(
        "brotli and zstd",
        &["unbrotli*", "zstd_dict_file"],
        "Remove the line: responses are compressed without it.",
    ),
    advice(
        "OpenResty (Lua)",
        &[
            "*_by_lua",
            "*_by_lua_block",
            "*_by_lua_file",
            "lua_*",
            "init_by_lua*",
        ],
        "Express it with map, set, if and rewrite, or leave these locations to OpenResty on \
         another port.",
    ),
    advice(
        "echo",
        &[
            "echo_subrequest*",
            "echo_foreach_split",
            "echo_end",
            "echo_abort_parent",
            "echo_blocking_sleep",
            "echo_reset_timer",
        ],
        "Use echo_location and echo_sleep, or remove the line.",
    ),
    advice(
        "set_misc",
        &["set_consistent_hashed_upstream"],
        "The module no longer has it. Use set_hashed_upstream, or hash with consistent in \
         upstream.",
    ),
    advice(
        "Angie: live activity",
        &[
            "api_config_files",
            "prometheus",
            "prometheus_template",
            "response_time_factor",
        ],
        "Use metrics; and status;, and metric_zone for counts of your own.",
    ),
    advice(
        "Angie: tags of log lines",
        &["error_log_user_tag"],
        "Use the filter parameter of error_log with a part of the line.",
    ),
    advice(
        "Angie: certificates",
        &["acme", "acme_client", "acme_client_path", "acme_hook"],
        "Use acme_issuer and acme_certificate.",
    ),
    advice(
        "Angie: servers from containers",
        &["docker_*"],
        "Use turnpike upstream, or a name that is looked up: server with resolve.",
    ),
    advice(
        "Angie: names over HTTPS",
        &["doh_*"],
        "Use resolver with a name server of your own.",
    ),
    advice(
        "traffic status",
        &["vhost_traffic_status*", "check_status", "req_status*"],
        "Use status; and metrics;.",
    ),
    advice(
        "upstream checks",
        &["check", "check_*"],
        "Use health_check.",
    ),
    advice(
        "fancy index",
        &["fancyindex*"],
        "Remove the line: the listing is made without it.",
    ),
    advice(
        "ModSecurity and other firewalls",
        &[
            "modsecurity*",
            "naxsi*",
            "SecRules*",
            "MainRule",
            "BasicRule",
        ],
        "Put the firewall before or behind this server as a proxy.",
    ),
    advice(
        "PageSpeed",
        &["pagespeed*"],
        "Remove the line, and optimise files when they are built.",
    ),
    advice(
        "substitutions",
        &["subs_filter*", "replace_filter*"],
        "Use sub_filter, which replaces fixed texts.",
    ),
    advice(
        "cookie flags",
        &["set_cookie_flag", "cookie_flag"],
        "Use proxy_cookie_flags.",
    ),
    advice(
        "PAM, LDAP and digest sign-in",
        &["auth_pam*", "auth_ldap*", "auth_digest*", "ldap_server"],
        "Use auth_basic, or let the application sign people in.",
    ),
    advice(
        "Passenger",
        &["passenger*", "rails_*", "rack_*"],
        "Run the application with its own HTTP server, and use proxy_pass.",
    ),
    advice(
        "upload progress",
        &["track_uploads", "report_uploads", "upload_progress_*"],
        "Let the page measure its own upload: XMLHttpRequest reports its progress.",
    ),
    advice(
        "push and live streaming",
        &["nchan*", "push_stream*", "rtmp*", "upload_*"],
        "Leave these locations to nginx with that module, on another port.",
    ),
];

#[cfg(test)]
mod tests {
    //! The rows as tables: each is a sentence, and each is about something that is refused.

    use super::*;
    use crate::check::{has_effect, only_off};
    use crate::families;

    #[test]
    fn advice_is_found_by_name() {
        let cases: &[(&str, Option<&str>)] = &[
            ("spdy_chunk_size", Some("SPDY")),
            ("listen quic", None),
            ("listen ssl", None),
            ("location $is_mobile", None),
            ("location /", None),
            ("track_uploads", Some("upload progress")),
            ("upload_pass", Some("push and live streaming")),
            ("content_by_lua_block", Some("OpenResty (Lua)")),
            ("zstd_dict_file", Some("brotli and zstd")),
            ("frobnicate", None),
        ];
        for (name, module) in cases {
            let found = find(name).map(|advice| advice.module);
            assert_eq!(found, *module, "{name}");
        }
    }

    #[test]
    fn advice_is_a_sentence() {
        for row in NGINX.iter().chain(OTHERS) {
            assert!(row.instead.ends_with('.'), "{}", row.module);
        }
    }

    #[test]
    fn every_row_is_about_what_is_refused() {
        let registry = families::registry();
        let rows = || registry.rows().map(|(_, row)| row);
        for row in NGINX {
            for pattern in row.names.iter().filter(|name| !name.contains(' ')) {
                let mut refused = families::not_yet().iter();
                let is_refused = refused.any(|name| matches(pattern, name))
                    || rows().any(|row| only_off(row) && matches(pattern, row.name));
                assert!(is_refused, "remove {pattern} of \"{}\"", row.module);
            }
        }
        for row in OTHERS {
            for name in row.names.iter().filter(|name| !name.contains('*')) {
                let works = rows().any(|row| row.name == *name && has_effect(row));
                assert!(!works, "remove {name} of \"{}\"", row.module);
            }
        }
    }
}

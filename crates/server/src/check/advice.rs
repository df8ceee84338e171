//! What to do instead of a directive that does not work here: one row for each module of nginx's
//! that is missing, and for each other module that is often met.
//!
//! A row is found only for names that were refused, so it need not go when its directives come.

/// One module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    /// The module as people call it.
    pub(crate) module: &'static str,
    /// The names of the directives; a star stands for any letters.
    names: &'static [&'static str],
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
        "TLS to clients",
        &["ssl", "ssl_*"],
        "Where you need it, let nginx or HAProxy accept TLS and pass the connections on with the \
         PROXY protocol, to \"listen ... proxy_protocol\".",
    ),
    advice(
        "SPDY",
        &["spdy_*"],
        "Remove the line, and use \"http2 on\".",
    ),
    advice(
        "HTTP/3",
        &["listen quic", "http3", "http3_*", "quic_*"],
        "Remove the line: clients then use TCP.",
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
        "subrequests",
        &["auth_request*", "mirror*", "post_action", "slice"],
        "Let the application check or copy the request, or leave these locations to nginx on \
         another port.",
    ),
    advice(
        "image and media filters",
        &["image_filter*", "hls*", "f4f*"],
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
        &["keyval*", "zone_sync*", "state", "ntlm", "mqtt*"],
        "Use map with a file that is included, and reload when it changes.",
    ),
];

/// Modules of others that are often met.
pub(crate) static OTHERS: &[Advice] = &[
    advice(
        "headers-more",
        &["more_*"],
        "Use add_header NAME VALUE always, proxy_hide_header and proxy_set_header.",
    ),
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
    advice("echo", &["echo", "echo_*"], "Use return CODE TEXT."),
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
        "Remove the line: the listing has autoindex's form.",
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
        "Let the application send the final text.",
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

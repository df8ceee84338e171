//! Tenants who try to get out of their routes: each is refused with the reason, and the route of
//! another tenant works on.

use turnpike_ingress::render;

use crate::bed::{Backend, Setting, ingress, ingress_in, service};

/// Snippets for a location, and words of the refusal.
pub(crate) const LOCATION: &[(&str, &str)] = &[
    ("}", "unexpected \"}\""),
    ("} location /x { return 200;", "unexpected \"}\""),
    ("return 200 \"}\" }", "in snippet:1"),
    ("location /x { return 200; }", "\"location\" is not allowed"),
    ("include /etc/passwd;", "include"),
    ("include *.conf;", "include"),
    (
        "load_module modules/x.so;",
        "\"load_module\" is not allowed",
    ),
    ("root /;", "\"root\" is not allowed"),
    ("alias /etc/;", "\"alias\" is not allowed"),
    (
        "try_files /etc/passwd =404;",
        "\"try_files\" is not allowed",
    ),
    ("autoindex on;", "\"autoindex\" is not allowed"),
    ("index /etc/passwd;", "\"index\" is not allowed"),
    (
        "auth_basic_user_file /etc/shadow;",
        "\"auth_basic_user_file\" is not allowed",
    ),
    ("ssl_certificate /x;", "\"ssl_certificate\" is not allowed"),
    (
        "proxy_ssl_certificate_key /x;",
        "\"proxy_ssl_certificate_key\" is not allowed",
    ),
    (
        "proxy_ssl_trusted_certificate /x;",
        "\"proxy_ssl_trusted_certificate\" is not allowed",
    ),
    ("access_log /tmp/x;", "\"access_log\" may only be off"),
    (
        "access_log syslog:server=10.0.0.1;",
        "\"access_log\" may only be off",
    ),
    ("error_log /tmp/x;", "\"error_log\" is not allowed"),
    ("proxy_store /tmp/x;", "\"proxy_store\" is not allowed"),
    (
        "proxy_temp_path /tmp/x;",
        "\"proxy_temp_path\" is not allowed",
    ),
    ("proxy_cache auth_cache;", "\"proxy_cache\" is not allowed"),
    (
        "client_body_in_file_only on;",
        "\"client_body_in_file_only\" is not allowed",
    ),
    ("js_content main;", "\"js_content\" is not allowed"),
    (
        "content_by_lua_block { x; }",
        "\"content_by_lua_block\" is not allowed",
    ),
    ("perl x;", "\"perl\" is not allowed"),
    ("stub_status;", "\"stub_status\" is not allowed"),
    ("status;", "\"status\" is not allowed"),
    ("metrics;", "\"metrics\" is not allowed"),
    ("dav_methods PUT;", "\"dav_methods\" is not allowed"),
    ("resolver 10.0.0.1;", "\"resolver\" is not allowed"),
    (
        "proxy_pass http://unix:/run/x.sock;",
        "a pass must name an address",
    ),
    ("proxy_pass http://127.0.0.1:10246;", "the pod itself"),
    ("proxy_pass http://[::1]:80;", "the pod itself"),
    ("proxy_pass http://[::ffff:127.0.0.1]:80;", "the pod itself"),
    ("proxy_pass http://169.254.169.254/;", "the pod itself"),
    ("proxy_pass http://0.0.0.0:80;", "the pod itself"),
    (
        "proxy_pass http://localhost;",
        "a pass must name an address",
    ),
    (
        "proxy_pass http://2130706433/;",
        "a pass must name an address",
    ),
    (
        "proxy_pass http://default_one_80;",
        "a pass must name an address",
    ),
    (
        "proxy_pass http://$arg_x;",
        "a pass to a variable is not allowed",
    ),
    ("grpc_pass grpc://127.0.0.1:1;", "the pod itself"),
    ("fastcgi_pass 127.0.0.1:9000;", "is not allowed"),
    (
        "set $proxy_upstream_name other-secret-80;",
        "the variable $proxy_upstream_name belongs",
    ),
    ("set ${namespace} other;", "the variable"),
    (
        "set $target http://127.0.0.1;",
        "the variable $target belongs",
    ),
    (
        "set $ingress_own_group_1 other_secret_80;",
        "the variable $ingress_own_group_1 belongs",
    ),
    (
        "auth_request_set $target $upstream_http_x;",
        "the variable $target belongs",
    ),
    (
        "set_unescape_uri $target $arg_x;",
        "the variable $target belongs",
    ),
    (
        "if ($uri ~ \"(?<target>.*)\") { return 200; }",
        "the variable $target belongs",
    ),
    (
        "rewrite \"(?<ingress_own_x>.*)\" /;",
        "the variable $ingress_own_x belongs",
    ),
    ("if ($x) { root /; }", "\"root\" is not allowed"),
    (
        "limit_except GET { proxy_pass http://127.0.0.1; }",
        "the pod itself",
    ),
    ("server { listen 99; }", "\"server\" is not allowed"),
    (
        "upstream x { server 127.0.0.1; }",
        "\"upstream\" is not allowed",
    ),
    ("map $x $y { default 1; }", "\"map\" is not allowed"),
    ("http { }", "\"http\" is not allowed"),
    ("stream { }", "\"stream\" is not allowed"),
    ("types { text/html x; }", "\"types\" is not allowed"),
    ("\"set\" $x 1;", "is not allowed"),
    ("add_header X \"unclosed;", "in snippet:1"),
    ("add_header X y", "in snippet:1"),
    ("add_header X y # };", "in snippet:1"),
];

/// Snippets for a server, and words of the refusal.
pub(crate) const SERVER: &[(&str, &str)] = &[
    ("listen 99;", "\"listen\" is not allowed"),
    ("server_name other.test;", "\"server_name\" is not allowed"),
    ("} server { listen 99; }", "unexpected \"}\""),
    ("root /;", "\"root\" is not allowed"),
    ("location /x { alias /etc/; }", "\"alias\" is not allowed"),
    (
        "location /x { location /y { return 200; } }",
        "\"location\" is not allowed",
    ),
    (
        "ssl_client_certificate /x;",
        "\"ssl_client_certificate\" is not allowed",
    ),
    ("error_log stderr debug;", "\"error_log\" is not allowed"),
    (
        "proxy_pass http://10.0.0.1;",
        "\"proxy_pass\" is not allowed",
    ),
];

/// Snippets for `stream`, and words of the refusal.
const STREAM: &[(&str, &str)] = &[
    (
        "server { listen 8000; proxy_pass 127.0.0.1:80; }",
        "\"listen\" needs a port",
    ),
    (
        "server { listen 20099; proxy_pass 127.0.0.1:80; }",
        "the pod itself",
    ),
    (
        "server { listen 0.0.0.0:20099; proxy_pass 10.0.0.1:80; }",
        "\"listen\" needs a port",
    ),
    (
        "server { listen unix:/x; proxy_pass 10.0.0.1:80; }",
        "\"listen\" needs a port",
    ),
    (
        "server { listen 20099 so_keepalive=on; }",
        "\"listen\" needs a port",
    ),
    (
        "upstream x { server 10.0.0.1:1; }",
        "\"upstream\" is not allowed",
    ),
    ("map $x $y { default 1; }", "\"map\" is not allowed"),
];

/// Annotations with bytes that mean something in a configuration, and words about them. None: the
/// value is a text as any other, and nothing of it takes effect.
pub(crate) const VALUES: &[(&str, Option<&str>)] = &[
    ("rewrite-target: '/x; } root /; {'", Some("is not a path")),
    ("upstream-vhost: 'a\"; root /; #'", None),
    (
        "upstream-vhost: \"a\\nroot /;\"",
        Some("has control characters"),
    ),
    ("auth-realm: 'x\"; root /;'", Some("is not a name")),
    ("proxy-body-size: '1m; root /'", Some("is not a size")),
    (
        "proxy-connect-timeout: '1; root /'",
        Some("is not a whole number"),
    ),
    ("auth-url: 'http://x/\"; root /; #'", Some("is not an URL")),
    (
        "auth-tls-match-cn: 'CN=x\") { root /; } #'",
        Some("is not a regular expression"),
    ),
    (
        "session-cookie-name: 'a; root /'\naffinity: cookie",
        Some("is not a name"),
    ),
    (
        "session-cookie-path: '/\"; root /'\naffinity: cookie",
        Some("is not a name"),
    ),
    (
        "cors-allow-methods: \"GET'; root /\"\nenable-cors: \"true\"",
        Some("is not a list of header"),
    ),
    ("upstream-hash-by: '\"; } server { listen 99; } #'", None),
    ("proxy-cookie-path: '/a /b; root /'", None),
    (
        "server-alias: 'x; root /'",
        Some("is not a list of host names"),
    ),
    ("limit-rps: '-1'", Some("is not a whole number")),
    ("limit-rps: '99999999999999'", Some("is not a whole number")),
    (
        "enable-modsecurity: \"true\"",
        Some("is refused: the engine has no ModSecurity"),
    ),
    ("mirror-target: 'no scheme'", Some("has no scheme")),
    (
        "permanent-redirect: \"http://x/\\r\\nSet-Cookie: y\"",
        Some("has control characters"),
    ),
];

/// Renders a good Ingress beside one with an annotation, and returns what was found about the
/// second one.
fn found(annotations: &str, port: u16) -> (String, String) {
    let manifests = service("default", "one", port)
        + &ingress_in("victim", "good", "good.test", "", "Prefix / one")
        + &service("victim", "one", port)
        + &ingress("bad", "bad.test", annotations, "Prefix / one");
    let mut setting = Setting::new(manifests)
        .key("allow-snippet-annotations", "true")
        .key("annotations-risk-level", "Critical");
    setting.options.stream_ports = vec![20099];
    let rendering = render(&setting.objects(), &setting.options).unwrap();
    let text: Vec<String> = rendering.findings.iter().map(ToString::to_string).collect();
    (text.join("\n"), rendering.configuration)
}

pub(crate) fn snippet(name: &str, text: &str) -> String {
    format!("{name}: |\n  {text}\n")
}

#[test]
fn snippets_cannot_escape() {
    let one = Backend::start("one");
    for (name, rows) in [
        ("configuration-snippet", LOCATION),
        ("server-snippet", SERVER),
        ("stream-snippet", STREAM),
    ] {
        for (text, words) in rows {
            let (findings, configuration) = found(&snippet(name, text), one.port);
            let is_named = findings.starts_with("Ingress default/bad: left out: ");
            assert!(is_named && findings.contains(words), "{text}\n{findings}");
            assert!(!configuration.contains("bad.test"), "{text}");
            assert!(configuration.contains("good.test"), "{text}");
        }
    }
}

#[test]
fn values_cannot_escape() {
    let one = Backend::start("one");
    for (annotations, words) in VALUES {
        let (findings, configuration) = found(annotations, one.port);
        match words {
            Some(words) => assert!(findings.contains(words), "{annotations}\n{findings}"),
            None => assert_eq!(findings, "", "{annotations}"),
        }
        let lines = configuration.lines().map(str::trim);
        let strange =
            lines.filter(|line| line.starts_with("root ") || line.starts_with("listen 99"));
        assert_eq!(strange.count(), 0, "{annotations}\n{configuration}");
        assert!(configuration.contains("good.test"), "{annotations}");
    }
}

#[test]
fn snippets_need_the_administrators_leave() {
    let one = Backend::start("one");
    let manifests = service("default", "one", one.port)
        + &ingress(
            "it",
            "it.test",
            &snippet("configuration-snippet", "return 418;"),
            "Prefix / one",
        );
    for (keys, findings) in [
        (&[][..], "snippets are switched off"),
        (
            &[("allow-snippet-annotations", "true")],
            "has the risk Critical",
        ),
        (
            &[
                ("allow-snippet-annotations", "true"),
                ("annotations-risk-level", "Critical"),
                ("annotation-value-word-blocklist", "load_module,418"),
            ],
            "has the word \"418\"",
        ),
    ] {
        let setting = keys
            .iter()
            .fold(Setting::new(manifests.clone()), |setting, (name, value)| {
                setting.key(name, value)
            });
        let rendering = setting.render();
        let text = rendering
            .findings
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(text.contains(findings), "{text}");
        assert!(!rendering.configuration.contains("418"));
    }
}

#[test]
fn a_host_of_two_namespaces_takes_no_server_snippet() {
    let one = Backend::start("one");
    let annotation = snippet("server-snippet", "location /shared { return 418; }");
    let manifests = service("default", "one", one.port)
        + &service("victim", "one", one.port)
        + &ingress_in("victim", "good", "shared.test", "", "Prefix /shared one")
        + &ingress("bad", "shared.test", &annotation, "Prefix / one");
    let bed = Setting::new(manifests)
        .key("allow-snippet-annotations", "true")
        .key("annotations-risk-level", "Critical")
        .start();
    bed.check("shared.test", "GET /shared", &["backend one"]);
    let text = bed
        .rendering
        .findings
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    assert!(
        text.contains("the host shared.test is not of this namespace alone"),
        "{text}"
    );
}

#[test]
fn a_stream_snippet_listens_on_allowed_ports() {
    let annotation = snippet(
        "stream-snippet",
        "server { listen 20099; proxy_pass 10.0.0.1:5432; }",
    );
    let (findings, configuration) = found(&annotation, 9);
    assert_eq!(findings, "");
    assert!(
        configuration.contains("listen 20099; proxy_pass 10.0.0.1:5432;"),
        "{configuration}"
    );
}

//! The keys of the ConfigMap: requests that show them.

use turnpike_ingress::{Effect, SETTINGS};
use turnpike_testkit::Peer;

use crate::bed::{Backend, Setting, assert_has, ingress, service};

/// Keys with their values.
type Keys = &'static [(&'static str, &'static str)];

/// Keys, a request to it.test, and what the response has.
type Row = (Keys, &'static str, &'static [&'static str]);

/// Keys that a request shows. A start is not cheap, so keys that do not meet share a row.
const REQUESTS: &[Row] = &[
    (
        &[
            ("add-headers", "ingress/fields"),
            ("proxy-set-headers", "ingress/fields"),
            ("hide-headers", "X-Secret"),
            ("allow-backend-server-header", "true"),
            ("server-tokens", "true"),
            ("proxy-add-original-uri-header", "true"),
            ("http-snippet", "map $uri $mapped { default yes; }"),
            ("server-snippet", "add_header X-Server $mapped always;"),
            (
                "location-snippet",
                "more_set_headers \"X-Location: $service_name\";",
            ),
            ("main-snippet", "env SOME;"),
            ("stream-snippet", "# nothing"),
        ],
        "GET /a?field=X-Secret:1",
        &[
            "\nX-Field: of all",
            "X-Server: yes",
            "X-Location: one",
            "X-Original-URI: /a",
            "Server: one",
            "!X-Secret: 1",
        ],
    ),
    (
        &[
            ("use-forwarded-headers", "true"),
            ("compute-full-forwarded-for", "true"),
            ("forwarded-for-header", "X-Forwarded-For"),
            ("forwarded-host-header", "X-Forwarded-Host"),
            ("proxy-real-ip-cidr", "127.0.0.0/8"),
            ("enable-real-ip", "true"),
        ],
        "GET /\nX-Forwarded-For: 192.0.2.9\nX-Forwarded-Host: front.test, b\n\
         X-Forwarded-Proto: https\nX-Forwarded-Port: 8443",
        &[
            "X-Real-IP: 192.0.2.9",
            "X-Forwarded-For: 192.0.2.9, 127.0.0.1",
            "X-Forwarded-Host: front.test\r",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Port: 8443",
            "X-Original-Forwarded-For: 192.0.2.9",
            "X-Original-Forwarded-Host: front.test, b",
        ],
    ),
    (
        &[],
        "GET /\nX-Forwarded-For: 192.0.2.9\nX-Forwarded-Proto: https",
        &[
            "X-Real-IP: 127.0.0.1",
            "X-Forwarded-Proto: http\r",
            "X-Forwarded-For: 127.0.0.1",
        ],
    ),
    (
        &[
            ("use-gzip", "true"),
            ("gzip-level", "2"),
            ("gzip-min-length", "1"),
            ("gzip-types", "text/x-said"),
            ("gzip-disable", "ancient"),
        ],
        "GET /?field=Content-Type:text/x-said\nAccept-Encoding: gzip",
        &["Content-Encoding: gzip", "Vary: Accept-Encoding"],
    ),
    (
        &[
            ("enable-brotli", "true"),
            ("brotli-level", "2"),
            ("brotli-min-length", "1"),
            ("brotli-types", "text/x-said"),
        ],
        "GET /?field=Content-Type:text/x-said\nAccept-Encoding: br",
        &["Content-Encoding: br"],
    ),
    (&[("block-cidrs", "127.0.0.0/8")], "GET /", &["403 "]),
    (
        &[
            ("block-user-agents", "~*bad, worse"),
            ("block-referers", "~evil"),
        ],
        "GET /\nUser-Agent: BAD one",
        &["403 "],
    ),
    (
        &[("block-referers", "~evil")],
        "GET /\nReferer: http://evil.test/",
        &["403 "],
    ),
    (
        &[("denylist-source-range", "127.0.0.1")],
        "GET /",
        &["403 "],
    ),
    (
        &[("whitelist-source-range", "10.0.0.0/8")],
        "GET /",
        &["403 "],
    ),
    (
        &[
            ("force-ssl-redirect", "true"),
            ("http-redirect-code", "301"),
        ],
        "GET /",
        &["301 ", "Location: https://it.test"],
    ),
    (
        &[
            ("force-ssl-redirect", "true"),
            ("no-tls-redirect-locations", "/"),
            ("ssl-redirect", "false"),
        ],
        "GET /",
        &["backend one"],
    ),
    (
        &[
            ("force-ssl-redirect", "true"),
            ("preserve-trailing-slash", "true"),
            ("use-port-in-redirects", "true"),
        ],
        "GET /a/",
        &["Location: https://it.test:", "/a/\r"],
    ),
    (
        &[("custom-http-errors", "404")],
        "GET /?status=404",
        &["404 Not Found", "!backend one"],
    ),
    (
        &[
            ("custom-http-errors", "404"),
            ("disable-proxy-intercept-errors", "true"),
        ],
        "GET /?status=404",
        &["404 ", "backend one"],
    ),
    (
        &[
            ("global-auth-url", "http://127.0.0.1:AUTH/?status=401"),
            ("global-auth-method", "GET"),
            ("global-auth-signin", "http://sign.in"),
            ("global-auth-signin-redirect-param", "back"),
            ("global-auth-cache-key", "$remote_user"),
            ("global-auth-cache-duration", "401 1m"),
            ("global-auth-response-headers", "X-User"),
            ("global-auth-request-redirect", "/here"),
            ("global-auth-snippet", "proxy_set_header X-Global yes;"),
            ("global-auth-always-set-cookie", "true"),
            ("enable-auth-access-log", "true"),
        ],
        "GET /",
        &["302 ", "Location: http://sign.in?back=http://it.test%2F"],
    ),
    (
        &[
            ("global-auth-url", "http://127.0.0.1:AUTH/?status=401"),
            ("no-auth-locations", "/"),
        ],
        "GET /",
        &["backend one"],
    ),
    (
        &[("proxy-body-size", "2"), ("client-body-buffer-size", "1k")],
        "POST /\nContent-Length: 3",
        &["413 "],
    ),
    (&[("service-upstream", "true")], "GET /", &["!backend one"]),
    (
        &[("proxy-http-version", "1.0")],
        "GET /",
        &["GET / HTTP/1.0"],
    ),
    (
        &[
            ("proxy-redirect-from", "http://a.test/"),
            ("proxy-redirect-to", "http://b.test/"),
        ],
        "GET /?status=302&field=Location:http://a.test/x",
        &["Location: http://b.test/x"],
    ),
    (
        &[
            ("proxy-cookie-domain", "a.test b.test"),
            ("proxy-cookie-path", "/a /b"),
        ],
        "GET /?field=Set-Cookie:x=1;%20Domain=a.test;%20Path=/a",
        &["Set-Cookie: x=1; Domain=b.test; Path=/b"],
    ),
    (
        &[("enable-underscores-in-headers", "true")],
        "GET /\nunder_score: 1",
        &["under_score: 1"],
    ),
    (
        &[("ignore-invalid-headers", "true")],
        "GET /\nunder_score: 1",
        &["!under_score: 1"],
    ),
    (
        &[("generate-request-id", "false")],
        "GET /",
        &["!X-Request-ID"],
    ),
    (&[], "GET /\nX-Request-ID: mine", &["X-Request-ID: mine"]),
    (
        &[
            ("client-header-buffer-size", "1k"),
            ("large-client-header-buffers", "1 1k"),
        ],
        "GET /LONG",
        &["414 "],
    ),
    (
        &[
            ("relative-redirects", "true"),
            ("server-snippet", "location = /r { return 302 /to; }"),
        ],
        "GET /r",
        &["Location: /to"],
    ),
    (
        &[
            ("default-type", "text/x-own"),
            ("server-snippet", "location = /r { return 200; }"),
        ],
        "GET /r",
        &["Content-Type: text/x-own"],
    ),
    (
        &[
            ("limit-req-status-code", "429"),
            ("limit-conn-status-code", "430"),
            ("limit-conn-zone-variable", "$uri"),
            ("http-snippet", "limit_req_zone $uri zone=z:1m rate=1r/m;"),
            ("location-snippet", "limit_req zone=z;"),
        ],
        "TWICE GET /",
        &["429 "],
    ),
    (
        &[
            ("upstream-hash-by", "$request_uri"),
            ("load-balance", "least_conn"),
        ],
        "GET /",
        &["backend one"],
    ),
    (
        &[("hsts", "false")],
        "GET /",
        &["backend one", "!Strict-Transport"],
    ),
];

/// Keys that shape what no single request shows: each text must be in the configuration, and the
/// server must take it.
const TEXTS: &[(&str, &str, &str)] = &[
    (
        "http-access-log-path",
        "/dev/null",
        "access_log \"/dev/null\" upstreaminfo",
    ),
    (
        "access-log-params",
        "buffer=16k flush=1s",
        "upstreaminfo buffer=16k flush=1s if=$loggable",
    ),
    ("client-header-timeout", "7", "client_header_timeout 7s"),
    ("client-body-timeout", "7", "client_body_timeout 7s"),
    ("disable-access-log", "true", "access_log off"),
    ("disable-http-access-log", "true", "access_log off"),
    ("disable-ipv6-dns", "true", "ipv6=off"),
    ("enable-ocsp", "true", "ssl_stapling on"),
    (
        "retry-non-idempotent",
        "true",
        "proxy_next_upstream error timeout non_idempotent",
    ),
    ("error-log-level", "warn", "errors.log\" warn"),
    ("http2-max-field-size", "4k", "http2_max_field_size 4k"),
    ("http2-max-header-size", "8k", "http2_max_header_size 8k"),
    (
        "http2-max-concurrent-streams",
        "9",
        "http2_max_concurrent_streams 9",
    ),
    (
        "hsts-include-subdomains",
        "false",
        "https \"max-age=31536000\"",
    ),
    (
        "hsts-max-age",
        "5",
        "https \"max-age=5; includeSubDomains\"",
    ),
    ("hsts-preload", "true", "includeSubDomains; preload"),
    ("keep-alive", "9", "keepalive_timeout 9s"),
    ("keep-alive-requests", "9", "keepalive_requests 9"),
    ("log-format-escape-none", "true", "escape=none"),
    ("log-format-escape-json", "true", "escape=json"),
    (
        "log-format-upstream",
        "$namespace $req_id",
        "log_format upstreaminfo \"$namespace $req_id\"",
    ),
    ("enable-multi-accept", "false", "multi_accept off"),
    ("max-worker-connections", "99", "worker_connections 99"),
    ("max-worker-open-files", "99", "worker_rlimit_nofile 99"),
    ("map-hash-bucket-size", "128", "map_hash_bucket_size 128"),
    ("nginx-status-ipv4-whitelist", "10.0.0.9", "allow 10.0.0.9"),
    ("nginx-status-ipv6-whitelist", "fd00::9", "allow fd00::9"),
    (
        "server-name-hash-max-size",
        "2048",
        "server_names_hash_max_size 2048",
    ),
    (
        "server-name-hash-bucket-size",
        "256",
        "server_names_hash_bucket_size 256",
    ),
    (
        "proxy-headers-hash-max-size",
        "1024",
        "proxy_headers_hash_max_size 1024",
    ),
    (
        "proxy-headers-hash-bucket-size",
        "128",
        "proxy_headers_hash_bucket_size 128",
    ),
    (
        "ssl-ciphers",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256",
    ),
    ("ssl-ecdh-curve", "X25519", "ssl_ecdh_curve X25519"),
    ("ssl-protocols", "TLSv1.3", "ssl_protocols TLSv1.3"),
    ("ssl-session-cache", "false", "!ssl_session_cache"),
    ("ssl-session-cache-size", "1m", "shared:SSL:1m"),
    ("ssl-session-tickets", "true", "ssl_session_tickets on"),
    ("ssl-session-timeout", "9m", "ssl_session_timeout 9m"),
    ("ssl-buffer-size", "8k", "ssl_buffer_size 8k"),
    ("ssl-early-data", "true", "ssl_early_data on"),
    ("ssl-reject-handshake", "true", "ssl_reject_handshake on"),
    ("enable-aio-write", "false", "aio_write off"),
    ("use-http2", "false", "!http2 on"),
    ("worker-processes", "2", "worker_processes 2"),
    ("worker-cpu-affinity", "auto", "worker_cpu_affinity auto"),
    (
        "worker-shutdown-timeout",
        "9s",
        "worker_shutdown_timeout 9s",
    ),
    (
        "variables-hash-bucket-size",
        "128",
        "variables_hash_bucket_size 128",
    ),
    (
        "variables-hash-max-size",
        "4096",
        "variables_hash_max_size 4096",
    ),
    ("upstream-keepalive-connections", "9", "keepalive 9"),
    ("upstream-keepalive-time", "9m", "keepalive_time 9m"),
    ("upstream-keepalive-timeout", "9", "keepalive_timeout 9s"),
    ("upstream-keepalive-requests", "9", "keepalive_requests 9"),
    ("proxy-connect-timeout", "9", "proxy_connect_timeout 9s"),
    ("proxy-read-timeout", "9", "grpc_read_timeout 9s"),
    ("proxy-send-timeout", "9", "proxy_send_timeout 9s"),
    ("proxy-buffers-number", "9", "proxy_buffers 9 4k"),
    ("proxy-buffer-size", "8k", "proxy_buffers 4 8k"),
    (
        "proxy-busy-buffers-size",
        "8k",
        "proxy_busy_buffers_size 8k",
    ),
    (
        "proxy-next-upstream",
        "http_502",
        "proxy_next_upstream http_502",
    ),
    (
        "proxy-next-upstream-timeout",
        "9",
        "proxy_next_upstream_timeout 9",
    ),
    (
        "proxy-next-upstream-tries",
        "9",
        "proxy_next_upstream_tries 9",
    ),
    (
        "proxy-request-buffering",
        "off",
        "proxy_request_buffering off",
    ),
    ("proxy-buffering", "on", "proxy_buffering on"),
    (
        "proxy-max-temp-file-size",
        "9m",
        "proxy_max_temp_file_size 9m",
    ),
    ("skip-access-log-urls", "/quiet", "\"/quiet\" 0"),
    ("limit-rate", "9", "limit_rate 9k"),
    ("limit-rate-after", "9", "limit_rate_after 9k"),
    ("grpc-buffer-size-kb", "8", "grpc_buffer_size 8k"),
    (
        "debug-connections",
        "10.0.0.9",
        "debug_connection \"10.0.0.9\"",
    ),
    (
        "enable-access-log-for-default-backend",
        "true",
        "listen 127.0.0.1:20080",
    ),
    ("bind-address", "127.0.0.2", "listen 127.0.0.2:20080"),
    (
        "use-proxy-protocol",
        "true",
        "listen 127.0.0.1:20080 proxy_protocol",
    ),
    (
        "use-proxy-protocol",
        "true",
        "real_ip_header proxy_protocol",
    ),
];

/// As [`TEXTS`], for keys that need others.
const TOGETHER: &[(Keys, &[&str])] = &[
    (
        &[("bind-address", ""), ("disable-ipv6", "true")],
        &["listen 20080", "!listen [::]:20080"],
    ),
    (
        &[
            ("enable-syslog", "true"),
            ("syslog-host", "127.0.0.1"),
            ("syslog-port", "5140"),
        ],
        &[
            "access_log syslog:server=127.0.0.1:5140 upstreaminfo",
            "error_log syslog:server=127.0.0.1:5140 notice",
        ],
    ),
    (
        &[
            ("use-forwarded-headers", "true"),
            ("use-proxy-protocol", "true"),
            ("forwarded-for-proxy-protocol-header", "X-Of-Both"),
        ],
        &[
            "real_ip_header X-Of-Both",
            "more_set_input_headers \"X-Of-Both: $ingress_own_forwarded\"",
        ],
    ),
    (
        &[(
            "ssl-session-ticket-key",
            "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3",
        )],
        &["ssl_session_ticket_key"],
    ),
    (
        &[
            ("enable-opentelemetry", "true"),
            ("opentelemetry-trust-incoming-span", "false"),
            ("opentelemetry-operation-name", "named"),
            ("otlp-collector-host", "127.0.0.1"),
            ("otlp-collector-port", "4318"),
            ("otel-max-queuesize", "40"),
            ("otel-schedule-delay-millis", "70"),
            ("otel-max-export-batch-size", "10"),
            ("otel-service-name", "us"),
            ("otel-sampler", "TraceIdRatioBased"),
            ("otel-sampler-parent-based", "false"),
            ("otel-sampler-ratio", "0.25"),
        ],
        &[
            "otel_trace $ingress_own_sampled",
            "otel_trace_context inject",
            "otel_span_name \"named\"",
            "endpoint 127.0.0.1:4318",
            "batch_count 4",
            "interval 70ms",
            "batch_size 10",
            "otel_service_name \"us\"",
            "25.00% on",
        ],
    ),
    (
        &[
            (
                "stream-snippet",
                "server { listen 127.0.0.1:20099; return x; }",
            ),
            ("disable-stream-access-log", "true"),
            ("proxy-protocol-header-timeout", "3s"),
        ],
        &["proxy_protocol_timeout 3s", "listen 127.0.0.1:20099"],
    ),
];

fn manifests() -> (String, [Backend; 2]) {
    let backends = [Backend::start("one"), Backend::start("auth")];
    let text = service("default", "one", backends[0].port)
        + "---\nkind: ConfigMap\nmetadata: {name: fields, namespace: ingress}\n\
           data: {X-Field: of all}\n"
        + &ingress("it", "it.test", "", "Prefix / one");
    (text, backends)
}

#[test]
fn keys_work_as_documented() {
    let (manifests, [_one, auth]) = manifests();
    for (keys, request, expected) in REQUESTS {
        let setting =
            keys.iter()
                .fold(Setting::new(manifests.clone()), |setting, (name, value)| {
                    setting.key(name, &value.replace("AUTH", &auth.port.to_string()))
                });
        let bed = setting.start();
        let request = request.replace("LONG", &"x".repeat(2000));
        let what = format!("{keys:?}: {request:.80}");
        let request = match request.strip_prefix("TWICE ") {
            Some(request) => {
                bed.ask("it.test", request);
                request.to_owned()
            }
            None => request,
        };
        let came = bed.ask("it.test", &request);
        assert_has(&what, &came, expected, &bed.rendering);
        assert!(
            bed.rendering.findings.is_empty(),
            "{what}: {:?}",
            bed.rendering.findings
        );
    }
}

#[test]
fn keys_are_written_and_taken_by_the_server() {
    let (manifests, _backends) = manifests();
    for (name, value, expected) in TEXTS {
        let mut setting = Setting::new(manifests.clone()).key(name, value);
        setting.options.resolvers = vec!["127.0.0.1".to_owned()];
        let rendering = setting.render();
        assert_has(name, &rendering.configuration, &[expected], &rendering);
    }
    for (keys, expected) in TOGETHER {
        let setting = keys
            .iter()
            .fold(Setting::new(manifests.clone()), |setting, (name, value)| {
                setting.key(name, value)
            });
        let rendering = setting.render();
        assert_has(
            &format!("{keys:?}"),
            &rendering.configuration,
            expected,
            &rendering,
        );
        assert!(
            rendering.findings.is_empty(),
            "{keys:?}: {:?}",
            rendering.findings
        );
    }
}

#[test]
fn resources_of_other_namespaces_need_leave() {
    let (manifests, _backends) = manifests();
    let manifests = manifests
        + "---\nkind: Secret\nmetadata: {name: users, namespace: other}\n\
           stringData: {auth: \"ada:{PLAIN}secret\"}\n"
        + &ingress(
            "far",
            "far.test",
            "auth-secret: other/users",
            "Prefix / one",
        );
    for (allows, expected) in [("false", "503 "), ("true", "401 ")] {
        let setting = Setting::new(manifests.clone());
        let bed = setting
            .key("allow-cross-namespace-resources", allows)
            .start();
        bed.check("far.test", "GET /", &[expected]);
    }
}

#[test]
fn tcp_and_udp_services_are_relayed() {
    let one = Backend::start("one");
    let manifests = service("default", "one", one.port)
        + "---\nkind: ConfigMap\nmetadata: {name: tcp, namespace: ingress}\n\
           data: {\"20442\": \"default/one:80\", \"1\": nonsense, \"20080\": \"default/one:80\"}\n\
           ---\nkind: ConfigMap\nmetadata: {name: udp, namespace: ingress}\n\
           data: {\"20098\": \"default/one:80\"}\n";
    let mut setting = Setting::new(manifests)
        .key("stream-access-log-path", "/dev/null")
        .key("log-format-stream", "$remote_addr")
        .key("proxy-stream-timeout", "9s")
        .key("proxy-stream-next-upstream", "false")
        .key("proxy-stream-next-upstream-timeout", "9s")
        .key("proxy-stream-next-upstream-tries", "9");
    setting = setting.key("proxy-stream-responses", "2");
    setting.options.tcp_services = Some("ingress/tcp".to_owned());
    setting.options.udp_services = Some("ingress/udp".to_owned());
    let bed = setting.start();
    let configuration = &bed.rendering.configuration;
    assert!(
        configuration.contains("listen 127.0.0.1:20098 udp;"),
        "{configuration}"
    );
    assert!(
        configuration.contains("proxy_responses 2;"),
        "{configuration}"
    );
    let mut peer = Peer::connect(bed.server.port_named("passthrough"));
    peer.send("GET /direct HTTP/1.1\r\n\r\n");
    assert!(peer.response().text().contains("GET /direct HTTP/1.1"));
    let texts: Vec<String> = bed
        .rendering
        .findings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("port 20080 is the controller's own"))
    );
    assert!(
        texts
            .iter()
            .any(|text| text.contains("1: \"nonsense\" is not PORT")),
        "{texts:?}"
    );
}

#[test]
fn every_key_that_works_is_shown() {
    let sources = [
        include_str!("settings.rs"),
        include_str!("annotations.rs"),
        include_str!("bed.rs"),
        include_str!("hostile.rs"),
        include_str!("paths.rs"),
    ];
    let mut text: String = sources.concat();
    text.retain(|letter| !letter.is_whitespace());
    for row in SETTINGS {
        let works = matches!(row.effect, Effect::Works | Effect::Differs(_));
        let is_shown = text.contains(&format!("(\"{}\",", row.name));
        assert_eq!(
            works,
            works && is_shown,
            "nothing shows the key {}",
            row.name
        );
    }
}

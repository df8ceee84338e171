//! Every annotation that works, with a request that shows it.

use turnpike_ingress::{ANNOTATIONS, Effect};

use crate::bed::{Backend, Bed, Setting, ingress, service};

/// An Ingress with annotations for the host NAME.test, and what requests to it get.
struct Case {
    name: &'static str,
    annotations: &'static str,
    paths: &'static str,
    exchanges: &'static [(&'static str, &'static [&'static str])],
}

const ROOT: &str = "Prefix / one";

const fn case(
    name: &'static str,
    annotations: &'static str,
    exchanges: &'static [(&'static str, &'static [&'static str])],
) -> Case {
    Case {
        name,
        annotations,
        paths: ROOT,
        exchanges,
    }
}

/// Redirects, paths and names.
const REDIRECTS: &[Case] = &[
    case(
        "app-root",
        "app-root: /start",
        &[
            ("GET /", &["302 ", "Location: http://app-root.test/start"]),
            ("GET /other", &["backend one"]),
        ],
    ),
    case(
        "permanent",
        "permanent-redirect: https://new.test/x\npermanent-redirect-code: \"308\"",
        &[("GET /y", &["308 ", "Location: https://new.test/x"])],
    ),
    case(
        "temporal",
        "temporal-redirect: https://new.test/$uri\ntemporal-redirect-code: \"307\"",
        &[("GET /y", &["307 ", "Location: https://new.test//y"])],
    ),
    case(
        "relative",
        "permanent-redirect: /here\nrelative-redirects: \"true\"",
        &[("GET /y", &["301 ", "Location: /here"])],
    ),
    case(
        "forced",
        "force-ssl-redirect: \"true\"",
        &[
            ("GET /a/?b", &["308 ", "Location: https://forced.test/a/?b"]),
            ("GET /a/", &["Location: https://forced.test/a\r\n"]),
        ],
    ),
    case(
        "slash",
        "force-ssl-redirect: \"true\"\npreserve-trailing-slash: \"true\"\n\
         use-port-in-redirects: \"true\"",
        &[(
            "GET /a/",
            &["308 ", "Location: https://slash.test:", "/a/\r\n"],
        )],
    ),
    case(
        "unforced",
        "ssl-redirect: \"false\"",
        &[("GET /", &["backend one"])],
    ),
    case(
        "from-www",
        "from-to-www-redirect: \"true\"",
        &[("GET /a?b", &["backend one"])],
    ),
    Case {
        name: "rewrite",
        annotations: "rewrite-target: /new/$1\nuse-regex: \"true\"\nx-forwarded-prefix: /old",
        paths: "ImplementationSpecific /old/(.*) one",
        exchanges: &[(
            "GET /OLD/x?y",
            &["GET /new/x?y HTTP/1.1", "X-Forwarded-Prefix: /old"],
        )],
    },
    case(
        "alias",
        "server-alias: alias-of.test",
        &[("GET /", &["backend one"])],
    ),
];

/// Fields of requests and responses, sizes and times.
const FIELDS: &[Case] = &[
    case(
        "host",
        "upstream-vhost: inner.test",
        &[(
            "GET /",
            &["Host: inner.test\r\n", "X-Forwarded-Host: host.test"],
        )],
    ),
    case(
        "connection",
        "connection-proxy-header: keep-alive",
        &[("GET /", &["\nConnection: keep-alive\r\n"])],
    ),
    case(
        "headers",
        "custom-headers: default/custom",
        &[("GET /", &["X-Custom: a $b\r\n"])],
    ),
    case(
        "body-size",
        "proxy-body-size: \"4\"\nclient-body-buffer-size: 1k",
        &[("POST /\nContent-Length: 5", &["413 "])],
    ),
    case(
        "cookies",
        "proxy-cookie-domain: one.test two.test\nproxy-cookie-path: /a /b",
        &[(
            "GET /?field=Set-Cookie:x=1;%20Domain=one.test;%20Path=/a",
            &["Set-Cookie: x=1; Domain=two.test; Path=/b"],
        )],
    ),
    case(
        "location",
        "proxy-redirect-from: http://inner.test/\nproxy-redirect-to: http://outer.test/",
        &[(
            "GET /?status=302&field=Location:http://inner.test/x",
            &["Location: http://outer.test/x"],
        )],
    ),
    case(
        "old-version",
        "proxy-http-version: \"1.0\"",
        &[("GET /", &["GET / HTTP/1.0"])],
    ),
    case(
        "buffers",
        "proxy-buffering: \"on\"\nproxy-buffers-number: \"8\"\nproxy-buffer-size: 16k\n\
         proxy-busy-buffers-size: 32k\nproxy-max-temp-file-size: \"0\"\n\
         proxy-request-buffering: \"off\"",
        &[("GET /", &["backend one"])],
    ),
    case(
        "times",
        "proxy-connect-timeout: \"3\"\nproxy-send-timeout: \"4\"\nproxy-read-timeout: \"5\"\n\
         proxy-next-upstream: error timeout http_502\nproxy-next-upstream-timeout: \"6\"\n\
         proxy-next-upstream-tries: \"2\"",
        &[("GET /", &["backend one"])],
    ),
    case(
        "logs",
        "enable-access-log: \"false\"\nenable-rewrite-log: \"true\"\n\
         enable-opentelemetry: \"true\"\n\
         opentelemetry-trust-incoming-span: \"false\"\nopentelemetry-operation-name: named",
        &[("GET /", &["backend one"])],
    ),
    case(
        "errors",
        "custom-http-errors: \"404,415\"\ndefault-backend: two",
        &[
            (
                "GET /?status=404",
                &["backend two", "X-Code: 404", "X-Ingress-Name: errors"],
            ),
            ("GET /?status=500", &["500 ", "backend one"]),
        ],
    ),
    case(
        "kept-errors",
        "custom-http-errors: \"404\"\ndefault-backend: two\n\
         disable-proxy-intercept-errors: \"true\"",
        &[("GET /?status=404", &["404 ", "backend one"])],
    ),
    Case {
        name: "fallback",
        annotations: "default-backend: two",
        paths: "Prefix / empty",
        exchanges: &[("GET /", &["backend two", "X-Code: 503"])],
    },
];

/// Other origins.
const ORIGINS: &[Case] = &[
    case(
        "cors",
        "enable-cors: \"true\"",
        &[
            (
                "GET /",
                &[
                    "Access-Control-Allow-Origin: *",
                    "Access-Control-Allow-Credentials: true",
                    "Access-Control-Allow-Methods: GET, PUT, POST, DELETE, PATCH, OPTIONS",
                    "Access-Control-Max-Age: 1728000",
                    "backend one",
                ],
            ),
            (
                "OPTIONS /",
                &["204 ", "Access-Control-Allow-Origin: *", "!backend"],
            ),
        ],
    ),
    case(
        "cors-some",
        "enable-cors: \"true\"\ncors-allow-origin: \"https://*.ok.test, http://a.test:81\"\n\
         cors-allow-methods: GET\ncors-allow-headers: X-A\ncors-expose-headers: \"X-B\"\n\
         cors-allow-credentials: \"false\"\ncors-max-age: \"9\"",
        &[
            (
                "GET /\nOrigin: https://x.ok.test",
                &[
                    "Access-Control-Allow-Origin: https://x.ok.test",
                    "Access-Control-Allow-Methods: GET\r\n",
                    "Access-Control-Allow-Headers: X-A",
                    "Access-Control-Expose-Headers: X-B",
                    "Access-Control-Max-Age: 9",
                    "!Credentials",
                ],
            ),
            (
                "GET /\nOrigin: http://a.test:81",
                &["Allow-Origin: http://a.test:81"],
            ),
            (
                "GET /\nOrigin: https://x.ok.test.evil.test",
                &["!Allow-Origin", "backend one"],
            ),
        ],
    ),
];

/// Access: networks, users, services, limits.
const ACCESS: &[Case] = &[
    case(
        "allowed",
        "whitelist-source-range: 127.0.0.0/8",
        &[("GET /", &["backend one"])],
    ),
    case(
        "elsewhere",
        "whitelist-source-range: 10.0.0.0/8, 192.0.2.1",
        &[("GET /", &["403 "])],
    ),
    case(
        "denied",
        "denylist-source-range: 127.0.0.1",
        &[("GET /", &["403 "])],
    ),
    case(
        "odd-network",
        "whitelist-source-range: nonsense",
        &[("GET /", &["503 "])],
    ),
    case(
        "users",
        "auth-type: basic\nauth-secret: users\nauth-realm: the realm",
        &[
            (
                "GET /",
                &["401 ", "WWW-Authenticate: Basic realm=\"the realm\""],
            ),
            (
                "GET /\nAuthorization: Basic YWRhOnNlY3JldA==",
                &["backend one", "!Authorization:"],
            ),
            ("GET /\nAuthorization: Basic YWRhOndyb25n", &["401 "]),
        ],
    ),
    case(
        "user-map",
        "auth-type: basic\nauth-secret: default/user-map\nauth-secret-type: auth-map",
        &[(
            "GET /\nAuthorization: Basic YWRhOnNlY3JldA==",
            &["backend one"],
        )],
    ),
    case(
        "no-users",
        "auth-type: basic\nauth-secret: absent",
        &[("GET /", &["503 "])],
    ),
    case(
        "foreign",
        "auth-type: basic\nauth-secret: other/users",
        &[("GET /", &["503 "])],
    ),
    case(
        "either",
        "auth-type: basic\nauth-secret: users\nwhitelist-source-range: 127.0.0.1\nsatisfy: any",
        &[("GET /", &["backend one"])],
    ),
    case(
        "service",
        "auth-url: http://127.0.0.1:AUTH/check?status=200&field=X-User:ada\n\
         auth-method: POST\nauth-response-headers: X-User\nauth-request-redirect: /back\n\
         auth-proxy-set-headers: default/asking\nenable-global-auth: \"false\"\n\
         auth-always-set-cookie: \"true\"\nauth-snippet: proxy_set_header X-Asked yes;",
        &[("GET /", &["backend one", "X-User: ada"])],
    ),
    case(
        "refusing",
        "auth-url: http://127.0.0.1:AUTH/check?status=401\n\
         auth-signin: http://sign.in/at\nauth-signin-redirect-param: to",
        &[(
            "GET /a?b=c",
            &[
                "302 ",
                "Location: http://sign.in/at?to=http://refusing.test%2Fa%3Fb%3Dc",
            ],
        )],
    ),
    case(
        "forbidding",
        "auth-url: http://127.0.0.1:AUTH/check?status=403\nauth-cache-key: $remote_user\n\
         auth-cache-duration: 200 5m, 403 1m",
        &[("GET /", &["403 ", "!backend"])],
    ),
    case(
        "rated",
        "limit-rpm: \"1\"\nlimit-burst-multiplier: \"1\"",
        &[
            ("GET /", &["backend one"]),
            ("GET /", &["backend one"]),
            ("GET /", &["503 "]),
        ],
    ),
    case(
        "free",
        "limit-rpm: \"1\"\nlimit-burst-multiplier: \"1\"\nlimit-whitelist: 127.0.0.0/8",
        &[
            ("GET /", &["backend one"]),
            ("GET /", &["backend one"]),
            ("GET /", &["backend one"]),
        ],
    ),
    case(
        "limits",
        "limit-rps: \"100\"\nlimit-connections: \"10\"\nlimit-rate: \"1000\"\n\
         limit-rate-after: \"100\"",
        &[("GET /", &["backend one"])],
    ),
];

/// Which server gets a request.
const CHOICES: &[Case] = &[
    case(
        "by-hash",
        "upstream-hash-by: $request_uri",
        &[("GET /", &["backend one"])],
    ),
    case(
        "balanced",
        "load-balance: ewma",
        &[("GET /", &["backend one"])],
    ),
    case(
        "by-service",
        "service-upstream: \"true\"",
        &[("GET /", &["!backend one"])],
    ),
    case(
        "sticky",
        "affinity: cookie\nsession-cookie-name: route\nsession-cookie-max-age: \"60\"\n\
         session-cookie-expires: \"60\"\nsession-cookie-path: /p\nsession-cookie-domain: s.test\n\
         session-cookie-samesite: None\nsession-cookie-secure: \"true\"\n\
         session-cookie-change-on-failure: \"true\"\n\
         session-cookie-conditional-samesite-none: \"true\"",
        &[
            (
                "GET /",
                &[
                    "Set-Cookie: route=",
                    "domain=s.test",
                    "path=/p",
                    "httponly",
                    "secure",
                    "samesite=none",
                    "max-age=60",
                ],
            ),
            (
                "GET /\nUser-Agent: Mozilla/5.0 Chrome/60.0 Safari/537.36",
                &["Set-Cookie: route=", "!samesite"],
            ),
        ],
    ),
    case(
        "mirrored",
        "mirror-target: http://127.0.0.1:AUTH$request_uri\nmirror-host: copy.test\n\
         mirror-request-body: \"off\"",
        &[("GET /copied", &["backend one"])],
    ),
    case(
        "snippet",
        "configuration-snippet: |\n  more_set_headers \"X-Snippet: $ingress_name\";\n  \
         proxy_set_header X-To-Backend $service_name;",
        &[(
            "GET /",
            &[
                "X-Snippet: snippet",
                "X-To-Backend: one",
                "X-Real-IP: 127.0.0.1",
            ],
        )],
    ),
    case(
        "server-snippet",
        "server-snippet: |\n  location /made {\n    return 418 \"made\";\n  }",
        &[
            ("GET /made", &["418 ", "made"]),
            ("GET /", &["backend one"]),
        ],
    ),
];

/// Canaries: the main Ingress, the annotations of the second one, and what requests get.
const CANARIES: &[Case] = &[
    case(
        "by-header",
        "canary: \"true\"\ncanary-by-header: X-Canary",
        &[
            ("GET /", &["backend one"]),
            ("GET /\nX-Canary: always", &["backend two"]),
            ("GET /\nX-Canary: never", &["backend one"]),
        ],
    ),
    case(
        "by-value",
        "canary: \"true\"\ncanary-by-header: X-Canary\ncanary-by-header-value: mine",
        &[
            ("GET /\nX-Canary: mine", &["backend two"]),
            ("GET /\nX-Canary: always", &["backend one"]),
        ],
    ),
    case(
        "by-pattern",
        "canary: \"true\"\ncanary-by-header: X-Canary\ncanary-by-header-pattern: ^a.c$",
        &[
            ("GET /\nX-Canary: abc", &["backend two"]),
            ("GET /\nX-Canary: abd", &["backend one"]),
        ],
    ),
    case(
        "by-cookie",
        "canary: \"true\"\ncanary-by-cookie: group\ncanary-weight: \"0\"",
        &[
            ("GET /\nCookie: group=always", &["backend two"]),
            ("GET /\nCookie: group=never", &["backend one"]),
            ("GET /", &["backend one"]),
        ],
    ),
    case(
        "by-weight",
        "canary: \"true\"\ncanary-weight: \"200\"\ncanary-weight-total: \"200\"",
        &[("GET /", &["backend two"])],
    ),
    case(
        "sticky-canary",
        "canary: \"true\"\ncanary-weight: \"100\"\naffinity: cookie\nsession-cookie-name: second\n\
         affinity-canary-behavior: sticky",
        &[
            ("GET /", &["backend two", "Set-Cookie: second="]),
            ("GET /\nCookie: route=x", &["backend one"]),
            ("GET /\nCookie: route=x; second=y", &["backend two"]),
        ],
    ),
];

fn objects(auth: u16) -> String {
    let other = "---
kind: Secret
metadata: {name: users}
stringData: {auth: \"ada:{PLAIN}secret\"}
---
kind: Secret
metadata: {name: users, namespace: other}
stringData: {auth: \"ada:{PLAIN}secret\"}
---
kind: Secret
metadata: {name: user-map}
stringData: {ada: \"{PLAIN}secret\"}
---
kind: ConfigMap
metadata: {name: custom}
data: {X-Custom: a $b}
---
kind: ConfigMap
metadata: {name: asking}
data: {X-Asking: \"yes\"}
---
kind: Service
metadata: {name: empty}
spec: {ports: [{port: 80}]}
";
    let mut text = other.to_owned();
    let cases = [REDIRECTS, FIELDS, ORIGINS, ACCESS, CHOICES].concat_refs();
    for case in cases {
        let annotations = case.annotations.replace("AUTH", &auth.to_string());
        text += &ingress(
            case.name,
            &format!("{}.test", case.name),
            &annotations,
            case.paths,
        );
    }
    for case in CANARIES {
        let host = format!("{}.test", case.name);
        let main = match case.name {
            "sticky-canary" => "affinity: cookie\nsession-cookie-name: route",
            _ => "",
        };
        text += &ingress(&format!("{}-main", case.name), &host, main, case.paths);
        text += &ingress(case.name, &host, case.annotations, "Prefix / two");
    }
    text
}

/// Slices of cases as one list.
trait Cases {
    fn concat_refs(&self) -> Vec<&'static Case>;
}

impl Cases for [&'static [Case]; 5] {
    fn concat_refs(&self) -> Vec<&'static Case> {
        self.iter().flat_map(|cases| cases.iter()).collect()
    }
}

fn bed(backends: &[&Backend; 3]) -> Bed {
    let [one, two, auth] = backends;
    let manifests = service("default", "one", one.port)
        + &service("default", "two", two.port)
        + &objects(auth.port);
    Setting::new(manifests)
        .key("allow-snippet-annotations", "true")
        .key("annotations-risk-level", "Critical")
        .key("global-allowed-response-headers", "X-Custom")
        .start()
}

#[test]
fn annotations_work_as_documented() {
    let backends = [
        Backend::start("one"),
        Backend::start("two"),
        Backend::start("auth"),
    ];
    let bed = bed(&[&backends[0], &backends[1], &backends[2]]);
    let cases = [REDIRECTS, FIELDS, ORIGINS, ACCESS, CHOICES].concat_refs();
    for case in cases.into_iter().chain(CANARIES) {
        for (request, expected) in case.exchanges {
            bed.check(&format!("{}.test", case.name), request, expected);
        }
    }
    bed.check(
        "www.from-www.test",
        "GET /a?b",
        &["308 ", "Location: http://from-www.test/a?b"],
    );
    bed.check("alias-of.test", "GET /", &["backend one"]);
}

/// Annotations that are shown by requests in other files: certificates, protocols and streams.
const ELSEWHERE: &[&str] = &[
    "auth-tls-secret",
    "auth-tls-verify-depth",
    "auth-tls-verify-client",
    "auth-tls-error-page",
    "auth-tls-pass-certificate-to-upstream",
    "auth-tls-match-cn",
    "backend-protocol",
    "fastcgi-index",
    "fastcgi-params-configmap",
    "proxy-ssl-secret",
    "proxy-ssl-ciphers",
    "proxy-ssl-name",
    "proxy-ssl-protocols",
    "proxy-ssl-verify",
    "proxy-ssl-verify-depth",
    "proxy-ssl-server-name",
    "ssl-passthrough",
    "ssl-ciphers",
    "ssl-prefer-server-ciphers",
    "stream-snippet",
];

#[test]
fn every_annotation_that_works_has_a_request() {
    let cases = [REDIRECTS, FIELDS, ORIGINS, ACCESS, CHOICES].concat_refs();
    let texts: Vec<&str> = cases
        .into_iter()
        .chain(CANARIES)
        .map(|case| case.annotations)
        .collect();
    let shows = |name: &str| {
        let start = format!("{name}:");
        texts
            .iter()
            .any(|text| text.lines().any(|line| line.starts_with(&start)))
    };
    for row in ANNOTATIONS {
        let works = matches!(row.effect, Effect::Works | Effect::Differs(_));
        let is_shown =
            shows(row.name) || row.other_name.is_some_and(&shows) || ELSEWHERE.contains(&row.name);
        assert_eq!(
            works,
            works && is_shown,
            "no request shows the annotation {}",
            row.name
        );
    }
}

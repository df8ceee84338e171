//! Gateway API: which backend a request comes to, and what becomes of it on its way.

use crate::bed::{Backend, Bed, Setting, service};

const GATEWAY: &str = "---
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: turnpike/gateway}
---
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: example.com/other}
---
kind: Gateway
metadata: {name: outer}
spec:
  gatewayClassName: ours
  listeners:
  - {name: plain, port: 20442, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---
kind: Gateway
metadata: {name: foreign}
spec:
  gatewayClassName: theirs
  listeners: [{name: plain, port: 1, protocol: HTTP}]
";

/// A route: kind, name, hosts, and its rules.
const ROUTES: &[(&str, &str, &str, &str)] = &[
    (
        "HTTPRoute",
        "paths",
        "paths.test",
        "
  - matches: [{path: {type: PathPrefix, value: /a}}]
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {type: Exact, value: /a/exact}}, {path: {value: /a/longer}}]
    backendRefs: [{name: two, port: 80}]
  - matches: [{path: {type: RegularExpression, value: '/n/[0-9]+'}}]
    backendRefs: [{name: two, port: 80}]",
    ),
    (
        "HTTPRoute",
        "conditions",
        "conditions.test",
        "
  - backendRefs: [{name: one, port: 80}]
  - matches: [{method: DELETE}]
    backendRefs: [{name: two, port: 80}]
  - matches: [{headers: [{name: X-Group, value: b.c}]}]
    backendRefs: [{name: two, port: 80}]
  - matches: [{queryParams: [{name: group, type: RegularExpression, value: 'b+'}]}]
    backendRefs: [{name: two, port: 80}]",
    ),
    (
        "HTTPRoute",
        "filters",
        "filters.test",
        "
  - matches: [{path: {value: /fields}}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{name: X-Set, value: of $rule}]
        add: [{name: X-Add, value: b}]
        remove: [X-Gone]
    - type: ResponseHeaderModifier
      responseHeaderModifier:
        set: [{name: X-Said, value: set}]
        remove: [X-None]
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /old}}]
    filters:
    - type: URLRewrite
      urlRewrite: {hostname: inner.test, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /whole}}]
    filters:
    - type: URLRewrite
      urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /all}}
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /moved}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /there/}}
  - matches: [{path: {value: /top}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {port: 8080, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
  - matches: [{path: {value: /go}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {scheme: https, hostname: to.test, statusCode: 301}
  - matches: [{path: {value: /shared}}]
    filters:
    - type: CORS
      cors:
        allowOrigins: ['https://a.test', 'https://*.b.test']
        allowMethods: [GET, PUT]
        allowHeaders: ['*']
        exposeHeaders: [X-Seen]
        maxAge: 60
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /copied}}]
    filters:
    - type: RequestMirror
      requestMirror: {backendRef: {name: two, port: 80}}
    - type: RequestMirror
      requestMirror: {backendRef: {name: absent, port: 80}, percent: 50}
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /odd}}]
    filters: [{type: ExtensionRef}]
    backendRefs: [{name: one, port: 80}]",
    ),
    (
        "HTTPRoute",
        "backends",
        "backends.test",
        "
  - matches: [{path: {value: /none}}]
    backendRefs: [{name: absent, port: 80}]
  - matches: [{path: {value: /zero}}]
    backendRefs: [{name: one, port: 80, weight: 0}]
  - matches: [{path: {value: /weighed}}]
    backendRefs: [{name: one, port: 80, weight: 0}, {name: two, port: 80, weight: 3}]
  - matches: [{path: {value: /foreign}}]
    backendRefs: [{name: far, namespace: other, port: 80}]
  - matches: [{path: {value: /granted}}]
    backendRefs: [{name: near, namespace: other, port: 80}]",
    ),
    (
        "HTTPRoute",
        "wild",
        "'*.wild.test'",
        "\n  - backendRefs: [{name: one, port: 80}]",
    ),
];

const GRANT: &str = "---
kind: ReferenceGrant
metadata: {name: near, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}]
  to: [{group: '', kind: Service, name: near}]
";

/// A host, a request, and what the response has.
const ROWS: &[(&str, &str, &[&str])] = &[
    ("paths.test", "GET /a", &["backend one"]),
    ("paths.test", "GET /a/b", &["backend one"]),
    ("paths.test", "GET /ab", &["404 "]),
    ("paths.test", "GET /A", &["404 "]),
    ("paths.test", "GET /a/exact", &["backend two"]),
    ("paths.test", "GET /a/exact/not", &["backend one"]),
    ("paths.test", "GET /a/longer/x", &["backend two"]),
    ("paths.test", "GET /n/12", &["backend two"]),
    ("paths.test", "GET /n/x", &["404 "]),
    ("conditions.test", "GET /", &["backend one"]),
    ("conditions.test", "DELETE /", &["backend two"]),
    ("conditions.test", "GET /\nX-Group: b.c", &["backend two"]),
    ("conditions.test", "GET /\nX-Group: bxc", &["backend one"]),
    ("conditions.test", "GET /?group=bb", &["backend two"]),
    ("conditions.test", "GET /?group=abb", &["backend one"]),
    (
        "filters.test",
        "GET /fields\nX-Set: own\nX-Add: a\nX-Gone: 1",
        &[
            "X-Set: of $rule",
            "X-Add: a,b",
            "!X-Gone",
            "X-Said: set",
            "!X-None",
        ],
    ),
    (
        "filters.test",
        "GET /old/x?y",
        &["GET /new/x?y HTTP", "Host: inner.test"],
    ),
    ("filters.test", "GET /old", &["GET /new HTTP"]),
    (
        "filters.test",
        "GET /whole/x",
        &["GET /all HTTP", "Host: filters.test"],
    ),
    (
        "filters.test",
        "GET /go/x?y",
        &["301 ", "Location: https://to.test/go/x?y"],
    ),
    ("filters.test", "GET /moved", &["302 ", "/there\r\n"]),
    ("filters.test", "GET /moved/", &["/there/\r\n"]),
    ("filters.test", "GET /moved/x?y", &["/there/x?y\r\n"]),
    ("filters.test", "GET /movedx", &["404 "]),
    (
        "filters.test",
        "GET /top",
        &["Location: http://filters.test:8080/\r\n"],
    ),
    ("filters.test", "GET /top/x", &[":8080/x\r\n"]),
    (
        "filters.test",
        "OPTIONS /shared\nOrigin: https://x.b.test\nAccess-Control-Request-Method: PUT",
        &[
            "204 ",
            "Access-Control-Allow-Origin: https://x.b.test\r\n",
            "Access-Control-Allow-Methods: GET, PUT\r\n",
            "Access-Control-Allow-Headers: *\r\n",
            "Access-Control-Max-Age: 60\r\n",
            "!Allow-Credentials",
            "!backend",
        ],
    ),
    (
        "filters.test",
        "OPTIONS /shared\nOrigin: https://xb.test\nAccess-Control-Request-Method: PUT",
        &["204 ", "!Access-Control", "!backend"],
    ),
    (
        "filters.test",
        "GET /shared\nOrigin: https://a.test",
        &[
            "backend one",
            "Access-Control-Allow-Origin: https://a.test\r\n",
            "Access-Control-Expose-Headers: X-Seen\r\n",
            "!Access-Control-Allow-Methods",
        ],
    ),
    (
        "filters.test",
        "OPTIONS /shared",
        &["backend one", "!Access-Control-"],
    ),
    ("filters.test", "GET /copied", &["backend one"]),
    ("filters.test", "GET /_gateway-mirror-1", &["404 "]),
    ("filters.test", "GET /odd", &["500 "]),
    ("backends.test", "GET /none", &["500 "]),
    ("backends.test", "GET /zero", &["500 "]),
    ("backends.test", "GET /weighed", &["backend two"]),
    ("backends.test", "GET /foreign", &["500 "]),
    ("backends.test", "GET /granted", &["backend near"]),
    ("a.b.wild.test", "GET /", &["backend one"]),
    ("wild.test", "GET /", &["404 "]),
    ("nobody.test", "GET /", &["404 "]),
];

fn route(kind: &str, name: &str, host: &str, rules: &str) -> String {
    format!(
        "---\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  parentRefs: [{{name: outer}}]\n  \
         hostnames: [{host}]\n  rules:{rules}\n"
    )
}

fn findings(bed: &Bed) -> String {
    bed.rendering
        .findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect()
}

#[test]
fn routes_are_matched_by_the_specification() {
    let backends = [
        Backend::start("one"),
        Backend::start("two"),
        Backend::start("near"),
    ];
    let mut manifests = GATEWAY.to_owned() + GRANT;
    for (backend, (namespace, name)) in [
        (0, ("default", "one")),
        (1, ("default", "two")),
        (2, ("other", "near")),
        (0, ("other", "far")),
    ] {
        let backend: usize = backend;
        manifests += &service(namespace, name, backends[backend].port);
    }
    for (kind, name, host, rules) in ROUTES {
        manifests += &route(kind, name, host, rules);
    }
    let bed = Setting::new(manifests).start();
    for (host, request, expected) in ROWS {
        bed.check_at("passthrough", host, request, expected);
    }
    let texts = findings(&bed);
    for words in [
        "HTTPRoute default/filters: closed: filter ExtensionRef is not served; the answer is 500",
        "HTTPRoute default/backends: closed: there is no Service default/absent; the answer is 500",
        "HTTPRoute default/backends: closed: no ReferenceGrant allows Service other/far",
    ] {
        assert!(texts.contains(words), "{texts}");
    }
}

/// Routes that cannot be served as they are, and words of the finding.
const ODD: &[(&str, &str)] = &[
    ("[{matches: [{path: {value: 'a'}}]}]", "\"a\" is not a path"),
    (
        "[{matches: [{path: {type: Odd, value: /a}}]}]",
        "a path of type Odd is not served",
    ),
    (
        "[{matches: [{headers: [{name: 'a b', value: c}]}]}]",
        "\"a b\" cannot be matched by",
    ),
    (
        "[{matches: [{queryParams: [{name: a-b, value: c}]}]}]",
        "\"a-b\" cannot be matched by",
    ),
    (
        "[{matches: [{path: {type: RegularExpression, value: '/('}}]}]",
        "the server refuses it",
    ),
    (
        "[{matches: [{path: {value: \"/a\\n}\"}}]}]",
        "is not a path",
    ),
    (
        "[{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: ['a;b']}}]}]",
        "\"a;b\" is not a field",
    ),
];

#[test]
fn odd_routes_are_named_and_hide_no_others() {
    let one = Backend::start("one");
    for (rules, words) in ODD {
        let good = "\n  - backendRefs: [{name: one, port: 80}]";
        let manifests = GATEWAY.to_owned()
            + &service("default", "one", one.port)
            + &route("HTTPRoute", "good", "good.test", good)
            + &route("HTTPRoute", "odd", "odd.test", &format!(" {rules}"));
        let bed = Setting::new(manifests).start();
        bed.check_at("passthrough", "good.test", "GET /", &["backend one"]);
        let texts = findings(&bed);
        assert!(
            texts.contains("HTTPRoute default/odd: ") && texts.contains(words),
            "{words}: {texts}"
        );
    }
}

#[test]
fn grpc_routes_are_matched_by_service_and_method() {
    let one = Backend::start("one");
    let rules = "
  - matches: [{method: {service: a.Greeter, method: Hello}}]
    backendRefs: [{name: one, port: 80}]";
    let manifests = GATEWAY.to_owned()
        + &service("default", "one", one.port)
        + &route("GRPCRoute", "greeter", "grpc.test", rules);
    let bed = Setting::new(manifests).start();
    let text = &bed.rendering.configuration;
    assert!(text.contains(r#""~^/a\\.Greeter/Hello$" 1;"#), "{text}");
    assert!(text.contains("grpc_pass grpc://default_one_80;"), "{text}");
    bed.check_at(
        "passthrough",
        "grpc.test",
        "GET /a.Greeter/Other",
        &["404 "],
    );
}

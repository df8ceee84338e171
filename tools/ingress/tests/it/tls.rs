//! TLS: certificates by host, clients' certificates, upstream servers with TLS, and other
//! protocols behind the controller.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use turnpike_testkit::{Origin, Server, Step};

use crate::bed::{Backend, Bed, Setting, assert_has, ingress, program, service};

/// An authority, and what it signs.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut wanted = CertificateParams::new(Vec::new()).unwrap();
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        wanted
            .distinguished_name
            .push(DnType::CommonName, "Test Authority");
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(wanted, key).unwrap())
    }

    /// A certificate and its key for a name.
    fn sign(&self, name: &str, common_name: &str) -> (String, String) {
        let mut wanted = CertificateParams::new(vec![name.to_owned()]).unwrap();
        wanted
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = wanted.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn secret(name: &str, entries: &[(&str, &str)]) -> String {
    let mut text = format!("---\nkind: Secret\nmetadata: {{name: {name}}}\nstringData:\n");
    for (key, value) in entries {
        text += &format!("  {key}: |\n");
        for line in value.lines() {
            text += &format!("    {line}\n");
        }
    }
    text
}

fn with_tls(ingress: &str, host: &str, secret: &str) -> String {
    ingress.replace(
        "spec:\n",
        &format!("spec:\n  tls: [{{hosts: [\"{host}\"], secretName: {secret}}}]\n"),
    )
}

fn findings(bed: &Bed) -> String {
    bed.rendering
        .findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect()
}

/// Ingresses with TLS: name, host, annotations, Secret.
const WITH_TLS: &[(&str, &str, &str, &str)] = &[
    ("own", "own.test", "", "own"),
    ("wild", "*.wild.test", "", "wild"),
    (
        "no-redirect",
        "plain.test",
        "ssl-redirect: \"false\"",
        "own",
    ),
    ("garbage", "garbage.test", "", "garbage"),
    ("absent", "absent.test", "", "absent"),
];

const FAKE: &str = "Kubernetes Ingress Controller Fake Certificate";

/// Hosts, and a part of the name of the certificate that clients get.
const SUBJECTS: &[(&str, &str)] = &[
    ("own.test", "CN=own"),
    ("a.wild.test", "CN=wild"),
    ("plain.test", FAKE),
    ("garbage.test", FAKE),
    ("absent.test", FAKE),
    ("unknown.test", FAKE),
];

#[test]
fn hosts_have_their_certificates_and_redirect_to_https() {
    let one = Backend::start("one");
    let authority = Authority::new();
    let (certificate, key) = authority.sign("own.test", "own");
    let (wild, wild_key) = authority.sign("*.wild.test", "wild");
    let mut manifests = service("default", "one", one.port)
        + &secret("own", &[("tls.crt", &certificate), ("tls.key", &key)])
        + &secret("wild", &[("tls.crt", &wild), ("tls.key", &wild_key)])
        + &secret("garbage", &[("tls.crt", "nothing"), ("tls.key", &key)]);
    for (name, host, annotations, secret) in WITH_TLS {
        manifests += &with_tls(
            &ingress(name, host, annotations, "Prefix / one"),
            host,
            secret,
        );
    }
    let bed = Setting::new(manifests).start();
    bed.check(
        "own.test",
        "GET /a/",
        &["308 ", "Location: https://own.test/a\r\n"],
    );
    bed.check(
        "plain.test",
        "GET /",
        &["backend one", "X-Forwarded-Proto: http\r\n"],
    );
    for (host, subject) in SUBJECTS {
        let came = bed.curl(host, "/", &["-v"]);
        assert!(
            came.contains("subject: ") && came.contains(subject),
            "{host}: {came}"
        );
    }
    let came = bed.curl("own.test", "/", &[]);
    let expected = [
        "backend one",
        "Strict-Transport-Security: max-age=31536000; includeSubDomains",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Port: 443",
    ];
    assert_has("own.test", &came, &expected, &bed.rendering);
    let texts = findings(&bed);
    for words in [
        "has no certificate for plain.test",
        "Secret default/absent is missing",
        "has no certificate for garbage.test",
    ] {
        assert!(texts.contains(words), "{words}: {texts}");
    }
}

#[test]
fn a_key_of_another_certificate_is_left_out() {
    let one = Backend::start("one");
    let authority = Authority::new();
    let (certificate, _) = authority.sign("own.test", "own");
    let (_, key) = authority.sign("own.test", "other");
    let manifests = service("default", "one", one.port)
        + &secret("own", &[("tls.crt", &certificate), ("tls.key", &key)])
        + &with_tls(
            &ingress("own", "own.test", "", "Prefix / one"),
            "own.test",
            "own",
        );
    let bed = Setting::new(manifests).start();
    let came = bed.curl("own.test", "/", &["-v"]);
    assert!(
        came.contains("Fake Certificate") && came.contains("backend one"),
        "{came}"
    );
    let texts = findings(&bed);
    assert!(
        texts.contains("Secret default/own: left out: the server refuses it"),
        "{texts}"
    );
}

#[test]
fn clients_show_certificates() {
    let one = Backend::start("one");
    let authority = Authority::new();
    let root = authority.0.pem();
    let (certificate, key) = authority.sign("client.test", "ada");
    let annotations = "auth-tls-secret: default/authority\nauth-tls-verify-client: \"on\"\n\
                       auth-tls-verify-depth: \"2\"\n\
                       auth-tls-pass-certificate-to-upstream: \"true\"\nauth-tls-match-cn: CN=ada";
    let manifests = service("default", "one", one.port)
        + &secret("authority", &[("ca.crt", &root)])
        + &ingress("known", "known.test", annotations, "Prefix / one")
        + &ingress(
            "bob",
            "bob.test",
            &annotations.replace("CN=ada", "CN=bob"),
            "Prefix / one",
        )
        + &ingress(
            "page",
            "page.test",
            "auth-tls-secret: default/authority\nauth-tls-error-page: http://help.test/x",
            "Prefix / one",
        )
        + &ingress(
            "closed",
            "closed.test",
            "auth-tls-secret: default/absent",
            "Prefix / one",
        );
    let bed = Setting::new(manifests).start();
    bed.server.write("client.pem", certificate + &key);
    let client = bed.server.folder().join("client.pem");
    let client = ["--cert", client.to_str().unwrap()];
    for (host, arguments, expected) in [
        (
            "known.test",
            &client[..],
            &[
                "ssl-client-verify: SUCCESS",
                "ssl-client-subject-dn: CN=ada",
                "ssl-client-cert: -----BEGIN%20CERT",
            ][..],
        ),
        ("known.test", &[], &["400 ", "!backend"]),
        ("bob.test", &client, &["403 ", "!backend"]),
        ("page.test", &[], &["302 ", "Location: http://help.test/x"]),
        ("closed.test", &client, &["403 ", "!backend"]),
    ] {
        let came = bed.curl(host, "/", arguments);
        assert_has(host, &came, expected, &bed.rendering);
    }
}

/// Servers that speak TLS, HTTP/2 and both.
const UPSTREAM: &str = r#"
events { }
http {
    ssl_certificate %FOLDER%/pair.pem;
    ssl_certificate_key %FOLDER%/pair.pem;
    ssl_client_certificate %FOLDER%/ca.pem;
    ssl_verify_client optional;
    server {
        listen 127.0.0.1:%PORT% ssl;
        return 200 "tls $ssl_server_name $ssl_client_verify";
    }
    server {
        listen 127.0.0.1:%PORT_grpc%;
        http2 on;
        return 200 "grpc $server_protocol $http_x_real_ip";
    }
    server {
        listen 127.0.0.1:%PORT_grpcs% ssl;
        http2 on;
        return 200 "grpcs $server_protocol";
    }
}"#;

const VERIFIED: &str = "backend-protocol: HTTPS\nproxy-ssl-secret: default/inner\n\
    proxy-ssl-verify: \"on\"\nproxy-ssl-verify-depth: \"2\"\nproxy-ssl-server-name: \"on\"\n\
    proxy-ssl-protocols: TLSv1.3\nproxy-ssl-ciphers: HIGH\nproxy-ssl-name: NAME";

/// Ingresses: name, annotations, Service.
const PROTOCOLS: &[(&str, &str, &str)] = &[
    ("tls", "backend-protocol: HTTPS", "tls"),
    ("good", VERIFIED, "tls"),
    ("wrong", VERIFIED, "tls"),
    ("grpc", "backend-protocol: GRPC", "grpc"),
    ("grpcs", "backend-protocol: GRPCS", "grpcs"),
    (
        "fastcgi",
        "backend-protocol: FCGI\nfastcgi-index: index.php\n\
         fastcgi-params-configmap: default/script",
        "fastcgi",
    ),
    (
        "ciphers",
        "ssl-ciphers: ECDHE-ECDSA-AES256-GCM-SHA384\nssl-prefer-server-ciphers: \"true\"",
        "tls",
    ),
];

/// Hosts, and what is in their answers.
const ANSWERS: &[(&str, &[&str])] = &[
    ("tls.test", &["tls  NONE"]),
    ("good.test", &["tls inner.test SUCCESS"]),
    ("wrong.test", &["502 "]),
    ("grpc.test", &["grpc HTTP/2.0 127.0.0.1"]),
    ("grpcs.test", &["grpcs HTTP/2.0"]),
    ("fastcgi.test", &["200 OK", "fastcgi"]),
];

#[test]
fn upstream_servers_speak_tls_grpc_and_fastcgi() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("inner.test", "inner");
    let upstream = Server::builder(program())
        .file("pair.pem", certificate.clone() + &key)
        .file("ca.pem", authority.0.pem())
        .configuration(UPSTREAM)
        .start();
    let answer = fastcgi_answer("Content-Type: text/plain\r\n\r\nfastcgi");
    let fastcgi = Origin::start(vec![vec![Step::ReadBytes(16), Step::Send(answer)]]);
    let mut manifests = service("default", "tls", upstream.port())
        + &service("default", "grpc", upstream.port_named("grpc"))
        + &service("default", "grpcs", upstream.port_named("grpcs"))
        + &service("default", "fastcgi", fastcgi.port())
        + &secret(
            "inner",
            &[
                ("tls.crt", &certificate),
                ("tls.key", &key),
                ("ca.crt", &authority.0.pem()),
            ],
        )
        + "---\nkind: ConfigMap\nmetadata: {name: script}\ndata: {SCRIPT_FILENAME: /x.php}\n";
    for (name, annotations, service) in PROTOCOLS {
        let peer = if *name == "wrong" {
            "other.test"
        } else {
            "inner.test"
        };
        let annotations = annotations.replace("NAME", peer);
        let paths = format!("Prefix / {service}");
        manifests += &ingress(name, &format!("{name}.test"), &annotations, &paths);
    }
    let bed = Setting::new(manifests).start();
    for (host, expected) in ANSWERS {
        bed.check(host, "GET /", expected);
    }
    let came = bed.curl(
        "ciphers.test",
        "/",
        &["-v", "--tls-max", "1.2", "--http1.1"],
    );
    assert!(came.contains("ECDHE-ECDSA-AES256-GCM-SHA384"), "{came}");
}

/// A Service with a BackendTLSPolicy: the policy's hostname, its ConfigMap, other fields, and what
/// the response has.
const POLICIES: &[(&str, &str, &str, &str, &str)] = &[
    ("good", "inner.test", "authorities", "", "200 "),
    ("wrong-host", "other.test", "authorities", "", "502 "),
    ("absent", "inner.test", "none", "", "500 "),
    ("garbage", "inner.test", "garbage", "", "500 "),
    (
        "names",
        "inner.test",
        "authorities",
        "subjectAltNames: [{type: Hostname, hostname: x.test}],",
        "500 ",
    ),
];

#[test]
fn backends_of_gateways_are_verified_as_policies_say() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("inner.test", "inner");
    let upstream = Server::builder(program())
        .file("pair.pem", certificate + &key)
        .file("ca.pem", authority.0.pem())
        .configuration(UPSTREAM)
        .start();
    let pem = serde_json::json!(authority.0.pem());
    let mut manifests = format!(
        "---\nkind: Gateway\nmetadata: {{name: outer}}\nspec: {{listeners: [{{name: plain, \
         port: 20442, protocol: HTTP}}]}}\n---\nkind: ConfigMap\nmetadata: {{name: \
         authorities}}\ndata: {{ca.crt: {pem}}}\n---\nkind: ConfigMap\nmetadata: {{name: \
         garbage}}\ndata: {{ca.crt: x}}\n"
    );
    for (name, host, map, others, _) in POLICIES {
        manifests += &service("default", name, upstream.port());
        manifests += &format!(
            "---\nkind: BackendTLSPolicy\nmetadata: {{name: {name}}}\nspec: {{targetRefs: \
             [{{group: '', kind: Service, name: {name}}}], validation: {{hostname: {host}, \
             {others} caCertificateRefs: [{{group: '', kind: ConfigMap, name: {map}}}]}}}}\n\
             ---\nkind: HTTPRoute\nmetadata: {{name: {name}}}\nspec: {{parentRefs: [{{name: \
             outer}}], hostnames: [{name}.test], rules: [{{backendRefs: [{{name: {name}, port: \
             80}}]}}]}}\n"
        );
    }
    let bed = Setting::new(manifests).start();
    for (name, .., expected) in POLICIES {
        bed.check_at("passthrough", &format!("{name}.test"), "GET /", &[expected]);
    }
}

/// The records of a FastCGI response.
fn fastcgi_answer(content: &str) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut bytes = vec![1, 6, 0, 1, length[0], length[1], 0, 0];
    bytes.extend_from_slice(content.as_bytes());
    bytes.extend_from_slice(&[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn connections_are_passed_through_with_their_tls() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("through.test", "through");
    let upstream = Server::builder(program())
        .file("pair.pem", certificate + &key)
        .configuration(
            "events { }
            http {
                server {
                    listen 127.0.0.1:%PORT% ssl;
                    ssl_certificate %FOLDER%/pair.pem;
                    ssl_certificate_key %FOLDER%/pair.pem;
                    return 200 \"passed through\";
                }
            }",
        )
        .start();
    let one = Backend::start("one");
    let manifests = service("default", "through", upstream.port())
        + &service("default", "one", one.port)
        + &ingress(
            "through",
            "through.test",
            "ssl-passthrough: \"true\"",
            "Prefix / through",
        )
        + &ingress("here", "here.test", "", "Prefix / one");
    let mut setting = Setting::new(manifests);
    setting.options.has_passthrough = true;
    setting.options.passthrough_port = 20442;
    let bed = setting.start();
    let came = bed.curl("through.test", "/", &["-v"]);
    assert!(
        came.contains("CN=through") && came.contains("passed through"),
        "{came}"
    );
    let came = bed.curl("here.test", "/", &["-v"]);
    assert!(
        came.contains("Fake Certificate") && came.contains("backend one"),
        "{came}"
    );
    assert!(came.contains("X-Real-IP: 127.0.0.1"), "{came}");
}

#[test]
fn listeners_of_gateways_have_certificates() {
    let one = Backend::start("one");
    let authority = Authority::new();
    let (certificate, key) = authority.sign("gateway.test", "gateway");
    let manifests = service("default", "one", one.port)
        + &secret("gateway", &[("tls.crt", &certificate), ("tls.key", &key)])
        + "---
kind: Gateway
metadata: {name: outer}
spec:
  listeners:
  - name: good
    port: 20443
    protocol: HTTPS
    hostname: gateway.test
    tls: {certificateRefs: [{name: gateway}]}
  - name: foreign
    port: 20443
    protocol: HTTPS
    hostname: foreign.test
    tls: {certificateRefs: [{name: gateway, namespace: other}]}
---
kind: HTTPRoute
metadata: {name: it}
spec:
  parentRefs: [{name: outer}]
  hostnames: [gateway.test, foreign.test]
  rules: [{backendRefs: [{name: one, port: 80}]}]
";
    let bed = Setting::new(manifests).start();
    let came = bed.curl("gateway.test", "/", &["-v"]);
    assert!(
        came.contains("CN=gateway") && came.contains("backend one"),
        "{came}"
    );
    let came = bed.curl("foreign.test", "/", &["-v"]);
    assert!(
        came.contains("Fake Certificate") && came.contains("404 Not Found"),
        "{came}"
    );
    let texts = findings(&bed);
    assert!(
        texts.contains("listener foreign: no ReferenceGrant allows Secret other/gateway"),
        "{texts}"
    );
}

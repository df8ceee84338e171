//! A server that is started with what is rendered, backends that say what they got, and requests
//! in short form.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use turnpike_ingress::{Objects, Options, Rendering, judge, settle};
use turnpike_testkit::{Folder, Peer, Server};

/// Ports in renderings, which stand for those that the kernel gives.
const PORTS: &[(u16, &str)] = &[
    (20080, "%PORT%"),
    (20443, "%PORT_tls%"),
    (20246, "%PORT_status%"),
    (20442, "%PORT_passthrough%"),
    (20098, "%PORT_udp%"),
];

/// The server under test, which is beside our own program.
pub(crate) fn program() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_turnpike-ingress"));
    let program = own.with_file_name("turnpike");
    assert!(
        program.is_file(),
        "cargo build -p turnpike-server is needed first"
    );
    program
}

/// A running server with its rendering.
pub(crate) struct Bed {
    pub(crate) server: Server,
    pub(crate) rendering: Rendering,
    _files: Folder,
}

/// The manifests and options of a bed.
pub(crate) struct Setting {
    pub(crate) manifests: String,
    /// The keys of the ConfigMap, which has what the tests need already.
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) options: Options,
    files: Folder,
}

impl Setting {
    /// A setting with these manifests.
    pub(crate) fn new(manifests: impl Into<String>) -> Setting {
        let files = Folder::create().unwrap();
        let folder = files.path().display().to_string();
        let mut keys = BTreeMap::new();
        for (name, value) in [
            ("bind-address", "127.0.0.1".to_owned()),
            ("worker-processes", "1".to_owned()),
            ("access-log-path", format!("{folder}/access.log")),
            ("error-log-path", format!("{folder}/errors.log")),
        ] {
            keys.insert(name.to_owned(), value);
        }
        let options = Options {
            http_port: PORTS[0].0,
            https_port: PORTS[1].0,
            status_port: PORTS[2].0,
            config_map: Some("ingress/controller".to_owned()),
            files: files.path().to_path_buf(),
            temporary: files.path().to_path_buf(),
            ..Options::default()
        };
        Setting {
            manifests: manifests.into(),
            keys,
            options,
            files,
        }
    }

    /// A key of the ConfigMap.
    pub(crate) fn key(mut self, name: &str, value: &str) -> Setting {
        self.keys.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The objects.
    pub(crate) fn objects(&self) -> Objects {
        let mut objects = Objects::default();
        objects.read_text(&self.manifests).unwrap();
        objects.add(serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "controller", "namespace": "ingress"},
            "data": self.keys,
        }));
        objects
    }

    /// What is rendered, as far as the server takes it.
    pub(crate) fn render(&self) -> Rendering {
        let draft = self.files.path().join("draft.conf");
        settle(&self.objects(), &self.options, |rendering| {
            rendering.write_files()?;
            std::fs::write(&draft, &rendering.configuration).unwrap();
            judge(&program(), &draft)
        })
        .unwrap()
    }

    /// Starts the server.
    pub(crate) fn start(self) -> Bed {
        let rendering = self.render();
        let mut text = rendering.configuration.clone();
        for (port, name) in PORTS {
            text = text.replace(&port.to_string(), name);
        }
        let builder = Server::builder(program()).configuration(&text);
        Bed {
            server: builder.start(),
            rendering,
            _files: self.files,
        }
    }
}

impl Bed {
    /// Sends a request in short form (`GET /path` and fields) to a host, and returns the response.
    pub(crate) fn ask(&self, host: &str, request: &str) -> String {
        String::from_utf8_lossy(&self.server.exchange(written(host, request))).into_owned()
    }

    /// Checks a response: each text must be in it, and those behind `!` must not.
    pub(crate) fn check(&self, host: &str, request: &str, expected: &[&str]) {
        let response = self.ask(host, request);
        assert_has(
            &format!("{host}: {request}"),
            &response,
            expected,
            &self.rendering,
        );
    }

    /// As [`Bed::check`], at another port.
    pub(crate) fn check_at(&self, port: &str, host: &str, request: &str, expected: &[&str]) {
        let mut peer = Peer::connect(self.server.port_named(port));
        peer.send(written(host, request));
        let response = String::from_utf8_lossy(&peer.rest()).into_owned();
        assert_has(
            &format!("{host}: {request}"),
            &response,
            expected,
            &self.rendering,
        );
    }

    /// Asks by curl over HTTPS, with more arguments, and returns the response with its head.
    pub(crate) fn curl(&self, host: &str, target: &str, arguments: &[&str]) -> String {
        let port = self.server.port_named("tls");
        let output = std::process::Command::new("curl")
            .args(["-sS", "-i", "-k", "--max-time", "20", "--resolve"])
            .arg(format!("{host}:{port}:127.0.0.1"))
            .args(arguments)
            .arg(format!("https://{host}:{port}{target}"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A request in short form as it is sent.
fn written(host: &str, request: &str) -> String {
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{first} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for line in lines {
        text.push_str(line.trim());
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

/// Checks that texts are there, and that those behind `!` are not.
pub(crate) fn assert_has(what: &str, text: &str, expected: &[&str], rendering: &Rendering) {
    let folded = text.to_ascii_lowercase();
    for wanted in expected {
        let (is_wanted, wanted) = match wanted.strip_prefix('!') {
            Some(rest) => (false, rest),
            None => (true, *wanted),
        };
        let has = folded.contains(&wanted.to_ascii_lowercase());
        assert!(
            has == is_wanted,
            "{what}\n--- {} {wanted}\n--- came\n{text}\n--- findings\n{}",
            if is_wanted { "expected" } else { "unwanted" },
            rendering
                .findings
                .iter()
                .map(|finding| format!("{finding}\n"))
                .collect::<String>(),
        );
    }
}

/// A backend that answers with its name and the request. `?status=N` asks for a status, and
/// `?field=NAME:VALUE` for a field.
pub(crate) struct Backend {
    pub(crate) port: u16,
}

impl Backend {
    /// Starts it; it ends with the test.
    pub(crate) fn start(name: &'static str) -> Backend {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream, name));
            }
        });
        Backend { port }
    }
}

fn serve(mut stream: TcpStream, name: &str) {
    let mut received = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        while let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let length = field(&head, "content-length").parse().unwrap_or(0);
            while received.len() < end + 4 + length {
                match stream.read(&mut bytes) {
                    Ok(count) if count > 0 => received.extend_from_slice(&bytes[..count]),
                    _ => return,
                }
            }
            received.drain(..end + 4 + length);
            if stream.write_all(answer(&head, name).as_bytes()).is_err() {
                return;
            }
        }
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => received.extend_from_slice(&bytes[..count]),
            _ => return,
        }
    }
}

fn answer(head: &str, name: &str) -> String {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let parameter = |name: &str| {
        let mut parts = query.split('&').filter_map(|part| part.split_once('='));
        parts
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    };
    let status = parameter("status").unwrap_or("200");
    let extra = parameter("field").unwrap_or("X-None:1").replace("%20", " ");
    let body = format!("backend {name}\n{head}\n");
    format!(
        "HTTP/1.1 {status} Said\r\nContent-Length: {}\r\nServer: {name}\r\n{extra}\r\n\r\n{body}",
        body.len()
    )
}

/// The value of a field in a head; empty if it is not there.
fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.trim())
}

/// A Service with one endpoint on 127.0.0.1.
pub(crate) fn service(namespace: &str, name: &str, port: u16) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  clusterIP: 127.0.0.1
  ports: [{{name: web, port: 80, targetPort: {port}}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {name}-1
  namespace: {namespace}
  labels: {{kubernetes.io/service-name: {name}}}
addressType: IPv4
endpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]
ports: [{{name: web, port: {port}, protocol: TCP}}]
"
    )
}

/// An Ingress for one host. Annotations are lines of `name: value` without the prefix; paths are
/// `TYPE PATH SERVICE`, separated by `;`.
pub(crate) fn ingress(name: &str, host: &str, annotations: &str, paths: &str) -> String {
    ingress_in("default", name, host, annotations, paths)
}

/// As [`ingress`], in a namespace.
pub(crate) fn ingress_in(
    namespace: &str,
    name: &str,
    host: &str,
    annotations: &str,
    paths: &str,
) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  \
         namespace: {namespace}\n  annotations:\n    example.com/any: \"1\"\n"
    );
    for line in annotations
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
    {
        if line.starts_with(' ') {
            text.push_str(&format!("      {}\n", line.trim_start())); // of a snippet
        } else {
            text.push_str(&format!("    nginx.ingress.kubernetes.io/{line}\n"));
        }
    }
    text.push_str("spec:\n  ingressClassName: nginx\n  rules:\n");
    let host = if host.is_empty() {
        String::new()
    } else {
        format!("host: \"{host}\"\n    ")
    };
    text.push_str(&format!("  - {host}http:\n      paths:\n"));
    for path in paths.split(';').map(str::trim) {
        let words: Vec<&str> = path.split_whitespace().collect();
        let [kind, path, service] = words[..] else {
            panic!("a path is TYPE PATH SERVICE: {path}");
        };
        text.push_str(&format!(
            "      - path: '{path}'\n        pathType: {kind}\n        backend:\n          \
             service: {{name: {service}, port: {{number: 80}}}}\n"
        ));
    }
    text
}

//! The configurations that pages show: each is whole, loads as it is copied, and answers as the
//! page says.
//!
//! Comments after a block say what is asked: `<!-- asks: GET PATH STATUS [BODY] -->`, or instead of
//! the body `with FIELD: VALUE`; a PATH that begins with `http://HOST` is asked of that host.
//! `<!-- has: PATH TEXT -->` is a file that a reader has.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::support::tls::{certificate, openssl};
use crate::support::{TURNPIKE, stderr, turnpike};
use turnpike_testkit::mmdb::{self, Value};
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Folder, Server};

/// The blocks of a page that are marked as nginx configuration, each with the text up to the next
/// block of any kind.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```nginx\n") {
        let (block, after) = after.split_once("\n```").unwrap();
        blocks.push((block, after.split("\n```").next().unwrap()));
        rest = after;
    }
    blocks
}

/// The pages of the documentation and README.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["docs", "docs/directives"].map(|folder| root.join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let pages = entries.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md"));
    pages.chain([root.join("README.md")]).collect()
}

/// Does this for each page, some pages at a time.
fn for_each_page(judge: impl Fn(&Path, &str) -> usize + Sync) -> usize {
    let pages = pages();
    let count = |pages: &[PathBuf]| {
        let counts = pages.iter().map(|page| {
            let text = fs::read_to_string(page).unwrap();
            judge(page, &text)
        });
        counts.sum::<usize>()
    };
    std::thread::scope(|scope| {
        let chunks = pages.chunks(pages.len().div_ceil(WORKERS));
        let workers: Vec<_> = chunks.map(|chunk| scope.spawn(|| count(chunk))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    })
}

/// Pages that are tested at the same time: the tests of other files run beside them.
const WORKERS: usize = 4;

/// What a page says of an example's answer.
struct Question<'a> {
    path: &'a str,
    status: &'a str,
    expected: Option<Expected<'a>>,
}

enum Expected<'a> {
    Body(&'a str),
    Field(&'a str),
}

/// What stands in the comments of this kind.
fn comments<'a>(text: &'a str, kind: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!("<!-- {kind}: ");
    let lines = text.lines();
    lines.filter_map(move |line| line.strip_prefix(&begin)?.strip_suffix(" -->"))
}

fn questions(text: &str) -> Vec<Question<'_>> {
    let question = |line| {
        let mut words = str::splitn(line, 4, ' ').skip(1);
        Question {
            path: words.next().unwrap(),
            status: words.next().unwrap(),
            expected: words.next().map(|rest| match rest.strip_prefix("with ") {
                Some(field) => Expected::Field(field),
                None => Expected::Body(rest),
            }),
        }
    };
    comments(text, "asks").map(question).collect()
}

/// The response to a GET of HTTP/1.0, whose body is not in chunks, as text. The host is the first
/// name of a block's servers, unless the path names another one.
fn ask(block: &str, port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let name = block.split(" server_name ").nth(1);
    let name = name.and_then(|rest| rest.split([' ', ';']).next());
    let (host, path) = match path.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/').unwrap()),
        None => (name.unwrap_or("x"), path),
    };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// A block with the port of its server instead of 8080, free ports for its other servers, and ports
/// that refuse instead of those of its upstream servers, which are not here.
fn on_free_ports(block: &str, port: u16) -> (String, Vec<RefusedPort>) {
    let mut text = block.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    let mut refused = Vec::new();
    let ports = block.split("127.0.0.1:").skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        &rest[..end.unwrap_or(rest.len())]
    });
    let mut numbers: Vec<&str> = ports.filter(|number| *number != "8080").collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let address = format!("127.0.0.1:{number}");
        let other = if block.contains(&format!("listen {address}")) {
            turnpike_testkit::ports::reserve().unwrap()
        } else {
            let free = RefusedPort::new().unwrap();
            let number = free.number();
            refused.push(free);
            number
        };
        text = text.replace(&address, &format!("127.0.0.1:{other}"));
    }
    (text, refused)
}

#[test]
fn examples_answer_as_they_say() {
    let count = for_each_page(|_, page| {
        let asked = blocks(page).into_iter();
        let asked = asked.map(|(block, after)| (block, after, questions(after)));
        let asked = asked.filter(|(.., questions)| !questions.is_empty());
        let counts = asked.map(|(block, after, questions)| {
            let port = turnpike_testkit::ports::reserve().unwrap();
            let (text, _refused) = on_free_ports(&relocated(block), port);
            // The command line says what stands elsewhere for a test; the file is what is copied.
            let mut builder = Server::builder(TURNPIKE).own_name().configuration(&text);
            for (name, content) in files(block, after) {
                builder = builder.file(name, content);
            }
            let server = builder.start();
            for question in &questions {
                judge(block, port, question);
            }
            drop(server);
            questions.len()
        });
        counts.sum()
    });
    assert!(count >= 20, "the documentation asks {count} questions");
}

fn judge(block: &str, port: u16, question: &Question<'_>) {
    let Question { path, status, .. } = question;
    let response = ask(block, port, path);
    let begin = format!("HTTP/1.1 {status} ");
    assert!(response.starts_with(&begin), "{block}\n{path}: {response}");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    match question.expected {
        None => {}
        Some(Expected::Body(text)) => assert_eq!(body.trim_end(), text, "{block}\n{path}"),
        Some(Expected::Field(field)) => {
            let field = field.replace("x:8080", &format!("x:{port}"));
            let found = head.lines().any(|line| line == field);
            assert!(found, "{block}\n{path}: {field}: {head}");
        }
    }
}

/// Files that examples include, which packages install beside `nginx.conf`, and one in each folder
/// that a reader has.
const INCLUDED: &[(&str, &str)] = &[
    (
        "fastcgi.conf",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../contrib/etc/fastcgi.conf"
        )),
    ),
    (
        "fastcgi_params",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../contrib/etc/fastcgi_params"
        )),
    ),
    (
        "mime.types",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../conf/mime.types"
        )),
    ),
    ("logs/empty", ""),
    ("cache/empty", ""),
];

/// The files that a reader has beside an example, by their comments.
fn owned(after: &str) -> impl Iterator<Item = (&str, &str)> {
    let files = comments(after, "has").filter_map(|line| line.split_once(' '));
    files.map(|(path, text)| (path.trim_start_matches('/'), text))
}

/// The files that an example needs: those that all may include, those of its reader, and keys if it
/// names them.
fn files(block: &str, after: &str) -> Vec<(String, Vec<u8>)> {
    let texts = INCLUDED.iter().copied().chain(owned(after));
    let texts = texts.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let keys = KEYS.iter().filter(|_| block.contains(KEYS_FOLDER)).cloned();
    let countries = block.contains(COUNTRIES_FOLDER).then(countries);
    texts.chain(keys).chain(countries).collect()
}

/// The folder of keys in examples.
const KEYS_FOLDER: &str = "/etc/ssl/";

/// The folder of databases of countries in examples.
const COUNTRIES_FOLDER: &str = "/usr/share/GeoIP/";

/// A database of countries, in which the networks of examples (RFC 5737) have a country that is
/// nowhere.
fn countries() -> (String, Vec<u8>) {
    let code = Value::Map(vec![("iso_code", Value::Text("XX"))]);
    let record = Value::Map(vec![("country", code)]);
    let content = mmdb::database(&[(("192.0.2.0", 24), record)]);
    ("GeoLite2-Country.mmdb".to_owned(), content)
}

/// A block whose folders are those of a test, relative to its configuration.
fn relocated(block: &str) -> String {
    block
        .replace("/var/cache/turnpike", "cache")
        .replace("/var/lib/turnpike", "logs")
        .replace(KEYS_FOLDER, "")
        .replace(COUNTRIES_FOLDER, "")
        .replace(" /srv/", " srv/")
}

/// Certificates with keys, and a list of revoked ones, under the names that the pages use.
static KEYS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let folder = Folder::create().unwrap();
    let at = folder.path();
    let kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for file in ["example.com", "chain", "clients-ca", "servers-ca"] {
        certificate(at, file, "example.com", &kind);
    }
    let list = "[ca]\ndefault_ca=c\n[c]\ndatabase=index\ncrlnumber=number\n\
                default_md=sha256\ndefault_crl_days=5\n";
    folder.write("ca.conf", list).unwrap();
    folder.write("index", "").unwrap();
    folder.write("number", "01").unwrap();
    let ca = ["ca", "-config", "ca.conf", "-keyfile", "clients-ca.key"];
    let more = [
        "-cert",
        "clients-ca.pem",
        "-gencrl",
        "-out",
        "clients-ca.crl",
    ];
    openssl(at, &[&ca[..], &more].concat());
    let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let of_keys = |path: &PathBuf| {
        let ends = ["pem", "key", "crl"].map(Some);
        ends.contains(&path.extension().and_then(|end| end.to_str()))
    };
    let keys = entries.filter(of_keys).map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.to_owned(), fs::read(&path).unwrap())
    });
    keys.collect()
});

/// The families whose page must show a configuration, with the least number of them.
const SHOWN: &[(&str, usize)] = &[
    ("tls.md", 6),
    ("http2.md", 2),
    ("upstreams.md", 4),
    ("stream.md", 2),
    ("monitoring.md", 4),
];

/// Lines that only a configuration has.
const CONFIGURED: &[&str] = &[
    "    server {",
    "    location ",
    "    upstream ",
    "    listen ",
];

#[test]
fn configurations_in_the_documentation_are_marked_as_such() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, least) in SHOWN {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(blocks(&page).len() >= *least, "{name}");
        let outside = page.split("\n```").step_by(2);
        for line in outside.flat_map(str::lines) {
            let is_one = CONFIGURED.iter().any(|start| line.starts_with(start));
            assert!(
                !is_one,
                "{name}: a configuration that no test reads: {line}"
            );
        }
    }
}

#[test]
fn configurations_in_the_documentation_pass() {
    let count = for_each_page(|page, text| {
        let blocks = blocks(text);
        for (block, after) in &blocks {
            let folder = Folder::create().unwrap();
            for (name, content) in files(block, after) {
                folder.write(name, content).unwrap();
            }
            folder.write("nginx.conf", relocated(block)).unwrap();
            let output = turnpike(&folder.arguments(&["-t"]));
            let shown = stderr(&output);
            // An ordinary user may not have every port.
            let is_denied = |line: &str| {
                line.contains("] bind() to ") && line.ends_with("failed (13: Permission denied)")
            };
            let mut failures = shown.lines().filter(|line| line.contains("[emerg]"));
            assert!(
                shown.contains("syntax is ok") && failures.all(is_denied),
                "{}: {block}\n{shown}",
                page.display()
            );
        }
        blocks.len()
    });
    assert!(count > 0, "no page shows a configuration");
}

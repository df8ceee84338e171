//! Chains of certificates that are expired, mixed up, or in another order: what nginx serves is
//! served as it is written, with a warning, and what nginx refuses is refused.
//!
//! The same is tried with files whose lines are not as they should be: none of their certificates
//! is left out. OpenSSL makes the certificates, and its client shows what it got.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use turnpike_testkit::{Folder, Server, StartError, ports};

use crate::support::tls::{DH_PARAMETERS, NEW_KEY, TURNPIKE, configured, openssl, s_client};
use crate::support::{stderr, turnpike, wait_for};

const NGINX: &str = "/usr/sbin/nginx";

/// The certificates: the name, the issuer, and the first and the last day.
const CERTIFICATES: &[(&str, &str, &str, &str)] = &[
    ("root", "root", "2020", "2049"),
    ("other", "other", "2020", "2049"),
    ("int", "root", "2020", "2049"),
    ("leaf", "int", "2020", "2049"),
    ("old", "int", "2020", "2021"),
    ("future", "int", "2048", "2049"),
];

/// A configuration of the command `openssl ca`, which takes any dates.
const CA: &str = "
[ca]
default_ca = c
[c]
database = index
rand_serial = yes
new_certs_dir = .
default_md = sha256
unique_subject = no
policy = p
x509_extensions = e
[p]
commonName = supplied
[e]
basicConstraints = CA:TRUE
";

/// The parts of a certificate file, and the warning about it. Its key is that of the first part.
const SERVED: &[(&[&str], Option<&str>)] = &[
    (&["leaf"], None),
    (&["leaf", "int"], None),
    (&["leaf", "int", "root"], None),
    (&["root"], None),
    (
        &["old", "int"],
        Some("certificate 1 of \"%FILE%\" has expired"),
    ),
    (
        &["future", "int"],
        Some("certificate 1 of \"%FILE%\" is not valid yet"),
    ),
    (
        &["leaf", "root", "int"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (
        &["leaf", "other"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (
        &["leaf", "int", "other", "int"],
        Some("certificate 3 of \"%FILE%\" is not the issuer of certificate 2"),
    ),
    (
        &["leaf", "leaf", "int"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (&["leaf", "text", "int"], None),
];

/// The parts of a certificate file that is refused, the owner of the key, and why.
const REFUSED: &[(&[&str], &str, &str)] = &[
    // The issuer comes first.
    (&["int", "leaf"], "leaf", "key values mismatch"),
    (&["root", "int", "leaf"], "leaf", "key values mismatch"),
    // The certificate of another server.
    (&["old", "int"], "leaf", "key values mismatch"),
    (&["leaf", "cut"], "leaf", "PEM_read_bio_X509"),
    (&["cut", "leaf"], "leaf", "PEM_read_bio_X509"),
    (&["text"], "leaf", "PEM_read_bio_X509"),
];

fn keys() -> Folder {
    let keys = Folder::create().unwrap();
    let at = keys.path();
    keys.write("ca.conf", CA).unwrap();
    keys.write("index", "").unwrap();
    for (name, issuer, first, last) in CERTIFICATES {
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        let (subject, csr) = (format!("/CN={name}"), format!("{name}.csr"));
        let request = ["req", "-new", "-subj", &subject, "-keyout", &key];
        openssl(at, &[&request[..], &["-out", &csr], &NEW_KEY].concat());
        let (ca, ca_key) = (format!("{issuer}.pem"), format!("{issuer}.key"));
        let by: &[&str] = if name == issuer {
            &["-selfsign", "-keyfile", &key]
        } else {
            &["-cert", &ca, "-keyfile", &ca_key]
        };
        let [first, last] = [first, last].map(|year| format!("{year}0101000000Z"));
        let sign = ["ca", "-batch", "-notext", "-config", "ca.conf", "-in", &csr];
        let dates = ["-startdate", &first, "-enddate", &last, "-out", &pem];
        openssl(at, &[&sign[..], by, &dates].concat());
    }
    let leaf = keys.read("leaf.pem");
    let cut = leaf[..leaf.len() / 2].to_owned() + "\n-----END CERTIFICATE-----\n";
    keys.write("cut.pem", cut).unwrap();
    keys.write("text.pem", "Some text.\n").unwrap();
    keys
}

/// Writes the file of these parts; returns its name.
fn file(keys: &Folder, parts: &[&str]) -> String {
    let name = format!("{}.chain", parts.join("-"));
    let texts = parts.iter().map(|part| keys.read(format!("{part}.pem")));
    keys.write(&name, texts.collect::<String>()).unwrap();
    name
}

fn server_block(name: &str, file: &str, key: &str) -> String {
    format!(
        "server {{
            listen 127.0.0.1:%PORT% ssl;
            server_name {name};
            ssl_certificate %KEYS%/{file};
            ssl_certificate_key %KEYS%/{key}.key;
        }}\n"
    )
}

/// The certificates that a server shows, in their order.
fn shown(server: &Server, name: &str) -> Vec<String> {
    let options = ["-showcerts", "-servername", name];
    let said = s_client(server, "GET / HTTP/1.0\r\n\r\n", &options);
    let parts = said.split("-----BEGIN CERTIFICATE-----").skip(1);
    let body = |part: &str| part.split_once("-----END").unwrap().0.to_owned();
    parts.map(body).collect()
}

fn start(program: &Path, keys: &Folder, http: &str) -> Result<Server, StartError> {
    let configuration = configured(keys, http);
    Server::builder(program)
        .configuration(&configuration)
        .try_start()
}

#[test]
fn chains_are_served_as_nginx_serves_them_and_oddities_are_warnings() {
    let keys = keys();
    let folder = keys.path().display().to_string();
    let mut blocks = String::new();
    let mut files = Vec::new();
    for (at, (parts, _)) in SERVED.iter().enumerate() {
        let file = file(&keys, parts);
        blocks += &server_block(&format!("s{at}.test"), &file, parts[0]);
        files.push(file);
    }
    let servers = [Path::new(TURNPIKE), Path::new(NGINX)];
    let [ours, nginx] = servers.map(|program| start(program, &keys, &blocks).unwrap());
    let log = format!("{}{}", ours.output(), ours.log("error.log"));
    for (at, (parts, warning)) in SERVED.iter().enumerate() {
        let name = format!("s{at}.test");
        let chain = shown(&nginx, &name);
        let written = parts.iter().filter(|part| **part != "text");
        assert_eq!(chain.len(), written.count(), "{parts:?}");
        assert_eq!(shown(&ours, &name), chain, "{parts:?}");
        let file = format!("{folder}/{}", files[at]);
        match warning {
            Some(warning) => {
                let warning = warning.replace("%FILE%", &file);
                assert!(log.contains(&warning), "{parts:?}: {log}");
            }
            None => assert!(!log.contains(&file), "{parts:?}: {log}"),
        }
    }
}

/// Makes a certificate that expires in 60 hours.
fn soon(keys: &Folder) {
    let until = Command::new("date")
        .args(["-u", "-d", "+60 hours", "+%Y%m%d%H%M%SZ"])
        .output();
    let until = String::from_utf8(until.unwrap().stdout).unwrap();
    let sign = [
        "ca", "-batch", "-notext", "-config", "ca.conf", "-in", "leaf.csr",
    ];
    let by = [
        "-cert", "int.pem", "-keyfile", "int.key", "-out", "soon.pem",
    ];
    let dates = ["-startdate", "20200101000000Z", "-enddate", until.trim()];
    openssl(keys.path(), &[&sign[..], &by, &dates].concat());
}

#[test]
fn certificates_are_listed_with_their_days_and_warned_of_before_they_expire() {
    let keys = keys();
    soon(&keys);
    let blocks = [
        ("leaf", "leaf"),
        ("old", "old"),
        ("soon", "leaf"),
        ("leaf", "leaf"),
    ];
    let blocks = blocks
        .iter()
        .enumerate()
        .map(|(at, (file, key))| server_block(&format!("s{at}.test"), &format!("{file}.pem"), key));
    let configuration = configured(&keys, &blocks.collect::<String>());
    let main = "control %FOLDER%/control.sock;";
    let builder = Server::builder(TURNPIKE).configuration(&format!("{main} {configuration}"));
    let server = builder.start();
    let socket = server.folder().join("control.sock");
    wait_for("the socket", || UnixStream::connect(&socket).is_ok());
    let socket = socket.to_str().unwrap();
    let shown = |words: &[&str]| {
        let output = turnpike(&[words, &["--socket", socket]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let answer: Value = serde_json::from_str(&shown(&["certificates", "--json"])).unwrap();
    let list = answer["certificates"].as_array().unwrap();
    let rows: Vec<(String, Value)> = list
        .iter()
        .map(|row| {
            (
                row["certificate"].as_str().unwrap().to_owned(),
                row["names"].clone(),
            )
        })
        .collect();
    let folder = keys.path().display();
    let expected = ["old", "soon", "leaf"].map(|file| {
        let name = if file == "soon" { "leaf" } else { file };
        (format!("{folder}/{file}.pem"), Value::from(name))
    });
    assert_eq!(rows, expected);
    assert_eq!(list[1]["days_left"], 2);
    let text = shown(&["certificates"]);
    assert!(
        text.lines().nth(1).unwrap().ends_with("  expired"),
        "{text}"
    );
    let status = shown(&["status"]);
    let line = format!("\ncertificate    {folder}/old.pem has expired, before all others\n");
    assert!(status.contains(&line), "{status}");
    let log = server.log("error.log") + &server.output();
    let expiry = "turnpike_certificate_expiry_timestamp_seconds{certificate=";
    assert_eq!(shown(&["metrics"]).matches(expiry).count(), 3);
    for (file, what) in [("old", "has expired"), ("soon", "expires in 2 days")] {
        let warning = format!("certificate 1 of \"{folder}/{file}.pem\" {what}");
        assert!(log.contains(&warning), "{warning}: {log}");
    }
}

#[test]
fn chains_that_nginx_refuses_are_refused() {
    let keys = keys();
    for (parts, key, why) in REFUSED {
        let block = server_block("a.test", &file(&keys, parts), key);
        for program in [TURNPIKE, NGINX] {
            let Err(StartError::Ended(_, output)) = start(Path::new(program), &keys, &block) else {
                panic!("{program} started with {parts:?}");
            };
            assert!(output.contains(why), "{program} {parts:?}: {output}");
        }
    }
}

/// What becomes of a file.
enum Verdict {
    /// So many certificates of it are shown, as by nginx.
    Served(usize),
    /// Refused as by nginx, with these words.
    Refused(&'static str),
    /// nginx passes over its last certificate in silence.
    LeftOut,
}
use Verdict::{LeftOut, Refused, Served};

const BAD_END: &str = "(SSL: error:04800066:PEM routines::bad end line)";
const BAD_BASE64: &str = "(SSL: error:04800064:PEM routines::bad base64 decode)";
const NO_START: &str = "PEM_read_bio_X509_AUX() failed (SSL: error:0480006C:PEM routines::no start \
                        line:Expecting: TRUSTED CERTIFICATE)";

/// Files of certificates: `%leaf%` and the like are whole blocks without the last end of a line.
const WRITTEN: &[(&str, Verdict)] = &[
    ("%leaf%\n%int%", Served(2)),
    ("%leaf%\r\n%int% \t\n", Served(2)),
    ("\u{feff}%leaf%\n%int%\n", Served(2)),
    ("%leaf%\n\u{feff}%int%\n", Served(2)),
    ("%leaf OLD%\n%int OLD%\n", Served(2)),
    ("%leaf TRUSTED%\n%int%\n", Served(2)),
    ("subject=a\n%leaf%\n\nissuer=b\n%int%\nend", Served(2)),
    ("%key%\n%leaf%\n%dh%\n%int%\n%key%", Served(2)),
    ("%leaf%\n#%comment%\n", Served(1)),
    ("%leaf%\n%request%\n%int%\n", Served(2)),
    // Without the end of the last line, the next file's first line is glued to it.
    ("%leaf%%int%\n", Refused(BAD_END)),
    ("%leaf%%int%%root%\n", Refused(BAD_END)),
    ("%leaf%\n%int%%root%\n", Refused(BAD_END)),
    ("%key%%leaf%\n", Refused(BAD_END)),
    ("%leaf%%key%\n", Refused(BAD_END)),
    ("%leaf%\n%int%x\n", Refused(BAD_END)),
    ("%leaf%\n-----BEGIN DH PARAMETERS-----\n", Refused(BAD_END)),
    ("%leaf%\n%int BAD%\n", Refused(BAD_BASE64)),
    (
        "%leaf%\n%int HEADER%\n",
        Refused("error:0480006B:PEM routines::not proc type"),
    ),
    ("%leaf%\n%int SHORT%\n", Refused("PEM routines::ASN1 lib")),
    ("\u{feff}\u{feff}%leaf%\n", Refused(NO_START)),
    ("text", Refused(NO_START)),
    ("", Refused(NO_START)),
    ("%leaf%\n text%int%\n", LeftOut),
    ("%leaf%\n  %int%\n", LeftOut),
    ("%leaf%\n#%int%\n", LeftOut),
    ("%leaf%\n\n\u{feff}%int%\n", LeftOut),
    ("%leaf%\n\u{feff}\u{feff}%int%\n", LeftOut),
    ("%leaf%\n%int TRUSTED%\n", LeftOut),
    ("%leaf%\n%int LOWER%\n", LeftOut),
    ("%leaf%\n%int DASHES%\n", LeftOut),
    ("%leaf%\n%int SPACE%\n", LeftOut),
    ("%leaf%\n%int OTHER%\n", LeftOut),
    ("%leaf%\n%int RETURNS%\n", LeftOut),
    ("%leaf%\n\0\n%int%\n", LeftOut),
    ("%leaf ENDLESS%\n%int%\n", LeftOut),
];

/// A file of [`WRITTEN`].
fn written(keys: &Folder, text: &str) -> String {
    let read = |name: &str| keys.read(name).trim_end().to_owned();
    let mut parts = text.split('%');
    let mut file = parts.next().unwrap().to_owned();
    while let Some(word) = parts.next() {
        let (name, change) = word.split_once(' ').unwrap_or((word, ""));
        let block = match name {
            "key" => read("leaf.key"),
            "request" => read("int.csr"),
            "dh" => read("dh.pem"),
            "comment" => read("int.pem").replace('\n', "\n# "),
            name => read(&format!("{name}.pem")),
        };
        let (line, body) = block.split_once('\n').unwrap();
        file += &match change {
            "OLD" => block.replace("CERTIFICATE", "X509 CERTIFICATE"),
            "TRUSTED" => block.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
            "OTHER" => block.replace("CERTIFICATE", "X.509"),
            "LOWER" => block.replace("CERTIFICATE", "Certificate"),
            "SPACE" => block.replace("CERTIFICATE", "CERTIFICATE "),
            "DASHES" => block.replace("-----B", "----B"),
            "RETURNS" => block.replace('\n', "\r"),
            "ENDLESS" => block.split_once("-----END").unwrap().0.to_owned() + "-",
            "BAD" => format!("{line}\n!{body}"),
            "HEADER" => format!("{line}\nA: b\n\n{body}"),
            "SHORT" => format!("{line}\nMAA=\n-----END CERTIFICATE-----"),
            _ => block,
        };
        file += parts.next().unwrap_or_default();
    }
    file
}

/// A port that can be bound to.
static PORT: LazyLock<u16> = LazyLock::new(|| ports::reserve().unwrap());

/// Folders for temporary files, below the prefix.
const TEMPORARY: &str = "client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;
    uwsgi_temp_path u; scgi_temp_path s;";

/// What `-t` says of blocks at the level of http, and whether it likes them.
fn tested(program: &str, keys: &Folder, http: &str) -> (bool, String) {
    // As an ordinary user too, so not in nginx's own folders.
    let http = format!("{TEMPORARY} {http}");
    let http = configured(keys, &http).replace("%PORT%", &PORT.to_string());
    let folder = keys.path().display().to_string();
    keys.write("test.conf", http.replace("%FOLDER%", &folder))
        .unwrap();
    let file = format!("{folder}/test.conf");
    let arguments = [
        "-t",
        "-e",
        "stderr",
        "-g",
        "pid t.pid;",
        "-p",
        &folder,
        "-c",
        &file,
    ];
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

#[test]
fn no_certificate_of_a_file_is_left_out() {
    let keys = keys();
    keys.write("dh.pem", DH_PARAMETERS).unwrap();
    let mut blocks = String::new();
    let mut served = Vec::new();
    for (at, (text, verdict)) in WRITTEN.iter().enumerate() {
        let (name, file) = (format!("s{at}.test"), format!("{at}.chain"));
        let content = written(&keys, text);
        keys.write(&file, &content).unwrap();
        let block = server_block(&name, &file, "leaf");
        if let Served(count) = verdict {
            blocks += &block;
            served.push((text, name, *count));
            continue;
        }
        let [(ours, said), (nginx, said_by_nginx)] =
            [TURNPIKE, NGINX].map(|program| tested(program, &keys, &block));
        assert!(!ours, "{text:?}");
        match verdict {
            Refused(words) => {
                assert!(said.contains(words) && !nginx, "{text:?}: {said}");
                assert!(said_by_nginx.contains(words), "{text:?}: {said_by_nginx}");
            }
            _ => {
                let upper = content.to_ascii_uppercase();
                let (before, _) = upper.rsplit_once("BEGIN").unwrap();
                let line = 1 + before.matches('\n').count();
                let words = format!("begins in line {line} would be left out");
                assert!(said.contains(&words) && nginx, "{text:?}: {said}");
            }
        }
    }
    let servers = [Path::new(TURNPIKE), Path::new(NGINX)];
    let servers = servers.map(|program| start(program, &keys, &blocks).unwrap());
    for (text, name, count) in served {
        let [ours, nginx] = servers.each_ref().map(|server| shown(server, &name));
        assert_eq!(ours.len(), count, "{text:?}");
        assert_eq!(ours, nginx, "{text:?}");
    }
}

/// Directives that name a file of trusted certificates, and what their messages begin with.
const TRUSTING: &[(&str, &str)] = &[
    (
        "ssl_verify_client on; ssl_client_certificate %FILE%;",
        LOCATIONS,
    ),
    (
        "ssl_verify_client on; ssl_client_certificate %KEYS%/root.pem;
            ssl_trusted_certificate %FILE%;",
        LOCATIONS,
    ),
    (
        "ssl_verify_client on; ssl_client_certificate %KEYS%/root.pem; ssl_crl %FILE%;",
        LISTS,
    ),
    ("ssl_trusted_certificate %FILE%;", LOCATIONS),
    (
        "ssl_client_certificate %KEYS%/root.pem; ssl_crl %FILE%;",
        LISTS,
    ),
    (
        "location / { proxy_pass https://127.0.0.1:1; proxy_ssl_verify on;
            proxy_ssl_trusted_certificate %FILE%; }",
        LOCATIONS,
    ),
    (
        "location / { grpc_pass grpcs://127.0.0.1:1; grpc_ssl_verify on;
            grpc_ssl_trusted_certificate %KEYS%/root.pem; grpc_ssl_crl %FILE%; }",
        LISTS,
    ),
    (
        "location / { uwsgi_pass suwsgi://127.0.0.1:1; uwsgi_ssl_verify on;
            uwsgi_ssl_trusted_certificate %FILE%; }",
        LOCATIONS,
    ),
];

const LOCATIONS: &str = "SSL_CTX_load_verify_locations(\"%FILE%\") failed ";
const LISTS: &str = "X509_LOOKUP_load_file(\"%FILE%\") failed ";

/// Files of trusted certificates, what is said of them, and whether nginx says so too.
const TRUSTED: &[(&str, &str, bool)] = &[
    (
        "\u{feff}%root%\n\u{feff}%int TRUSTED%\n%other OLD%\n%list%\n",
        "",
        true,
    ),
    (
        "%root%%other%\n",
        "(SSL: error:04800066:PEM routines::bad end line \
         error:05880009:x509 certificate routines::PEM lib)",
        true,
    ),
    (
        "text",
        "(SSL: error:05800088:x509 certificate routines::no certificate or crl found)",
        true,
    ),
    (
        "%root%\n %other%\n",
        "(the block that begins in line %LINE% would be left out",
        false,
    ),
    (
        "%root%\n %list%\n",
        "(the block that begins in line %LINE% would be left out",
        false,
    ),
];

#[test]
fn no_trusted_certificate_is_left_out() {
    let keys = keys();
    let folder = keys.path().display().to_string();
    let revoke = [
        "-gencrl", "-keyfile", "root.key", "-cert", "root.pem", "-crldays", "9",
    ];
    let config = ["ca", "-config", "ca.conf", "-out", "list.pem"];
    openssl(keys.path(), &[&config[..], &revoke].concat());
    for (text, said_of_it, says_nginx) in TRUSTED {
        let content = written(&keys, text);
        let line = 1 + content
            .rsplit_once("BEGIN")
            .map_or(0, |it| it.0.matches('\n').count());
        keys.write("trusted.pem", &content).unwrap();
        let file = format!("{folder}/trusted.pem");
        for (directives, begin) in TRUSTING {
            let block = "server { listen 127.0.0.1:%PORT% ssl; ssl_certificate_key %KEYS%/leaf.key;
                ssl_certificate %KEYS%/leaf.pem;";
            let block = format!("{block} {directives} }}").replace("%FILE%", &file);
            let (ours, said) = tested(TURNPIKE, &keys, &block);
            let words = format!("{begin}{said_of_it}").replace("%FILE%", &file);
            let words = words.replace("%LINE%", &line.to_string());
            let is_good = said_of_it.is_empty();
            assert_eq!(ours, is_good, "{directives} {text:?}: {said}");
            assert!(
                is_good || said.contains(&words),
                "{directives} {text:?}: {said}"
            );
            if *says_nginx {
                let (nginx, said) = tested(NGINX, &keys, &block);
                assert_eq!(nginx, is_good, "{directives} {text:?}: {said}");
                assert!(
                    is_good || said.contains(&words),
                    "{directives} {text:?}: {said}"
                );
            }
        }
    }
}

#[test]
fn all_trusted_certificates_of_joined_files_count() {
    let keys = keys();
    let trusted = written(
        &keys,
        "\u{feff}%root%\n\u{feff}%int OLD%\n%other TRUSTED%\n",
    );
    keys.write("trusted.pem", trusted).unwrap();
    let block = server_block("a.test", "leaf.pem", "leaf").replace(
        "ssl_certificate_key",
        "ssl_verify_client on; ssl_client_certificate %KEYS%/trusted.pem;
        location / { return 200 [$ssl_client_verify]; }
        ssl_certificate_key",
    );
    let server = start(Path::new(TURNPIKE), &keys, &block).unwrap();
    for client in ["root", "leaf", "other"] {
        let file = |end: &str| {
            keys.path()
                .join(format!("{client}.{end}"))
                .display()
                .to_string()
        };
        let (certificate, key) = (file("pem"), file("key"));
        let more = ["-cert", &certificate, "-key", &key];
        let said = s_client(&server, "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n", &more);
        assert!(said.contains("[SUCCESS]"), "{client}: {said}");
    }
}

/// Files that nginx reads though nothing uses them, and its words.
const UNUSED: &[(&str, &str)] = &[
    ("ssl_dhparam dh.pem;", ""),
    (
        "ssl_dhparam none.pem;",
        "BIO_new_file(\"%KEYS%/none.pem\") failed",
    ),
    (
        "ssl_dhparam leaf.pem;",
        "PEM_read_bio_DHparams(\"%KEYS%/leaf.pem\") failed (SSL: error:0480006C:PEM routines::no \
         start line:Expecting: DH PARAMETERS)",
    ),
    (
        "ssl_trusted_certificate text.pem;",
        "SSL_CTX_load_verify_locations(\"%KEYS%/text.pem\") failed (SSL: error:05800088:x509 \
         certificate routines::no certificate or crl found)",
    ),
    (
        "ssl_trusted_certificate none.pem;",
        "SSL_CTX_load_verify_locations(\"%KEYS%/none.pem\")",
    ),
    (
        "ssl_crl none.pem;",
        "X509_LOOKUP_load_file(\"%KEYS%/none.pem\") failed",
    ),
    ("ssl_client_certificate none.pem;", ""),
];

#[test]
fn files_that_nothing_uses_are_read_as_by_nginx() {
    let keys = keys();
    keys.write("dh.pem", DH_PARAMETERS).unwrap();
    let folder = keys.path().display().to_string();
    for (directive, words) in UNUSED {
        let block = server_block("a.test", "leaf.pem", "leaf").replace('}', directive) + "}";
        for program in [TURNPIKE, NGINX] {
            let (is_good, said) = tested(program, &keys, &block);
            let words = words.replace("%KEYS%", &folder);
            assert_eq!(is_good, words.is_empty(), "{program} {directive}: {said}");
            assert!(said.contains(&words), "{program} {directive}: {said}");
        }
    }
}

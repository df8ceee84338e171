//! A certificate authority that speaks ACME (RFC 8555) over plain HTTP: enough for orders that are
//! shown by http-01, for renewals that it suggests (RFC 9773), and for refusals.
//!
//! The authority checks nonces, addresses and the answers to challenges, and OpenSSL signs what it
//! issues. It does not check the signatures of requests: that is left to the authorities of others.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::{Folder, wait_for};

/// Where a server shows that a name is its own (RFC 8555 section 8.3).
const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// A running authority; it stops when dropped.
#[derive(Debug)]
pub struct Authority {
    port: u16,
    folder: Folder,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    base: String,
    folder: PathBuf,
    is_stopped: AtomicBool,
    /// The port where servers show challenges; 0: not known yet.
    http_port: AtomicU16,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    nonces_given: u32,
    nonces: HashSet<String>,
    /// Nonces that are refused though they are good.
    refused_nonces: u32,
    /// The thumbprint of the account's key (RFC 7638).
    thumbprint: String,
    orders: Vec<Order>,
    /// Names that cannot be validated.
    refused: Vec<String>,
    /// The next renewals that are wanted at once.
    early_renewals: u32,
    /// Answers that are given instead of others: the first part of the path, the status, the fields
    /// and the body.
    instead: Vec<(&'static str, u16, &'static str, &'static str)>,
    /// Whether tokens are not base64url.
    spoils_tokens: bool,
}

/// An order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The names that it is for.
    pub names: Vec<String>,
    /// The certificate that it replaces (RFC 9773 section 5).
    pub replaces: Option<String>,
    /// Whether the certificate was issued.
    pub is_issued: bool,
    /// The names that were shown.
    shown: Vec<String>,
    is_refused: bool,
    chain: String,
}

/// A request.
struct Request {
    method: String,
    path: String,
    protected: String,
    payload: Vec<u8>,
}

/// An answer: the status, more fields, and the body.
struct Answer(u16, String, String);

impl Authority {
    /// Makes the authority's certificate, and listens on a port of 127.0.0.1.
    ///
    /// # Panics
    /// OpenSSL fails, or the kernel gives no port.
    pub fn start() -> Authority {
        let folder = Folder::create().expect("a folder");
        openssl(
            folder.path(),
            &[
                "req",
                "-x509",
                "-nodes",
                "-days",
                "30",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-subj",
                "/CN=authority",
                "-keyout",
                "root.key",
                "-out",
                "root.pem",
            ],
        );
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port for the authority");
        let port = listener
            .local_addr()
            .expect("the authority's address")
            .port();
        let shared = Arc::new(Shared {
            base: format!("http://127.0.0.1:{port}"),
            folder: folder.path().to_path_buf(),
            is_stopped: AtomicBool::new(false),
            http_port: AtomicU16::new(0),
            state: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &own));
        Authority {
            port,
            folder,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// The address of its directory.
    pub fn directory(&self) -> String {
        format!("{}/directory", self.shared.base)
    }

    /// The file with its certificate.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// The path of the challenge for a name of an order; both are counted from 0.
    pub fn challenge_path(&self, order: usize, name: usize) -> String {
        format!("{CHALLENGE_PATH}{}", token(&self.shared.base, order, name))
    }

    /// Says on which port of 127.0.0.1 servers show challenges. Challenges wait for that.
    pub fn look_at(&self, port: u16) {
        self.shared.http_port.store(port, Ordering::Release);
    }

    /// Refuses every challenge for a name.
    pub fn refuse(&self, name: &str) {
        self.shared.lock().refused.push(name.to_owned());
    }

    /// Refuses the next good nonces, as authorities do whose nonces have a short life.
    pub fn refuse_nonces(&self, count: u32) {
        self.shared.lock().refused_nonces = count;
    }

    /// Wants the next certificates that it is asked about renewed at once.
    pub fn want_renewals(&self, count: u32) {
        self.shared.lock().early_renewals = count;
    }

    /// Answers the next request for a place, such as `orders`, with a status, fields and a body.
    pub fn answer_instead(
        &self,
        place: &'static str,
        status: u16,
        fields: &'static str,
        body: &'static str,
    ) {
        let mut state = self.shared.lock();
        state.instead.push((place, status, fields, body));
    }

    /// Gives tokens that are not base64url.
    pub fn spoil_tokens(&self) {
        self.shared.lock().spoils_tokens = true;
    }

    /// The orders so far.
    pub fn orders(&self) -> Vec<Order> {
        self.shared.lock().orders.clone()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the acceptor
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join(); // a panic there was printed there
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_stopped.load(Ordering::Acquire) {
            return;
        }
        let (Ok(stream), shared) = (stream, Arc::clone(shared)) else {
            continue;
        };
        std::thread::spawn(move || shared.serve(stream));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        let Some(request) = read(&stream) else {
            return;
        };
        let Answer(status, fields, body) = match self.refusal(&request) {
            Some(refusal) => refusal,
            None => self.answer(&request),
        };
        let nonce = {
            let mut state = self.lock();
            state.nonces_given += 1;
            let nonce = format!("nonce{}", state.nonces_given);
            state.nonces.insert(nonce.clone());
            nonce
        };
        let length = body.len();
        let body = if request.method == "HEAD" { "" } else { &body };
        let text = format!(
            "HTTP/1.1 {status} OK\r\nReplay-Nonce: {nonce}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n{fields}\r\n{body}"
        );
        let _ = (&stream).write_all(text.as_bytes()); // the client may have gone
    }

    /// Why a signed request is not looked at.
    fn refusal(&self, request: &Request) -> Option<Answer> {
        if request.method != "POST" {
            return None;
        }
        let url = field(&request.protected, "url");
        if url != Some(&format!("{}{}", self.base, request.path)) {
            return Some(problem(401, "unauthorized", "the url is another one"));
        }
        let nonce = field(&request.protected, "nonce").unwrap_or_default();
        let mut state = self.lock();
        if !state.nonces.remove(nonce) {
            return Some(problem(
                400,
                "badNonce",
                "the nonce was not given or is used",
            ));
        }
        if state.refused_nonces > 0 {
            state.refused_nonces -= 1;
            return Some(problem(400, "badNonce", "the nonce is too old"));
        }
        None
    }

    fn answer(&self, request: &Request) -> Answer {
        let (kind, number) = request.path[1..]
            .split_once('/')
            .unwrap_or((&request.path[1..], ""));
        {
            let instead = &mut self.lock().instead;
            if let Some(at) = instead.iter().position(|(place, ..)| *place == kind) {
                let (_, status, fields, body) = instead.remove(at);
                return Answer(status, fields.to_owned(), body.to_owned());
            }
        }
        let payload = String::from_utf8_lossy(&request.payload);
        let mut numbers = number
            .splitn(2, '/')
            .map(|number| number.parse().unwrap_or(0));
        let (order, name) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        match kind {
            "directory" => self.directory(),
            "nonce" => Answer(200, String::new(), String::new()),
            "account" => {
                if field(&request.protected, "kty").is_some() {
                    self.lock().thumbprint = thumbprint(&request.protected);
                }
                self.located(201, "account/1", r#"{"status":"valid"}"#.to_owned())
            }
            "orders" => self.order(&payload),
            "order" => self.located(200, &request.path[1..], self.order_text(order)),
            "authorization" => Answer(200, String::new(), self.authorization_text(order, name)),
            "challenge" => {
                self.validate(order, name);
                // Other authorities look later, so the order alone tells what was found.
                let text = self.challenge_text(order, name, "processing");
                Answer(200, String::new(), text)
            }
            "finalize" => self.finalize(order, &payload),
            "certificate" => Answer(200, String::new(), self.lock().orders[order].chain.clone()),
            "renewal" => self.renewal(),
            _ => problem(404, "malformed", "there is no such place"),
        }
    }

    fn directory(&self) -> Answer {
        let base = &self.base;
        let text = format!(
            r#"{{"newNonce":"{base}/nonce","newAccount":"{base}/account",
                "newOrder":"{base}/orders","renewalInfo":"{base}/renewal"}}"#
        );
        Answer(200, String::new(), text)
    }

    fn located(&self, status: u16, path: &str, body: String) -> Answer {
        Answer(status, format!("Location: {}/{path}\r\n", self.base), body)
    }

    fn order(&self, payload: &str) -> Answer {
        let names = payload.split(r#""value":""#).skip(1);
        let names = names.filter_map(|rest| rest.split('"').next());
        let order = Order {
            names: names.map(str::to_owned).collect(),
            replaces: field(payload, "replaces").map(str::to_owned),
            ..Order::default()
        };
        let number = {
            let mut state = self.lock();
            state.orders.push(order);
            state.orders.len() - 1
        };
        self.located(201, &format!("order/{number}"), self.order_text(number))
    }

    fn order_text(&self, number: usize) -> String {
        let (base, order) = (&self.base, self.lock().orders[number].clone());
        let status = match (order.is_refused, order.is_issued) {
            (true, _) => "invalid",
            (_, true) => "valid",
            _ if order.shown.len() == order.names.len() => "ready",
            _ => "pending",
        };
        let places =
            (0..order.names.len()).map(|name| format!(r#""{base}/authorization/{number}/{name}""#));
        let places = places.collect::<Vec<_>>().join(",");
        let replaces = order.replaces.map(|of| format!(r#","replaces":"{of}""#));
        let replaces = replaces.unwrap_or_default();
        format!(
            r#"{{"status":"{status}","authorizations":[{places}],
                "finalize":"{base}/finalize/{number}",
                "certificate":"{base}/certificate/{number}"{replaces}}}"#
        )
    }

    fn authorization_text(&self, number: usize, name: usize) -> String {
        let text = self.lock().orders[number].names[name].clone();
        let status = self.status(number, name);
        let challenge = self.challenge_text(number, name, status);
        format!(
            r#"{{"identifier":{{"type":"dns","value":"{text}"}},"status":"{status}",
                "challenges":[{challenge}]}}"#
        )
    }

    fn status(&self, number: usize, name: usize) -> &'static str {
        let order = &self.lock().orders[number];
        match (order.is_refused, order.shown.contains(&order.names[name])) {
            (true, _) => "invalid",
            (_, true) => "valid",
            _ => "pending",
        }
    }

    fn challenge_text(&self, number: usize, name: usize, status: &str) -> String {
        let (base, mut token) = (&self.base, token(&self.base, number, name));
        if self.lock().spoils_tokens {
            token.push_str("/../x");
        }
        let error = match status {
            "invalid" => {
                r#","error":{"type":"urn:ietf:params:acme:error:unauthorized","detail":"refused"}"#
            }
            _ => "",
        };
        format!(
            r#"{{"type":"http-01","url":"{base}/challenge/{number}/{name}",
                "token":"{token}","status":"{status}"{error}}}"#
        )
    }

    /// Looks whether a server shows the answer to a challenge.
    fn validate(&self, number: usize, name: usize) {
        let text = self.lock().orders[number].names[name].clone();
        let token = token(&self.base, number, name);
        let shown = wait_for(|| match self.http_port.load(Ordering::Acquire) {
            0 => None,
            port => Some(fetch(port, &text, &format!("{CHALLENGE_PATH}{token}"))),
        });
        let mut state = self.lock();
        let expected = format!("{token}.{}", state.thumbprint);
        let is_shown = shown.flatten().as_deref() == Some(&expected);
        let is_refused = state.refused.contains(&text);
        let order = &mut state.orders[number];
        if is_shown && !is_refused {
            order.shown.push(text);
        } else {
            order.is_refused = true;
        }
    }

    fn finalize(&self, number: usize, payload: &str) -> Answer {
        let request = field(payload, "csr").and_then(base64url);
        let Some(request) = request else {
            return problem(400, "badCSR", "there is none");
        };
        let file = |kind: &str| format!("order{number}.{kind}");
        let (der, pem) = (file("der"), file("pem"));
        std::fs::write(self.folder.join(&der), request).expect("a file");
        let extensions = "authorityKeyIdentifier=keyid";
        std::fs::write(self.folder.join("extensions"), extensions).expect("a file");
        openssl(
            &self.folder,
            &[
                "x509",
                "-req",
                "-inform",
                "DER",
                "-in",
                &der,
                "-CA",
                "root.pem",
                "-CAkey",
                "root.key",
                "-days",
                "90",
                "-copy_extensions",
                "copyall",
                "-extfile",
                "extensions",
                "-out",
                &pem,
            ],
        );
        let chain = std::fs::read_to_string(self.folder.join(&pem)).expect("a certificate");
        {
            let order = &mut self.lock().orders[number];
            (order.chain, order.is_issued) = (chain, true);
        }
        self.located(200, &format!("order/{number}"), self.order_text(number))
    }

    /// When a certificate is to be renewed: some are at once, others never.
    fn renewal(&self) -> Answer {
        let mut state = self.lock();
        let year = match state.early_renewals.checked_sub(1) {
            Some(left) => {
                state.early_renewals = left;
                2020
            }
            None => 2200,
        };
        let text = format!(
            r#"{{"suggestedWindow":{{"start":"{year}-01-01T00:00:00Z",
                "end":"{year}-01-02T00:00:00Z"}}}}"#
        );
        Answer(200, "Retry-After: 3600\r\n".to_owned(), text)
    }
}

/// The token of a challenge. No other authority gives the same (RFC 8555 section 8.3 wants them
/// unique): a server may have orders with several.
fn token(base: &str, order: usize, name: usize) -> String {
    to_base64url(format!("{base}/{order}/{name}").as_bytes())
}

fn problem(status: u16, kind: &str, detail: &str) -> Answer {
    let text = format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"{detail}"}}"#);
    Answer(status, String::new(), text)
}

/// Reads a request; `None`: it is cut.
fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let lower = line.trim_end().to_ascii_lowercase();
        if lower.is_empty() {
            break;
        }
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let part = |name| field(&body, name).and_then(base64url).unwrap_or_default();
    Some(Request {
        method,
        path,
        protected: String::from_utf8(part("protected")).ok()?,
        payload: part("payload"),
    })
}

/// What a server shows at a path; `None`: nothing.
fn fetch(port: u16, host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

/// The text of a member of a JSON object, which needs no escapes.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    rest.split('"').next()
}

/// The thumbprint of the key in a protected header (RFC 7638 section 3).
fn thumbprint(protected: &str) -> String {
    let member = |name| field(protected, name).unwrap_or_default();
    let (curve, kind, x, y) = (member("crv"), member("kty"), member("x"), member("y"));
    let key = format!(r#"{{"crv":"{curve}","kty":"{kind}","x":"{x}","y":"{y}"}}"#);
    let mut digest = Command::new("openssl");
    let digest = digest.args(["dgst", "-sha256", "-r"]);
    let mut digest = digest
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl");
    let input = digest.stdin.take();
    input
        .expect("an input")
        .write_all(key.as_bytes())
        .expect("openssl reads");
    let output = digest.wait_with_output().expect("openssl");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a digest");
    let digest: Vec<u8> = (0..64).step_by(2).map(byte).collect();
    to_base64url(&digest)
}

/// The digits of base64url (RFC 4648 section 5).
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn to_base64url(bytes: &[u8]) -> String {
    let mut bits = String::new();
    for byte in bytes {
        let _ = write!(bits, "{byte:08b}"); // a String takes all
    }
    let digits = bits.as_bytes().chunks(6).map(|digit| {
        let bits = |value, bit: &u8| value * 2 + usize::from(*bit == b'1');
        let value: usize = digit.iter().fold(0, bits) << (6 - digit.len());
        char::from(DIGITS[value])
    });
    digits.collect()
}

fn base64url(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut value, mut bits) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes() {
        let digit = DIGITS.iter().position(|known| *known == digit)?;
        value = (value << 6 | digit as u32) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits) as u8);
        }
    }
    Some(bytes)
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("openssl");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
}

#[cfg(test)]
mod tests {
    //! The texts of the protocol.

    use super::{base64url, field, thumbprint, to_base64url};

    #[test]
    fn texts_are_base64url() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo\xff", "Zm__"),
            (b"foob", "Zm9vYg"),
        ] {
            assert_eq!(to_base64url(bytes), text);
            assert_eq!(base64url(text).as_deref(), Some(bytes));
        }
        assert_eq!(base64url("a+"), None);
    }

    #[test]
    fn members_are_found() {
        let json = r#"{"nonce":"n1","url":"http://a/b"}"#;
        assert_eq!(field(json, "nonce"), Some("n1"));
        assert_eq!(field(json, "url"), Some("http://a/b"));
        assert_eq!(field(json, "kid"), None);
    }

    #[test]
    fn a_thumbprint_is_the_digest_of_the_keys_members_in_order() {
        let header = r#"{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AQ"}}"#;
        // Computed by Python's hashlib of {"crv":"P-256","kty":"EC","x":"AA","y":"AQ"}.
        let print = "fpsA8udergWQQtZ5ijw9k_6RoFRa-SBsNr8jkweRkU4";
        assert_eq!(thumbprint(header), print);
    }
}

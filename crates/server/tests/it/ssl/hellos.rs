//! Hellos of TLS clients: what they offer, what is no hello, and records that are damaged or cut:
//! their connection ends by the alert of RFC 8446 and a line in the log, and others are served.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage,
    OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::pki_types::ServerName;
use rustls::{
    CipherSuiteCommon, ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType,
    SupportedCipherSuite, Tls13CipherSuite,
};
use turnpike_testkit::{Server, wait_for};

use crate::support::tls::{TURNPIKE, configured, curl, keys, s_client, start};
use crate::support::tls_peer;

/// The content type of an alert, and the level of one that ends the connection.
const ALERT: u8 = 0x15;
const FATAL: u8 = 2;

/// The alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;

/// The reason in the log where the bytes are not what they should be.
const CORRUPT: &str = "received corrupt message of type ";

/// Bytes of the largest record.
const RECORD_BYTES_MAX: usize = 1 << 14;

/// A hello with one extension, in records. The extension and the list of extensions may say another
/// length than theirs.
fn hello(extension: &[u8], extension_length: usize, list_length: usize) -> Vec<u8> {
    let two = |length: usize| (length as u16).to_be_bytes();
    // The version, 32 random bytes, no session, one cipher suite, no compression.
    let before = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let kind = [0, 0x15];
    let after = [
        &two(list_length)[..],
        &kind,
        &two(extension_length),
        extension,
    ]
    .concat();
    let body = [before, after].concat();
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1, length[1], length[2], length[3]], &body[..]].concat();
    message.chunks(RECORD_BYTES_MAX).flat_map(record).collect()
}

#[test]
fn the_offered_signature_algorithms_are_a_variable() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% return 200 \"<$ssl_sigalgs>\"; }");
    let request = "GET / HTTP/1.0\r\n\r\n";
    let cases = [
        ("ECDSA+SHA256", "<ecdsa_secp256r1_sha256>"),
        (
            "RSA-PSS+SHA384:ECDSA+SHA256:RSA+SHA256",
            "<rsa_pss_rsae_sha384:ecdsa_secp256r1_sha256:rsa_pkcs1_sha256>",
        ),
    ];
    for (offered, expected) in cases {
        let output = s_client(&server, request, &["-tls1_2", "-sigalgs", offered]);
        assert!(output.contains(expected), "{output}");
    }
}

/// A record of the handshake with this content.
fn record(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[0x16, 3, 1][..], &length, content].concat()
}

/// What a client begins with, its bytes, the alert, and the reason in the log.
type Beginning = (&'static str, Vec<u8>, u8, &'static str);

fn wrong_hellos() -> Vec<Beginning> {
    vec![
        (
            "an extension that is longer than the list",
            hello(&[0; 9], 60_000, 13),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "a list that is longer than the hello",
            hello(&[0; 9], 9, 60_000),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "a list that is shorter than its extension",
            hello(&[0; 9], 9, 5),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "an extension of 65 KB",
            hello(&[0; 65_000], 65_000, 65_004),
            HANDSHAKE_FAILURE,
            "peer is incompatible",
        ),
        (
            "a hello of 16 MB",
            b"\x16\x03\x01\x00\x06\x01\xff\xff\xff\x03\x03".to_vec(),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "a hello of no bytes",
            record(&[1, 0, 0, 0]),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "a hello that is cut",
            record(&[1, 0, 0, 4, 3, 3, 7, 7]),
            DECODE_ERROR,
            CORRUPT,
        ),
    ]
}

fn wrong_records() -> Vec<Beginning> {
    vec![
        (
            "a record that is too long",
            b"\x16\x03\x01\xff\xffgarbage".to_vec(),
            RECORD_OVERFLOW,
            CORRUPT,
        ),
        (
            "a record of no bytes",
            b"\x16\x03\x01\x00\x00".to_vec(),
            UNEXPECTED_MESSAGE,
            CORRUPT,
        ),
        (
            "a record of no kind",
            b"\x80\x03\x01\x00\x05garba".to_vec(),
            UNEXPECTED_MESSAGE,
            CORRUPT,
        ),
        (
            "a version that is none",
            b"\x16\x07\x07\x00\x05garba".to_vec(),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "garbage in a record",
            record(b"garba"),
            DECODE_ERROR,
            CORRUPT,
        ),
        (
            "the end of a handshake",
            record(&[20, 0, 0, 0]),
            UNEXPECTED_MESSAGE,
            "received unexpected handshake message",
        ),
    ]
}

#[test]
fn what_is_no_hello_ends_its_own_connection_by_an_alert() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let mut wrong = Vec::new();
    for (name, bytes, alert, reason) in wrong_hellos().into_iter().chain(wrong_records()) {
        let failed = format!("SSL_do_handshake() failed (SSL: {reason}");
        let before = server.log("error.log").matches(&failed).count();
        let peer = server.connect();
        // The server may have closed it before all is sent.
        let _ = peer.stream().write_all(&bytes);
        let mut answer = Vec::new();
        let _ = peer.stream().read_to_end(&mut answer);
        if answer != [ALERT, 3, 3, 0, 2, FATAL, alert] {
            wrong.push(format!("{name}: {answer:?}"));
        }
        let logged = wait_for(|| {
            let found = server.log("error.log").matches(&failed).count();
            (found > before).then_some(())
        });
        assert!(logged.is_some(), "{name}: {}", server.log("error.log"));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(curl(&server, "a.test", "/", &[]), "here");
}

/// A client whose handshake is complete.
struct Open {
    session: ClientConnection,
    socket: TcpStream,
}

impl Open {
    fn new(server: &Server, config: ClientConfig) -> Open {
        let name = ServerName::try_from("a.test").unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut socket).unwrap();
        }
        while session.wants_write() {
            session.write_tls(&mut socket).unwrap();
        }
        // The tickets that follow show that the server's handshake is complete too.
        session.read_tls(&mut socket).unwrap();
        session.process_new_packets().unwrap();
        Open { session, socket }
    }

    /// The record of a request.
    fn request(&mut self) -> Vec<u8> {
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        self.session.writer().write_all(request).unwrap();
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// What the server says to these bytes: an answer, or why the session ends.
    fn say(mut self, bytes: &[u8]) -> Result<String, String> {
        self.socket.write_all(bytes).unwrap();
        self.socket.shutdown(Shutdown::Write).unwrap();
        while self
            .session
            .read_tls(&mut self.socket)
            .is_ok_and(|read| read > 0)
        {
            if let Err(error) = self.session.process_new_packets() {
                return Err(error.to_string());
            }
        }
        let mut answer = String::new();
        let _ = self.session.reader().read_to_string(&mut answer);
        Ok(answer)
    }
}

/// A hello of this version, with these cipher suites, and extensions that may follow one another: a
/// group with its format, and an algorithm for signatures.
fn offer(version: [u8; 2], suites: &[u8], extensions: &[&[u8]]) -> Vec<u8> {
    let two = |length: usize| (length as u16).to_be_bytes();
    let extensions = extensions.concat();
    let mut body = [
        &version[..],
        &[7; 32],
        &[0],
        &two(suites.len()),
        suites,
        &[1, 0],
    ]
    .concat();
    if !extensions.is_empty() {
        body.extend([&two(extensions.len())[..], &extensions].concat());
    }
    let length = two(body.len());
    record(&[&[1, 0, length[0], length[1]], &body[..]].concat())
}

const GROUPS: &[u8] = &[0, 10, 0, 4, 0, 2, 0, 0x17, 0, 11, 0, 2, 1, 0];
const SIGNATURES: &[u8] = &[0, 13, 0, 4, 0, 2, 4, 3];
const VERSIONS_1_3: &[u8] = &[0, 43, 0, 3, 2, 3, 4];
const KEY_SHARES: &[u8] = &[0, 51, 0, 2, 0, 0];
const HTTP_1_0: &[u8] = &[
    0, 16, 0, 11, 0, 9, 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'0',
];
const HTTP_0_9: &[u8] = &[
    0, 16, 0, 11, 0, 9, 8, b'h', b't', b't', b'p', b'/', b'0', b'.', b'9',
];
const NO_PROTOCOL: &[u8] = &[0, 16, 0, 4, 0, 2, 1, b'x'];

/// ECDHE-ECDSA-AES128-GCM-SHA256, what says that a client has fallen back (RFC 7507), and
/// TLS_AES_128_GCM_SHA256.
const SUITE: &[u8] = &[0xc0, 0x2b];
const FALLBACK: &[u8] = &[0xc0, 0x2b, 0x56, 0];
const FALLBACK_1_3: &[u8] = &[0x13, 1, 0x56, 0];

/// The version, the suites and the extensions of a hello, the server (`A` has TLS 1.2 and 1.3, `B`
/// TLS 1.2), and the first bytes of the answer: an alert with its record, or the handshake.
type Offered = (
    [u8; 2],
    &'static [u8],
    &'static [&'static [u8]],
    &'static str,
    &'static [u8],
);

const HANDSHAKE: &[u8] = &[22];

const OFFERED: &[Offered] = &[
    ([3, 3], SUITE, &[GROUPS, SIGNATURES], "A", HANDSHAKE),
    // Clients of old versions have no algorithms for signatures.
    (
        [3, 2],
        SUITE,
        &[GROUPS],
        "A",
        &[ALERT, 3, 2, 0, 2, FATAL, 70],
    ),
    (
        [3, 2],
        SUITE,
        &[GROUPS, SIGNATURES],
        "A",
        &[ALERT, 3, 2, 0, 2, FATAL, 70],
    ),
    ([3, 1], SUITE, &[], "B", &[ALERT, 3, 1, 0, 2, FATAL, 70]),
    (
        [3, 0],
        SUITE,
        &[],
        "A",
        &[ALERT, 3, 0, 0, 2, FATAL, HANDSHAKE_FAILURE],
    ),
    (
        [3, 2],
        FALLBACK,
        &[GROUPS],
        "A",
        &[ALERT, 3, 2, 0, 2, FATAL, 70],
    ),
    (
        [3, 3],
        FALLBACK,
        &[GROUPS, SIGNATURES],
        "A",
        &[ALERT, 3, 3, 0, 2, FATAL, 86],
    ),
    ([3, 3], FALLBACK, &[GROUPS, SIGNATURES], "B", HANDSHAKE),
    (
        [3, 3],
        FALLBACK_1_3,
        &[GROUPS, SIGNATURES, VERSIONS_1_3, KEY_SHARES],
        "A",
        HANDSHAKE,
    ),
    (
        [3, 3],
        SUITE,
        &[GROUPS, SIGNATURES, HTTP_1_0],
        "A",
        HANDSHAKE,
    ),
    (
        [3, 3],
        SUITE,
        &[GROUPS, SIGNATURES, HTTP_0_9],
        "B",
        HANDSHAKE,
    ),
    (
        [3, 3],
        SUITE,
        &[GROUPS, SIGNATURES, NO_PROTOCOL],
        "A",
        &[ALERT, 3, 3, 0, 2, FATAL, 120],
    ),
];

#[test]
fn offers_are_answered_as_by_nginx() {
    let keys = keys();
    let http = "
        server { %SECURE% ssl_protocols TLSv1.2 TLSv1.3; }
        server {
            listen 127.0.0.1:%PORT_B% ssl; ssl_protocols TLSv1.2;
            ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/ec.key;
        }";
    for program in [TURNPIKE, "/usr/sbin/nginx"] {
        let server = Server::builder(program)
            .configuration(&configured(&keys, http))
            .start();
        for (version, suites, extensions, port, expected) in OFFERED {
            let port = match *port {
                "A" => server.port(),
                port => server.port_named(port),
            };
            let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
            socket
                .write_all(&offer(*version, suites, extensions))
                .unwrap();
            let mut answer = vec![0; expected.len()];
            let read = socket.read_exact(&mut answer).map(|()| &*answer);
            assert_eq!(
                read.ok(),
                Some(*expected),
                "{program}: {version:?} {suites:?} {extensions:?}"
            );
        }
    }
}

/// Names that DNS cannot have, for which nginx serves the default server: rustls refuses them
/// before the server sees the hello, which cannot be changed, since both sides hash its bytes.
const REFUSED_NAMES: &[&str] = &[
    "a..b",
    ".a.test",
    "-a.test",
    "a-.test",
    "a b",
    "a.test:443",
    "[::1]",
    "www.10.0.0.229",
    "0123456789012345678901234567890123456789012345678901234567890123.test",
];

/// Names that are served, by the default server: it is the only one.
const SERVED_NAMES: &[&str] = &["a_b.test", "10.0.0.229", "::1", "a.test.", "xn--a.test"];

/// A hello for a server name (RFC 6066 section 3).
fn named_hello(name: &str) -> Vec<u8> {
    let length = name.len() as u8;
    let before = [0, 0, 0, length + 5, 0, length + 3, 0, 0, length];
    let name = [&before[..], name.as_bytes()].concat();
    offer([3, 3], SUITE, &[&name, GROUPS, SIGNATURES])
}

#[test]
fn a_server_name_that_dns_cannot_have_is_refused_and_the_log_says_why() {
    let keys = keys();
    let secure = "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/ec.key;";
    let http = format!(
        "server {{ %SECURE% }} }} stream {{ server {{ listen 127.0.0.1:%PORT_B% ssl;
        {secure} return here; }}"
    );
    let server = start(&keys, &http);
    let ports = [server.port(), server.port_named("B")];
    let first = |port: u16, name: &str| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.write_all(&named_hello(name)).unwrap();
        let mut answer = [0; 7];
        socket.read_exact(&mut answer).unwrap();
        answer
    };
    for name in REFUSED_NAMES {
        for port in ports {
            let alert = [ALERT, 3, 3, 0, 2, FATAL, ILLEGAL_PARAMETER];
            assert_eq!(first(port, name), alert, "{name}");
        }
        let failed = format!(
            "SSL_do_handshake() failed (SSL: the client asked for the server name \"{name}\", \
             which DNS cannot have: it must send a host name without a port and brackets, or \
             none) while SSL handshaking, client: 127.0.0.1, server: "
        );
        let logged = || server.log("error.log").matches(&failed).count() == ports.len();
        assert!(
            wait_for(|| logged().then_some(())).is_some(),
            "{failed}: {}",
            server.log("error.log")
        );
    }
    for name in SERVED_NAMES {
        assert_eq!(
            ports.map(|port| first(port, name)[0]),
            [HANDSHAKE[0]; 2],
            "{name}"
        );
    }
}

#[test]
fn nginx_serves_its_default_server_for_a_name_that_dns_cannot_have() {
    let keys = keys();
    let nginx = Server::builder("/usr/sbin/nginx")
        .configuration(&configured(&keys, "server { %SECURE% }"))
        .start();
    for name in REFUSED_NAMES.iter().chain(SERVED_NAMES) {
        let mut socket = TcpStream::connect(("127.0.0.1", nginx.port())).unwrap();
        socket.write_all(&named_hello(name)).unwrap();
        let mut answer = [0];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, HANDSHAKE, "{name}");
    }
}

#[test]
fn clients_of_http_1_0_may_say_so() {
    let keys = keys();
    let server = start(
        &keys,
        "server { %SECURE% http2 on; return 200 \"$ssl_alpn_protocol $server_protocol\"; }",
    );
    for (option, expected) in [
        ("--http1.0", "http/1.0 HTTP/1.0"),
        ("--http1.1", "http/1.1 HTTP/1.1"),
        ("--http2", "h2 HTTP/2.0"),
    ] {
        assert_eq!(curl(&server, "a.test", "/", &[option]), expected);
    }
}

#[test]
fn records_that_are_damaged_or_cut_end_their_own_session() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let whole = |record: Vec<u8>| record;
    let damaged = |mut record: Vec<u8>| {
        *record.last_mut().unwrap() ^= 1;
        record
    };
    let cut = |record: Vec<u8>| record[..record.len() / 2].to_vec();
    let plain = |_: Vec<u8>| b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec();
    let long = |_: Vec<u8>| b"\x17\x03\x03\xff\xff".to_vec();
    let alert = |name: &str| Err(format!("received fatal alert: {name}"));
    type Change = fn(Vec<u8>) -> Vec<u8>;
    let cases: [(&str, Change, Result<&str, String>, &str); 5] = [
        ("whole", whole, Ok("here"), ""),
        (
            "damaged",
            damaged,
            alert("BadRecordMac"),
            "SSL_read() failed (SSL: cannot decrypt peer's message)",
        ),
        ("cut", cut, Ok(""), ""),
        (
            "plain",
            plain,
            alert("DecodeError"),
            "SSL_read() failed (SSL: received corrupt message of type InvalidContentType)",
        ),
        (
            "long",
            long,
            alert("DecodeError"),
            "SSL_read() failed (SSL: received corrupt message of type MessageTooLarge)",
        ),
    ];
    for (name, change, expected, logged) in cases {
        let mut open = Open::new(&server, tls_peer::client());
        let record = open.request();
        match (open.say(&change(record)), expected) {
            (Ok(answer), Ok(end)) => assert!(answer.ends_with(end), "{name}: {answer}"),
            (said, expected) => assert_eq!(said, expected.map(str::to_owned), "{name}"),
        }
        server.wait_for_log("error.log", logged);
    }
    let log = server.log("error.log");
    assert!(
        !log.contains("[alert]") && !log.contains("[error]"),
        "{log}"
    );
}

thread_local! {
    /// Whether records have the kind 0 and no content but zeros: they are all padding.
    static IS_PADDING: Cell<bool> = const { Cell::new(false) };
}

/// TLS 1.3's algorithm of a suite, or what encrypts by it.
struct Padding<T>(T);

impl Tls13AeadAlgorithm for Padding<&'static dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Padding(self.0.encrypter(key, iv)))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

impl MessageEncrypter for Padding<Box<dyn MessageEncrypter>> {
    fn encrypt(
        &mut self,
        mut message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, rustls::Error> {
        if IS_PADDING.get() {
            message.typ = ContentType::Unknown(0);
            message.payload = OutboundChunks::Single(&[0; 16]);
        }
        self.0.encrypt(message, sequence)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.0.encrypted_payload_len(payload_len)
    }
}

#[test]
fn a_record_that_is_all_padding_ends_its_session_by_an_alert() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let mut provider = default_provider();
    let SupportedCipherSuite::Tls13(suite) = provider.cipher_suites[0] else {
        panic!("the best suite is not one of TLS 1.3");
    };
    provider.cipher_suites = vec![SupportedCipherSuite::Tls13(Box::leak(Box::new(
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: suite.common.suite,
                hash_provider: suite.common.hash_provider,
                confidentiality_limit: suite.common.confidentiality_limit,
            },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: Box::leak(Box::new(Padding(suite.aead_alg))),
            quic: None,
        },
    )))];
    let mut open = Open::new(&server, tls_peer::client_of(provider));
    IS_PADDING.set(true);
    let record = open.request();
    IS_PADDING.set(false);
    let said = open.say(&record);
    assert_eq!(
        said,
        Err("received fatal alert: UnexpectedMessage".to_owned())
    );
}

#[test]
fn a_hello_may_come_in_many_records() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let mut config = tls_peer::client();
    // The least that the library can.
    config.max_fragment_size = Some(32);
    let mut open = Open::new(&server, config);
    let request = open.request();
    assert!(open.say(&request).unwrap().ends_with("here"));
}

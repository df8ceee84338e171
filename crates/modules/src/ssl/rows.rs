//! Rows of TLS with clients.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::checks;
use crate::common::row_tables::{all_in_stream, in_stream, join};

const SERVER: Row = Row {
    contexts: &[Context::Http, Context::Server],
    ..Row::PLAIN
};
const MAIN: Row = Row {
    contexts: &[Context::Main],
    merge: Merge::Own,
    ..Row::PLAIN
};
const FLAG: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    ..SERVER
};
const TEXT: Row = Row {
    value: Value::Text,
    ..SERVER
};
const FILE: Row = Row {
    syntax: "file",
    ..TEXT
};
const FILES: Row = Row {
    repeat: Repeat::Many,
    ..FILE
};

/// What a server with a certificate refuses, until it is supported.
const REFUSED: &str = "Not supported yet: refused in a server that has a certificate.";

/// The directives of HTTP.
pub(super) const HTTP: &[Row] = &join::<{ SHARED.len() + HTTP_ONLY.len() }>(SHARED, HTTP_ONLY);

/// The directives of `stream`.
pub(super) const STREAM: &[Row] = &join::<{ SHARED.len() + STREAM_ONLY.len() }>(
    &all_in_stream::<{ SHARED.len() }>(SHARED),
    STREAM_ONLY,
);

/// The directives that HTTP alone has.
const HTTP_ONLY: &[Row] = &[
    Row {
        name: "ssl",
        value: Value::Checked(checks::off),
        syntax: "off",
        summary: "Accepted without effect. `on` is obsolete and refused: use the `ssl` parameter \
            of `listen`.",
        ..TEXT
    },
    Row {
        name: "ssl_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "16k",
        summary: "The maximum size of a TLS record, in bytes of content; at most 16k. The first \
                  13,700 bytes of a connection are sent in records of at most 1370 bytes. Such a \
                  record fits into a packet, so clients can use its content early. The same \
                  applies to the first bytes after a second without output.",
        ..SERVER
    },
    Row {
        name: "ssl_early_data",
        summary: "Lets returning clients of TLS 1.3 send a request before the handshake is \
                  complete. Anyone who recorded such a request can send it to another server: see \
                  `$ssl_early_data`. This server accepts the early data of a session once. It \
                  keeps the sessions itself, in `ssl_session_cache` or in a cache of its own, and \
                  issues no tickets that other servers could read.",
        ..FLAG
    },
    Row {
        name: "ssl_engine",
        value: Value::Text,
        syntax: "device",
        summary: "Accepted without effect: keys on hardware devices are not supported.",
        ..MAIN
    },
    Row {
        name: "ssl_object_cache_inheritable",
        value: Value::Flag,
        syntax: "on | off",
        summary: "Accepted without effect: every reload reads the certificates and keys again.",
        ..MAIN
    },
];

/// The directives that `stream` alone has.
const STREAM_ONLY: &[Row] = &[
    Row {
        name: "ssl_alpn",
        arguments: Arguments::at_least(1),
        value: Value::Checked(checks::protocols),
        repeat: Repeat::Many,
        syntax: "protocol ...",
        summary: "The protocols that clients may choose by ALPN, the best first. A client that \
            offers none of them is refused.",
        ..in_stream(TEXT)
    },
    Row {
        name: "ssl_handshake_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "60s",
        summary: "The maximum time for the TLS handshake.",
        ..in_stream(SERVER)
    },
];

/// The directives that both have.
const SHARED: &[Row] = &[
    Row {
        name: "ssl_certificate",
        variables: Some(0),
        summary: "A PEM file with the server's certificate, followed by its intermediate \
            certificates. Several of different kinds (ECDSA, RSA) may be given; clients get the \
            first that they can use. If several have the same kind, the last one is used. After \
            `data:`, the value is the PEM text itself. If the name contains variables, the file is \
            read at each handshake, by the user of the serving process: see \
            `ssl_certificate_cache`.",
        ..FILES
    },
    Row {
        name: "ssl_certificate_key",
        variables: Some(0),
        summary: "A PEM file with the key of the certificate of the same position: PKCS#8, \
            PKCS#1 or SEC1. `ssl_password_file` opens encrypted ones.",
        ..FILES
    },
    Row {
        name: "ssl_certificate_cache",
        arguments: Arguments::between(1, 3),
        syntax: "off | max=number [inactive=time] [valid=time]",
        default: "off",
        summary: "Caches the certificates and keys that variables name, at most `max` of them. An \
            entry is removed when it has not been used for `inactive` (10 seconds), or `valid` (60 \
            seconds) after it was read.",
        ..TEXT
    },
    Row {
        name: "ssl_certificate_compression",
        summary: "Sends certificates compressed with Brotli or zlib to clients of TLS 1.3 that \
                  accept this (RFC 8879).",
        ..FLAG
    },
    Row {
        name: "ssl_ciphers",
        syntax: "ciphers",
        default: "HIGH:!aNULL:!MD5",
        summary: "The cipher suites of TLS 1.2, in OpenSSL's syntax. Suites without forward \
                  secrecy or without AEAD are never used, and naming one gives a warning. TLS 1.3 \
                  has its own suites: see `ssl_conf_command Ciphersuites`.",
        ..TEXT
    },
    Row {
        name: "ssl_client_certificate",
        summary: "A PEM file of CA certificates that clients' certificates are checked against. \
            The server sends the names of these CAs to clients.",
        ..FILE
    },
    Row {
        name: "ssl_conf_command",
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        syntax: "name value",
        summary: "OpenSSL's commands: `Ciphersuites` (the suites of TLS 1.3), `CipherString`, \
                  `Curves` and `Groups`, `MinProtocol` and `MaxProtocol`, `Certificate` with \
                  `PrivateKey`, `NumTickets`, and of `Options` `SessionTicket` and \
                  `ServerPreference`. They replace the corresponding directives. A command \
                  without effect here gives a warning; other commands are refused in a server \
                  that has a certificate.",
        ..TEXT
    },
    Row {
        name: "ssl_crl",
        summary: "Lists of revoked certificates in PEM: one for every CA of a client's chain. If a \
            CA has no list, the client's certificate is rejected.",
        ..FILE
    },
    Row {
        name: "ssl_dhparam",
        summary: "Accepted without effect, with a warning: key exchange by Diffie-Hellman in \
            finite fields is never used.",
        ..FILE
    },
    Row {
        name: "ssl_ecdh_curve",
        syntax: "curve[:curve...]",
        default: "auto",
        summary: "The groups for the key exchange. `auto` stands for \
            X25519MLKEM768:X25519:prime256v1:secp384r1.",
        ..TEXT
    },
    Row {
        name: "ssl_ech_file",
        summary: REFUSED,
        ..FILES
    },
    Row {
        name: "ssl_key_log",
        syntax: "path",
        summary: "The file for the secrets of sessions, in the format that Wireshark reads. Anyone \
            with this file can decrypt the traffic. Use it only for debugging. If the server \
            creates the file, only its owner can read it.",
        ..TEXT
    },
    Row {
        name: "ssl_ocsp",
        value: Value::OneOf(&["off", "on", "leaf"]),
        syntax: "on | off | leaf",
        default: "off",
        summary: "Asks OCSP responders whether the certificates of clients are revoked: all \
            certificates of a chain (`on`), or only the client's own (`leaf`). A client is refused \
            if its certificate is revoked or unknown, or if the responder gives no valid answer. \
            Answers must be signed by the issuer, or by a responder that the issuer has \
            authorized.",
        ..SERVER
    },
    Row {
        name: "ssl_ocsp_cache",
        value: Value::Checked(checks::ocsp_cache),
        syntax: "off | shared:name:size",
        default: "off",
        summary: "Caches the states of client certificates for `ssl_ocsp`, each until the \
            responder's answer expires. All lanes share a cache, and a reload keeps it. A megabyte \
            holds 4096 states.",
        ..TEXT
    },
    Row {
        name: "ssl_ocsp_responder",
        syntax: "url",
        summary: "The address of the OCSP responder, `http://...`, which replaces the addresses in \
            the certificates of clients.",
        ..TEXT
    },
    Row {
        name: "ssl_password_file",
        summary: "A file with passwords for keys, one per line, which are tried in turn. It may be \
            a FIFO that another program writes while the configuration is loaded. Keys must be \
            encrypted with AES: in PKCS#8 with PBKDF2, or in OpenSSL's older format.",
        ..FILE
    },
    Row {
        name: "ssl_prefer_server_ciphers",
        summary: "Chooses the cipher suite by the server's order, not by the client's.",
        ..FLAG
    },
    Row {
        name: "ssl_protocols",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]),
        repeat: Repeat::Many,
        syntax: "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
        default: "TLSv1.2 TLSv1.3",
        summary: "The TLS versions. Versions before TLSv1.2 are never used, and naming one gives \
                  a warning.",
        ..SERVER
    },
    Row {
        name: "ssl_reject_handshake",
        summary: "Refuses every handshake with the server. Use it in a default server that should \
            not answer unknown names.",
        ..FLAG
    },
    Row {
        name: "ssl_session_cache",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(checks::session_cache),
        repeat: Repeat::Many,
        syntax: "off | none | [builtin[:size]] [shared:name:size]",
        default: "none",
        summary: "Keeps sessions for clients that resume them without a ticket. All lanes share a \
            cache, and a reload keeps it. The newest sessions of shared caches are kept after a \
            change of the binary and after a crash, too. `builtin` is a private cache for this \
            server.",
        ..TEXT
    },
    Row {
        name: "ssl_session_ticket_key",
        summary: "A file of 48 or 80 random bytes, from which the keys of tickets are made, so \
                  that several servers can share them. The first file encrypts tickets, and all \
                  files decrypt them.",
        ..FILES
    },
    Row {
        name: "ssl_session_tickets",
        default: "on",
        summary: "Lets clients resume sessions with tickets. Without `ssl_session_ticket_key` the \
            server creates the keys and changes them every `ssl_session_timeout`; all lanes share \
            them, and a reload keeps them.",
        ..FLAG
    },
    Row {
        name: "ssl_session_timeout",
        value: Value::Seconds,
        syntax: "time",
        default: "5m",
        summary: "How long a session can be resumed.",
        ..SERVER
    },
    Row {
        name: "ssl_stapling",
        summary: "Sends OCSP responses with certificates: the response in `ssl_stapling_file`, or \
            otherwise the answers of the certificates' responders.",
        ..FLAG
    },
    Row {
        name: "ssl_stapling_file",
        summary: "A DER file with an OCSP response, which is sent with the first certificate \
            while `ssl_stapling` is on.",
        ..FILE
    },
    Row {
        name: "ssl_stapling_responder",
        syntax: "url",
        summary: "The address of the OCSP responder, `http://...`, which replaces the address in \
            the certificate.",
        ..TEXT
    },
    Row {
        name: "ssl_stapling_verify",
        summary: "Whether OCSP responses must be signed by the issuer of the certificate, or by a \
            responder with a certificate of that issuer. The issuer must be in \
            `ssl_trusted_certificate`.",
        ..FLAG
    },
    Row {
        name: "ssl_trusted_certificate",
        summary: "A PEM file of CA certificates that clients' certificates are checked against. \
            The server does not send the names of these CAs to clients.",
        ..FILE
    },
    Row {
        name: "ssl_verify_client",
        value: Value::OneOf(&["off", "on", "optional", "optional_no_ca"]),
        syntax: "on | off | optional | optional_no_ca",
        default: "off",
        summary: "Requests a certificate from clients. With `on`, a request without a certificate \
                  gets the error 496, and one with an invalid certificate gets 495. A session of \
                  `stream` is closed instead. With `optional`, a client may send no certificate, \
                  but one that it sends must be valid. With `optional_no_ca`, the CA of the \
                  certificate may be unknown: see `$ssl_client_verify`.",
        ..SERVER
    },
    Row {
        name: "ssl_verify_depth",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "The maximum number of intermediate CA certificates between a client's \
            certificate and a trusted root.",
        ..SERVER
    },
];

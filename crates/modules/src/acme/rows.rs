//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const HTTP: Row = Row {
    contexts: &[Context::Http],
    merge: Merge::Own,
    ..Row::PLAIN
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "acme_issuer",
        arguments: Arguments::exactly(1),
        value: Value::Entries,
        repeat: Repeat::Many,
        syntax: "name",
        summary: "Describes a certificate authority with the ACME protocol (RFC 8555): `uri`, \
            `account_key`, `accept_terms_of_service`, `challenge`, `contact`, \
            `external_account_key`, `profile`, `ssl_trusted_certificate`, `ssl_verify` (on) and \
            `state_path` (acme_NAME). See the guide about ACME.",
        ..HTTP
    },
    Row {
        name: "acme_shared_zone",
        arguments: Arguments::exactly(1),
        value: Value::Custom,
        syntax: "zone=name:size",
        default: "ngx_acme_shared:256k",
        summary: "Checked, but without effect: certificates need no memory of a fixed size.",
        ..HTTP
    },
    Row {
        name: "acme_certificate",
        contexts: &[Context::Http, Context::Server],
        arguments: Arguments::at_least(1),
        syntax: "issuer [identifier ...] [key=alg[:size]]",
        summary: "Orders certificates from the issuer and renews them. They are for these names \
            and addresses, or for the names of the server if none are given. Keys are `ecdsa:256` \
            (default), `ecdsa:384`, `ecdsa:521`, `rsa:2048`, `rsa:3072` or `rsa:4096`. A server \
            without `ssl_certificate` uses its certificate; elsewhere write `ssl_certificate \
            $acme_certificate` and `ssl_certificate_key $acme_certificate_key`. In `http` it \
            applies to every server with `listen ... ssl` that names no certificate, for those of \
            its names that are public. `-t` warns of the others, which are never ordered.",
        ..HTTP
    },
];

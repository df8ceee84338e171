//! Tests of chains of certificates from OpenSSL.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use turnpike_testkit::Folder;
use turnpike_wire::certificate::Purpose;

use super::{Failure, Failures, Trust, chain};

const DAY_S: u64 = 24 * 3600;

/// Makes certificates: `root`, which has signed `inner`, `old` (version 1), `server`, `limited` (a
/// CA with name constraints) and `odd` (with an unknown extension); `inner` has signed `end`, which
/// has signed `below`; `old` has signed `wrong`; `alone` is self-signed, version 1.
const MAKE: &str = r#"
set -e
printf '[ req ]\ndistinguished_name = n\n[ n ]\n' > req.conf
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; }
new() { openssl req -config req.conf -new -key $1.key -subj /CN=$1 "${@:2}"; }
self() { key $1; new $1 -x509 -days 9 -out $1.pem "${@:2}"; }
sign() {
    key $1; printf "$3" > ext
    new $1 -out $1.csr
    openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -days 9 -set_serial $4 \
        -extfile ext -out $1.pem
}
ca='basicConstraints=critical,CA:true,pathlen:0\n'
self root -addext basicConstraints=critical,CA:true
self other -addext basicConstraints=critical,CA:true
self alone
sign inner root "$ca" 2
sign old root '' 3
sign server root 'extendedKeyUsage=serverAuth\n' 4
sign limited root "${ca}nameConstraints=permitted;DNS:a.test\n" 5
sign odd root '1.2.3.4=critical,DER:0500\n' 6
sign end inner 'basicConstraints=CA:true\n' 7
sign below end '' 8
sign wrong old '' 9
sign named limited '' 10
printf '[ca]\ndefault_ca=c\n[c]\ndatabase=index\ncrlnumber=number\n' > ca.conf
printf 'default_md=sha256\ndefault_crl_days=5\n' >> ca.conf
for ca in root inner; do
    : > index; echo 01 > number
    openssl ca -config ca.conf -gencrl -keyfile $ca.key -cert $ca.pem -out $ca.none
    test $ca != root || openssl ca -config ca.conf -revoke inner.pem \
        -keyfile root.key -cert root.pem
    openssl ca -config ca.conf -gencrl -keyfile $ca.key -cert $ca.pem -out $ca.crl
done
"#;

fn made() -> Folder {
    let folder = Folder::create().unwrap();
    let mut shell = Command::new("bash");
    let shell = shell.args(["-c", MAKE]).current_dir(folder.path());
    let output = shell.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    folder
}

fn pem(folder: &Path, names: &[&str]) -> Vec<u8> {
    let files = names.iter().map(|name| std::fs::read(folder.join(name)));
    files.map(Result::unwrap).collect::<Vec<_>>().concat()
}

fn shown(folder: &Path, names: &[&str]) -> Vec<CertificateDer<'static>> {
    chain(&pem(folder, names)).unwrap()
}

fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// The trusted certificates, the depth, the peer's certificates, and the first and last fault.
type Case = (
    &'static [&'static str],
    usize,
    &'static [&'static str],
    Option<(Failure, Failure)>,
);

const fn one(failure: Failure) -> Option<(Failure, Failure)> {
    Some((failure, failure))
}

const CASES: &[Case] = &[
    (&["root.pem"], 1, &["old.pem"], None),
    (&["root.pem"], 1, &["inner.pem"], None),
    (&["root.pem"], 1, &["end.pem", "inner.pem"], None),
    (&["root.pem", "inner.pem"], 1, &["end.pem"], None),
    (&["root.pem"], 0, &["old.pem"], None),
    (&["root.pem"], 0, &["root.pem"], None),
    (&["alone.pem"], 1, &["alone.pem"], None),
    (
        &["other.pem", "root.pem"],
        1,
        &["old.pem", "root.pem"],
        None,
    ),
    (
        &["root.pem"],
        0,
        &["end.pem", "inner.pem"],
        one(Failure::TooLong),
    ),
    (&["root.pem"], 1, &["alone.pem"], one(Failure::SelfSigned)),
    (
        &["other.pem"],
        1,
        &["old.pem", "root.pem"],
        one(Failure::SelfSignedInChain),
    ),
    (
        &["root.pem"],
        1,
        &["end.pem"],
        Some((Failure::NoIssuerOfFirst, Failure::FirstNotVerified)),
    ),
    (
        &["other.pem"],
        1,
        &["end.pem", "inner.pem"],
        one(Failure::NoIssuerOfFirst),
    ),
    (&["inner.pem"], 1, &["end.pem"], one(Failure::NoIssuer)),
    (
        &["root.pem"],
        9,
        &["wrong.pem", "old.pem"],
        one(Failure::NotCa),
    ),
    (
        &["root.pem"],
        9,
        &["below.pem", "end.pem", "inner.pem"],
        one(Failure::PathLength),
    ),
    (&["root.pem"], 1, &["server.pem"], one(Failure::Purpose)),
    (
        &["root.pem"],
        1,
        &["odd.pem"],
        one(Failure::UnknownExtension),
    ),
    (
        &["root.pem"],
        1,
        &["named.pem", "limited.pem"],
        one(Failure::NameConstraints),
    ),
    (&[], 1, &["alone.pem"], one(Failure::SelfSigned)),
];

#[test]
fn a_chain_is_valid_or_fails_as_in_openssl() {
    let folder = made();
    for (trusted, depth, names, expected) in CASES {
        let mut trust = Trust::none(*depth);
        if !trusted.is_empty() {
            trust.add(&pem(folder.path(), trusted)).unwrap();
        }
        let shown = shown(folder.path(), names);
        let verified = trust.verify(&shown, Purpose::Client, now_s());
        let failures = verified.err().map(|it| (it.first, it.last));
        assert_eq!(failures, *expected, "{trusted:?} {depth} {names:?}");
    }
    let trust = Trust::new(&pem(folder.path(), &["root.pem"]), 1).unwrap();
    let server = shown(folder.path(), &["server.pem"]);
    assert_eq!(trust.verify(&server, Purpose::Server, now_s()), Ok(()));
    let old = shown(folder.path(), &["old.pem"]);
    for (now_s, failure) in [
        (now_s() + 10 * DAY_S, Failure::Expired),
        (now_s() - DAY_S, Failure::NotYetValid),
    ] {
        let failed = trust.verify(&old, Purpose::Client, now_s);
        assert_eq!(failed.map_err(|it| it.last), Err(failure));
    }
    // One bit of the signed part is changed.
    let mut forged = old[0].to_vec();
    let subject = forged
        .windows(3)
        .rposition(|three| three == b"old")
        .unwrap();
    forged[subject] ^= 1;
    let failed = trust.verify(&[forged.into()], Purpose::Client, now_s());
    assert_eq!(failed.map_err(|it| it.first), Err(Failure::Signature));
    let nonsense = [CertificateDer::from(vec![0x30, 0])];
    let failed = trust.verify(&nonsense, Purpose::Client, now_s());
    assert_eq!(failed.map_err(|it| it.first), Err(Failure::Malformed));
    let none = trust.verify(&[], Purpose::Client, now_s());
    assert_eq!(none.map_err(|it| it.first), Err(Failure::Malformed));
    revoked_certificates_are_refused(folder.path());
}

/// Lists, the peer's certificates, and the last fault.
const REVOKED: &[(&[&str], &[&str], Option<Failure>)] = &[
    (&["root.none"], &["inner.pem"], None),
    (&["root.crl"], &["inner.pem"], Some(Failure::Revoked)),
    (&["root.crl"], &["old.pem"], None),
    (
        &["root.none"],
        &["end.pem", "inner.pem"],
        Some(Failure::NoList),
    ),
    (
        &["root.none", "inner.none"],
        &["end.pem", "inner.pem"],
        None,
    ),
    (
        &["root.crl", "inner.none"],
        &["end.pem", "inner.pem"],
        Some(Failure::Revoked),
    ),
];

fn revoked_certificates_are_refused(folder: &Path) {
    for (lists, names, expected) in REVOKED {
        let mut trust = Trust::new(&pem(folder, &["root.pem"]), 1).unwrap();
        trust.revoke(&pem(folder, lists)).unwrap();
        let verified = trust.verify(&shown(folder, names), Purpose::Client, now_s());
        assert_eq!(
            verified.err().map(|it| it.last),
            *expected,
            "{lists:?} {names:?}"
        );
    }
    let mut trust = Trust::new(&pem(folder, &["root.pem"]), 1).unwrap();
    trust.revoke(&pem(folder, &["root.none"])).unwrap();
    let old = shown(folder, &["old.pem"]);
    for (now_s, failure) in [
        (now_s() + 6 * DAY_S, Failure::ListExpired),
        (now_s() - 2 * DAY_S, Failure::NotYetValid),
    ] {
        let verified = trust.verify(&old, Purpose::Client, now_s);
        assert_eq!(verified.map_err(|Failures { last, .. }| last), Err(failure));
    }
    let failed = trust.revoke(&pem(folder, &["root.pem"])).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "(SSL: no list of revoked certificates in it)"
    );
}

#[test]
fn certificates_and_lists_of_one_file_are_used_together() {
    let folder = made();
    let folder = folder.path();
    // Either file has both, and a list counts only if revocation is checked.
    let both = pem(folder, &["root.crl", "root.pem"]);
    let inner = shown(folder, &["inner.pem"]);
    let mut trust = Trust::new(&both, 1).unwrap();
    assert_eq!(trust.verify(&inner, Purpose::Client, now_s()), Ok(()));
    trust.revoke(&pem(folder, &["inner.none"])).unwrap();
    let verified = trust.verify(&inner, Purpose::Client, now_s());
    assert_eq!(verified.map_err(|it| it.last), Err(Failure::Revoked));
    let mut trust = Trust::none(1);
    trust.revoke(&both).unwrap();
    assert_eq!(trust.anchors(), shown(folder, &["root.pem"]));
}

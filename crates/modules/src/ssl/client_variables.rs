//! `$ssl_client_...`: what a client's certificate says.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use turnpike_http::base64;
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::tls::{ClientCertificate, HasTlsSession};
use turnpike_plan::variables::VariableRow;
use turnpike_wire::certificate::Certificate;
use turnpike_wire::{date, hex};

use super::variables::{absent, row};

/// Characters in a line of PEM (RFC 7468 section 2).
const PEM_LINE: usize = 64;

const DAY_S: u64 = 24 * 3600;

/// The variables.
pub(super) fn rows<S: HasTlsSession>() -> Vec<VariableRow<S>> {
    let mut rows = of_contents().to_vec();
    rows.extend(of_validity());
    rows
}

/// What the certificate is and says.
fn of_contents<S: HasTlsSession>() -> [VariableRow<S>; 7] {
    [
        row(
            "ssl_client_cert",
            |subject, out| shown(subject, |client| write_unfolded(&client.der, out)),
            "The client's certificate in PEM, with spaces instead of line ends. Deprecated. \
             Differs from nginx, which starts the lines with a tab; header fields of that form are \
             obsolete.",
        ),
        row(
            "ssl_client_escaped_cert",
            |subject, out| shown(subject, |client| write_escaped(&client.der, out)),
            "The client's certificate in PEM, escaped as in URLs.",
        ),
        row(
            "ssl_client_fingerprint",
            |subject, out| {
                shown(subject, |client| {
                    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &client.der);
                    out.extend_from_slice(hex::text(sum.as_ref()).as_bytes());
                })
            },
            "The SHA-1 of the client's certificate, hexadecimal.",
        ),
        row(
            "ssl_client_i_dn",
            |subject, out| read(subject, |read| read.issuer.write_rfc2253(out)),
            "The issuer of the client's certificate, in the format of RFC 2253.",
        ),
        row(
            "ssl_client_raw_cert",
            |subject, out| {
                shown(subject, |client| {
                    out.extend_from_slice(pem(&client.der).as_bytes());
                })
            },
            "The client's certificate in PEM.",
        ),
        row(
            "ssl_client_s_dn",
            |subject, out| read(subject, |read| read.subject.write_rfc2253(out)),
            "The subject of the client's certificate, in the format of RFC 2253.",
        ),
        row(
            "ssl_client_serial",
            |subject, out| read(subject, |read| write_serial(read.serial, out)),
            "The serial number of the client's certificate, hexadecimal.",
        ),
    ]
}

/// How long the certificate is good, and whether it is.
fn of_validity<S: HasTlsSession>() -> [VariableRow<S>; 5] {
    [
        absent(
            "ssl_client_sigalg",
            "No value: the TLS library does not report it.",
        ),
        row(
            "ssl_client_v_end",
            |subject, out| read(subject, |read| write_time(read.not_after_s, out)),
            "The end of the validity of the client's certificate.",
        ),
        row(
            "ssl_client_v_remain",
            |subject, out| {
                read(subject, |read| {
                    let days = read.not_after_s.saturating_sub(unix_s()) / DAY_S;
                    out.extend_from_slice(days.to_string().as_bytes());
                })
            },
            "Days until the client's certificate expires.",
        ),
        row(
            "ssl_client_v_start",
            |subject, out| read(subject, |read| write_time(read.not_before_s, out)),
            "The start of the validity of the client's certificate.",
        ),
        row(
            "ssl_client_verify",
            verified,
            "`SUCCESS`, `FAILED:` with the reason, or `NONE` if the client sent no certificate. \
             There is no value without TLS.",
        ),
    ]
}

/// The variables that HTTP alone has.
pub(super) fn legacy<S: HasTlsSession>() -> [VariableRow<S>; 2] {
    [
        row(
            "ssl_client_i_dn_legacy",
            |subject, out| read(subject, |read| read.issuer.write_oneline(out)),
            "The issuer of the client's certificate, in OpenSSL's older format.",
        ),
        row(
            "ssl_client_s_dn_legacy",
            |subject, out| read(subject, |read| read.subject.write_oneline(out)),
            "The subject of the client's certificate, in OpenSSL's older format.",
        ),
    ]
}

fn shown<S: HasTlsSession>(subject: &S, write: impl FnOnce(&ClientCertificate)) -> bool {
    let session = subject.tls_session();
    let client = session.and_then(|session| session.client.as_deref());
    client.map(write).is_some()
}

fn read<S: HasTlsSession>(subject: &S, write: impl FnOnce(Certificate<'_>)) -> bool {
    let mut found = false;
    shown(subject, |client| {
        found = Certificate::read(&client.der).map(write).is_some();
    });
    found
}

fn verified<S: HasTlsSession>(subject: &S, out: &mut Vec<u8>) -> bool {
    let Some(session) = subject.tls_session() else {
        return false;
    };
    let text = match session.client.as_deref() {
        None => "NONE".to_owned(),
        Some(ClientCertificate { failure: None, .. }) => "SUCCESS".to_owned(),
        Some(ClientCertificate {
            failure: Some(failure),
            ..
        }) => format!("FAILED:{failure}"),
    };
    out.extend_from_slice(text.as_bytes());
    true
}

/// A certificate as text (RFC 7468 section 5.1).
fn pem(der: &[u8]) -> String {
    let encoded = base64::encode(der);
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (at, character) in encoded.chars().enumerate() {
        if at > 0 && at % PEM_LINE == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text + "\n-----END CERTIFICATE-----\n"
}

/// A field's value must not hold line ends; who unfolds nginx's lines reads spaces, too (RFC 9112
/// section 5.2).
fn write_unfolded(der: &[u8], out: &mut Vec<u8>) {
    let text = pem(der);
    out.extend_from_slice(text.trim_end().replace('\n', " ").as_bytes());
}

fn write_escaped(der: &[u8], out: &mut Vec<u8>) {
    for byte in pem(der).bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' => out.push(byte),
            _ => {
                out.push(b'%');
                out.extend_from_slice(&hex::pair_upper(byte));
            }
        }
    }
}

fn write_serial(serial: &[u8], out: &mut Vec<u8>) {
    // A zero before it says that the number is not negative.
    let digits = match serial {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    for byte in digits {
        out.extend_from_slice(&hex::pair_upper(*byte));
    }
}

/// A time as OpenSSL prints it: `Nov  6 08:49:37 1994 GMT`.
fn write_time(seconds: u64, out: &mut Vec<u8>) {
    let text = date::format(i64::try_from(seconds).unwrap_or(i64::MAX));
    // As in `Sun, 06 Nov 1994 08:49:37 GMT`.
    let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
    let tens = if day[0] == b'0' { b' ' } else { day[0] };
    let parts = [
        month,
        b" ",
        &[tens, day[1]],
        b" ",
        time,
        b" ",
        year,
        b" GMT",
    ];
    out.extend_from_slice(&parts.concat());
}

#[cfg(test)]
mod tests {
    //! Texts of what a certificate says.

    use super::{pem, write_escaped, write_serial, write_time, write_unfolded};

    #[test]
    fn times_and_serial_numbers_are_written_as_openssl_prints_them() {
        let cases = [
            (784_111_777, "Nov  6 08:49:37 1994 GMT"),
            (951_825_600, "Feb 29 12:00:00 2000 GMT"),
        ];
        for (seconds, expected) in cases {
            let mut out = Vec::new();
            write_time(seconds, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
        let numbers: [(&[u8], &[u8]); 3] = [
            (&[0], b"00"),
            (&[0, 0x8a, 1], b"8A01"),
            (&[0x10, 0], b"1000"),
        ];
        for (serial, expected) in numbers {
            let mut out = Vec::new();
            write_serial(serial, &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_certificate_is_written_in_three_ways() {
        let der = [0xff; 50];
        let line = "/".repeat(64);
        let expected =
            format!("-----BEGIN CERTIFICATE-----\n{line}\n//8=\n-----END CERTIFICATE-----\n");
        assert_eq!(pem(&der), expected);
        let (mut unfolded, mut escaped) = (Vec::new(), Vec::new());
        write_unfolded(&der, &mut unfolded);
        write_escaped(&der, &mut escaped);
        let expected = expected.trim_end().replace('\n', " ");
        assert_eq!(String::from_utf8_lossy(&unfolded), expected);
        let escaped = String::from_utf8_lossy(&escaped).into_owned();
        assert!(
            escaped.starts_with("-----BEGIN%20CERTIFICATE-----%0A"),
            "{escaped}"
        );
        assert!(
            escaped.ends_with("-----END%20CERTIFICATE-----%0A"),
            "{escaped}"
        );
        assert!(!escaped.contains(['+', '/', '=', '\n', ' ']), "{escaped}");
    }
}

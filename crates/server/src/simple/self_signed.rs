//! Certificates that nobody has issued: for names of this machine, which no authority certifies.

use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use turnpike_lane::sys::process::unix_s;

/// How long one is valid: clients refuse what is valid for more than 398 days.
const VALID: Duration = Duration::from_secs(397 * 24 * 3600);

/// Clocks of machines differ, and a certificate of now is not valid yet for one that is behind.
const BEFORE: Duration = Duration::from_secs(24 * 3600);

/// A certificate that ends sooner is made anew.
const LEFT_MIN: Duration = Duration::from_secs(30 * 24 * 3600);

/// A certificate with its key, both as PEM.
pub(super) struct SelfSigned {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Makes a certificate for a name or an address, with a new key of P-256.
///
/// # Errors
/// The library's, in words: the name cannot be in a certificate.
pub(super) fn make(name: &str) -> Result<SelfSigned, String> {
    let failed = |error: rcgen::Error| error.to_string();
    let mut wanted = CertificateParams::new([name.to_owned()]).map_err(failed)?;
    wanted.distinguished_name.push(DnType::CommonName, name);
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_s());
    (wanted.not_before, wanted.not_after) = (now - BEFORE, now + VALID);
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let made = wanted.self_signed(&key).map_err(failed)?;
    Ok(SelfSigned {
        certificate: made.pem(),
        key: key.serialize_pem(),
    })
}

/// Whether a certificate that was made at this time can be used for another month.
pub(super) fn is_fit(made_at: SystemTime) -> bool {
    let age = SystemTime::now().duration_since(made_at);
    age.is_ok_and(|age| age + LEFT_MIN < VALID)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_certificate_is_made_for_names_and_addresses_and_used_for_a_year() {
        for name in ["localhost", "127.0.0.1", "::1"] {
            let made = make(name).unwrap();
            assert!(made.certificate.contains("BEGIN CERTIFICATE"), "{name}");
            assert!(made.key.contains("PRIVATE KEY-----"), "{name}");
        }
        let before = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        assert!(is_fit(before(0)) && is_fit(before(360)) && !is_fit(before(370)));
    }
}

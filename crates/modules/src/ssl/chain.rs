//! What is odd about a chain of certificates, so that clients may refuse it. nginx serves such a
//! chain without a word; here it is served with a warning.

use turnpike_wire::certificate::Certificate;

use crate::common::certificate_expiry::Validity;

/// The oddities of a chain in DER, of which the server's own certificate is the first, at this time
/// in Unix seconds. `name` is that of its file.
///
/// Signatures are not verified, and what cannot be read is passed over.
pub(super) fn oddities<'a>(
    name: &str,
    chain: impl Iterator<Item = &'a [u8]>,
    now_s: u64,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<Certificate<'_>> = None;
    for (number, der) in (1..).zip(chain) {
        let own = Certificate::read(der);
        if let Some(own) = &own {
            let validity = Validity {
                not_before_s: own.not_before_s,
                not_after_s: own.not_after_s,
            };
            let title = format!("certificate {number} of \"{name}\"");
            found.extend(validity.warning(&title, false, now_s));
            if now_s < own.not_before_s {
                found.push(format!(
                    "certificate {number} of \"{name}\" is not valid yet"
                ));
            }
        }
        if let (Some(before), Some(own)) = (before, &own)
            && before.issuer != own.subject
        {
            let one_before = number - 1;
            found.push(format!(
                "certificate {number} of \"{name}\" is not the issuer of certificate {one_before}"
            ));
        }
        before = own;
    }
    found
}

//! The chain from a peer's certificate to a trusted one, and the checks of its members.

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use turnpike_wire::certificate::{Certificate, PublicKey, Purpose, RevocationList, Signature};

use super::{Failure, Failures, Trust};

/// The most signatures that are verified for a peer: enough for ten certificates with their lists,
/// and for as many CAs with the same name.
const SIGNATURES_MAX: usize = 40;

/// A walk up a chain.
struct Walk<'a> {
    trust: &'a Trust,
    anchors: Vec<Member<'a>>,
    /// The certificates that the peer has sent after its own.
    others: Vec<Member<'a>>,
    algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
    /// The number of signatures that may still be verified.
    signatures: usize,
    failures: Option<Failures>,
}

/// A member of a chain.
#[derive(Clone, Copy)]
struct Member<'a> {
    der: &'a [u8],
    certificate: Certificate<'a>,
}

/// Verifies the certificates of a peer; returns their chain, in DER.
pub(super) fn verify<'a>(
    trust: &'a Trust,
    shown: &'a [CertificateDer<'a>],
    purpose: Purpose,
    now_s: u64,
) -> Result<Vec<&'a [u8]>, Failures> {
    let mut members = shown.iter().filter_map(|der| Member::read(der));
    let first = members.next();
    let mut walk = Walk {
        trust,
        anchors: trust
            .anchors
            .iter()
            .filter_map(|der| Member::read(der))
            .collect(),
        others: members.collect(),
        algorithms: default_provider().signature_verification_algorithms.all,
        signatures: SIGNATURES_MAX,
        failures: None,
    };
    let mut chain = Vec::new();
    match first {
        Some(first) if walk.others.len() + 1 == shown.len() => {
            chain = walk.chain(first);
            walk.check_uses(&chain, purpose);
            walk.check_revocation(&chain, now_s);
            walk.check_times(&chain, now_s);
        }
        _ => walk.fail(Failure::Malformed),
    }
    match walk.failures {
        None => Ok(chain.iter().map(|member| member.der).collect()),
        Some(failures) => Err(failures),
    }
}

/// Whether a key has signed a message.
pub fn is_signed(key: &PublicKey<'_>, message: &[u8], by: &Signature<'_>) -> bool {
    let algorithms = default_provider().signature_verification_algorithms.all;
    is_signed_by(algorithms, key, message, by)
}

fn is_signed_by(
    algorithms: &[&dyn SignatureVerificationAlgorithm],
    key: &PublicKey<'_>,
    message: &[u8],
    by: &Signature<'_>,
) -> bool {
    let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
        *algorithm.signature_alg_id() == *by.algorithm
            && *algorithm.public_key_alg_id() == *key.algorithm
    };
    let algorithm = algorithms.iter().find(fits);
    algorithm.is_some_and(|it| it.verify_signature(key.bits, message, by.bits).is_ok())
}

impl<'a> Member<'a> {
    fn read(der: &'a [u8]) -> Option<Member<'a>> {
        Some(Member {
            der,
            certificate: Certificate::read(der)?,
        })
    }
}

impl<'a> Walk<'a> {
    fn fail(&mut self, failure: Failure) {
        self.failures = Some(Failures {
            first: self.failures.map_or(failure, |failures| failures.first),
            last: failure,
        });
    }

    /// The chain as far as it is found, the peer's own certificate first.
    fn chain(&mut self, first: Member<'a>) -> Vec<Member<'a>> {
        let mut chain = vec![first];
        loop {
            let top = chain[chain.len() - 1];
            let is_self_issued = top.certificate.is_self_issued();
            let is_anchor = self.is_anchor(&top);
            if is_self_issued && is_anchor {
                return chain;
            }
            let is_known = |issuer: &Member<'_>| chain.iter().any(|one| one.der == issuer.der);
            // The peer's own certificate and the trusted one do not count.
            if chain.len() > self.trust.depth + 1 {
                self.fail(Failure::TooLong);
                return chain;
            }
            match self.issuer(&top, is_known) {
                Ok(issuer) => chain.push(issuer),
                Err(Failure::NoIssuer) => {
                    let alone = chain.len() == 1;
                    self.fail(match (is_self_issued, alone, is_anchor) {
                        (true, true, _) => Failure::SelfSigned,
                        (true, false, _) => Failure::SelfSignedInChain,
                        (false, _, true) => Failure::NoIssuer,
                        (false, _, false) => Failure::NoIssuerOfFirst,
                    });
                    if alone && !is_self_issued {
                        self.fail(Failure::FirstNotVerified);
                    }
                    return chain;
                }
                Err(failure) => {
                    self.fail(failure);
                    return chain;
                }
            }
        }
    }

    fn is_anchor(&self, member: &Member<'_>) -> bool {
        self.anchors.iter().any(|anchor| anchor.der == member.der)
    }

    /// The certificate whose key has signed that of `member`; a trusted one is preferred.
    fn issuer(
        &mut self,
        member: &Member<'a>,
        is_known: impl Fn(&Member<'_>) -> bool,
    ) -> Result<Member<'a>, Failure> {
        let mut found = Failure::NoIssuer;
        for at in 0..self.anchors.len() + self.others.len() {
            let candidate = match at.checked_sub(self.anchors.len()) {
                None => self.anchors[at],
                Some(at) => self.others[at],
            };
            let bears_the_name = candidate.certificate.subject == member.certificate.issuer;
            if !bears_the_name || is_known(&candidate) {
                continue;
            }
            let (key, of) = (&candidate.certificate.key, &member.certificate);
            if self.is_signed(key, of.signed, &of.signature) {
                return Ok(candidate);
            }
            found = Failure::Signature;
        }
        // Equal names do not prove who signed a self-issued certificate.
        if member.certificate.is_self_issued() {
            Err(Failure::NoIssuer)
        } else {
            Err(found)
        }
    }

    fn is_signed(&mut self, key: &PublicKey<'_>, message: &[u8], by: &Signature<'_>) -> bool {
        let Some(left) = self.signatures.checked_sub(1) else {
            return false;
        };
        self.signatures = left;
        is_signed_by(self.algorithms, key, message, by)
    }

    /// Checks the purpose of each certificate.
    fn check_uses(&mut self, chain: &[Member<'_>], purpose: Purpose) {
        let mut below = 0;
        for (at, member) in chain.iter().enumerate() {
            let extensions = &member.certificate.extensions;
            if extensions.has_unknown_critical {
                self.fail(Failure::UnknownExtension);
            }
            if at == 0 {
                if !extensions.is_for(purpose) {
                    self.fail(Failure::Purpose);
                }
                continue;
            }
            // A root of version 1 has no extensions; its trust must suffice.
            let is_old_root = member.certificate.version == 1
                && member.certificate.is_self_issued()
                && self.is_anchor(member);
            if !extensions.is_ca.unwrap_or(is_old_root) || !extensions.may_sign_certificates() {
                self.fail(Failure::NotCa);
            }
            if !extensions.may_lead_to(purpose) {
                self.fail(Failure::Purpose);
            }
            if extensions.has_name_constraints {
                self.fail(Failure::NameConstraints);
            }
            if extensions
                .path_length
                .is_some_and(|allowed| below > allowed)
            {
                self.fail(Failure::PathLength);
            }
            if !member.certificate.is_self_issued() {
                below += 1;
            }
        }
    }

    /// Checks that none is revoked, if that is wanted.
    fn check_revocation(&mut self, chain: &[Member<'_>], now_s: u64) {
        if !self.trust.checks_revocation {
            return;
        }
        for (at, member) in chain.iter().enumerate() {
            let issuer = chain.get(at + 1).or_else(|| {
                let is_own = member.certificate.is_self_issued();
                is_own.then_some(member)
            });
            let checked = match issuer {
                Some(issuer) => self.check_list(member, issuer, now_s),
                None => Err(Failure::NoList),
            };
            if let Err(failure) = checked {
                self.fail(failure);
            }
        }
    }

    fn check_list(
        &mut self,
        member: &Member<'_>,
        issuer: &Member<'_>,
        now_s: u64,
    ) -> Result<(), Failure> {
        let lists = self.trust.revoked.iter();
        let lists = lists.filter_map(|der| RevocationList::read(der));
        let own = lists.filter(|list| list.issuer == member.certificate.issuer.as_bytes());
        // The newest list that is in force.
        let newest = own.max_by_key(|list| (list.this_update_s <= now_s, list.this_update_s));
        let list = newest.ok_or(Failure::NoList)?;
        if list.has_unknown_critical || !issuer.certificate.extensions.may_sign_lists() {
            return Err(Failure::NoList);
        }
        if !self.is_signed(&issuer.certificate.key, list.signed, &list.signature) {
            return Err(Failure::ListSignature);
        }
        if now_s < list.this_update_s {
            return Err(Failure::ListNotYetValid);
        }
        if list.next_update_s.is_some_and(|next| next < now_s) {
            return Err(Failure::ListExpired);
        }
        match list.revokes(member.certificate.serial) {
            Some(false) => Ok(()),
            Some(true) => Err(Failure::Revoked),
            None => Err(Failure::NoList),
        }
    }

    /// Checks the validity period of each certificate.
    fn check_times(&mut self, chain: &[Member<'_>], now_s: u64) {
        for member in chain.iter().rev() {
            if now_s < member.certificate.not_before_s {
                self.fail(Failure::NotYetValid);
            }
            if now_s > member.certificate.not_after_s {
                self.fail(Failure::Expired);
            }
        }
    }
}

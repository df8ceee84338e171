//! The certificates and the revocation lists of PEM texts: all of them, or an error.
//!
//! The blocks are those that OpenSSL reads. Where OpenSSL would pass over the block of a
//! certificate in silence, as its first line does not stand alone, the text is refused: a chain or
//! a list of trusted certificates that lacks one fails later, and for some peers only.

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use turnpike_wire::certificate::{self, Certificate, RevocationList};
use turnpike_wire::pem::{Block, Lines, PemError, Piece, Pieces};

use super::error::{ChainError, Fault, TrustError};

/// The labels of certificates, and of revocation lists.
const PLAIN: &str = "CERTIFICATE";
const OLD: &str = "X509 CERTIFICATE";
/// Trust settings of OpenSSL follow the certificate; they are not used.
const TRUSTED: &str = "TRUSTED CERTIFICATE";
const LIST: &str = "X509 CRL";

/// The word before a label.
const BEGIN: &[u8] = b"BEGIN";

/// What must not be left out of a chain, and of a file of trusted certificates.
const IN_CHAIN: &[&str] = &[PLAIN, OLD, TRUSTED];
const IN_TRUSTED: &[&str] = &[PLAIN, OLD, TRUSTED, LIST];

/// What a file of trusted certificates holds.
#[derive(Default)]
pub(super) struct Trusted {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
}

/// The certificates of a chain; there is at least one.
///
/// # Errors
/// There is none, one cannot be read, or one would be left out.
pub fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ChainError> {
    let mut chain = Vec::new();
    let mut watch = Watch::over(IN_CHAIN);
    for piece in Pieces::new(pem) {
        let is_first = chain.is_empty();
        let read = watch.read(piece, |block, label| match label {
            // OpenSSL takes trust settings behind the first certificate alone.
            PLAIN | OLD => Some(certificate(block, is_first).map(Some)),
            TRUSTED if is_first => Some(certificate(block, true).map(Some)),
            _ => None,
        });
        match read {
            Ok(one) => chain.extend(one),
            Err(fault) => return Err(ChainError { is_first, fault }),
        }
    }
    let fault = match watch.left_out {
        _ if chain.is_empty() => Fault::NoCertificate,
        Some(line) => Fault::LeftOut(line),
        None => return Ok(chain),
    };
    let is_first = chain.is_empty();
    Err(ChainError { is_first, fault })
}

/// The certificates and the lists of a text.
///
/// # Errors
/// There is neither, one cannot be read, or one would be left out.
pub(super) fn trusted(pem: &[u8]) -> Result<Trusted, TrustError> {
    let mut found = Trusted::default();
    let mut watch = Watch::over(IN_TRUSTED);
    for piece in Pieces::new(pem) {
        let lists = &mut found.lists;
        let read = watch.read(piece, |block, label| match label {
            PLAIN | OLD => Some(anchor(block, false).map(Some)),
            TRUSTED => Some(anchor(block, true).map(Some)),
            LIST => Some(list(block).map(|list| {
                lists.push(list);
                None
            })),
            _ => None,
        });
        found.certificates.extend(read.map_err(TrustError)?);
    }
    match watch.left_out {
        _ if found.certificates.is_empty() && found.lists.is_empty() => {
            Err(TrustError(Fault::Nothing))
        }
        Some(line) => Err(TrustError(Fault::LeftOut(line))),
        None => Ok(found),
    }
}

/// The certificate of a piece, if it has one.
type Found = Result<Option<CertificateDer<'static>>, Fault>;

/// What is passed over, and should not be.
struct Watch {
    /// The labels of blocks that are wanted.
    wanted: &'static [&'static str],
    /// The line in which the first block begins that would be left out.
    left_out: Option<usize>,
}

impl Watch {
    fn over(wanted: &'static [&'static str]) -> Watch {
        Watch {
            wanted,
            left_out: None,
        }
    }

    /// The certificate of a piece, if it has one. `read` reads the block with this label; its
    /// `None` means that the block is passed over.
    fn read(
        &mut self,
        piece: Result<Piece<'_>, PemError>,
        read: impl FnOnce(&Block<'_>, &str) -> Option<Found>,
    ) -> Found {
        let block = match piece.map_err(Fault::Pem)? {
            Piece::Text(lines) => {
                self.look_at(&lines);
                return Ok(None);
            }
            Piece::Block(block) => block,
        };
        // A block without a last line goes on through the next one.
        self.look_at(&block.body);
        let label = str::from_utf8(block.label).unwrap_or_default();
        if let Some(read) = read(&block, label) {
            return read;
        }
        if certificate::split(&block.data).is_some() || self.wants(block.label) {
            self.left_out.get_or_insert(block.line);
        }
        Ok(None)
    }

    /// Looks for blocks that begin in lines that are passed over.
    fn look_at(&mut self, lines: &Lines<'_>) {
        let mut rest = lines.bytes.split(|byte| *byte == b'\n').peekable();
        let mut line = lines.line;
        while let Some(text) = rest.next() {
            // A block whose lines are all comments is meant to be left out.
            let is_comment = is_comment(text) && rest.peek().is_none_or(|next| is_comment(next));
            if !is_comment && self.finds_first_line(text) {
                self.left_out.get_or_insert(line);
            }
            line += 1;
        }
    }

    /// Whether the first line of a block that is wanted is in a line, however it is damaged.
    fn finds_first_line(&self, line: &[u8]) -> bool {
        // Word processors make other dashes of hyphens.
        let is_dash = |byte: &u8| *byte == b'-' || !byte.is_ascii();
        if !line.iter().any(is_dash) {
            return false;
        }
        // UTF-16 has a NUL beside each letter.
        let plain: Vec<u8> = line.iter().copied().filter(|byte| *byte != 0).collect();
        let text = plain.to_ascii_uppercase();
        text.windows(BEGIN.len()).enumerate().any(|(at, word)| {
            let (before, rest) = (&text[..at], &text[at + word.len()..]);
            let label = rest.split(is_dash).next().unwrap_or_default();
            word == BEGIN
                && before.trim_ascii_end().last().is_some_and(is_dash)
                && self.wants(label)
        })
    }

    /// Whether a label is one of those that are wanted, but for case and white space.
    fn wants(&self, label: &[u8]) -> bool {
        let words = label.to_ascii_uppercase();
        let words = words.split(|byte| byte.is_ascii_whitespace());
        let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
        let label = words.join(&b' ');
        self.wanted.iter().any(|known| known.as_bytes() == label)
    }
}

fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// The certificate of a block; trust settings may follow it.
fn certificate(
    block: &Block<'_>,
    may_have_settings: bool,
) -> Result<CertificateDer<'static>, Fault> {
    check_header(block)?;
    let split = certificate::split(&block.data);
    let (own, rest) = split.ok_or(Fault::Malformed(block.line))?;
    let is_another = certificate::split(rest).is_some();
    match rest.is_empty() || !may_have_settings || certificate::is_sequence(rest) {
        _ if is_another => Err(Fault::Several(block.line)),
        true => Ok(CertificateDer::from(own.to_vec())),
        false => Err(Fault::Malformed(block.line)),
    }
}

/// As [`certificate`], for one that chains are verified with.
fn anchor(block: &Block<'_>, may_have_settings: bool) -> Result<CertificateDer<'static>, Fault> {
    let read = certificate(block, may_have_settings)?;
    match Certificate::read(&read) {
        Some(_) => Ok(read),
        None => Err(Fault::Malformed(block.line)),
    }
}

fn list(block: &Block<'_>) -> Result<CertificateRevocationListDer<'static>, Fault> {
    check_header(block)?;
    match RevocationList::read(&block.data) {
        Some(_) => Ok(block.data.clone().into()),
        None => Err(Fault::Malformed(block.line)),
    }
}

/// Nothing here is encrypted, and no other header has a meaning.
fn check_header(block: &Block<'_>) -> Result<(), Fault> {
    match block.header.is_empty() {
        true => Ok(()),
        false if block.header.starts_with(b"Proc-Type: 4,ENCRYPTED") => {
            Err(Fault::Encrypted(block.line))
        }
        false => Err(Fault::Header(block.line)),
    }
}

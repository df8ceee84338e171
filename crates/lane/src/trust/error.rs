//! The reasons why the certificates of a PEM text cannot be used, in OpenSSL's words where it has
//! some.

use std::error::Error;
use std::fmt;

use turnpike_wire::pem::PemError;

/// What is wrong with a text; the numbers are those of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Pem(PemError),
    /// A certificate or a list is not one of RFC 5280.
    Malformed(usize),
    /// A block has a header that means nothing here.
    Header(usize),
    Encrypted(usize),
    /// A block has more than one certificate, of which OpenSSL would take the first.
    Several(usize),
    /// OpenSSL would pass over a certificate or a list in silence.
    LeftOut(usize),
    /// There is no certificate of a chain.
    NoCertificate,
    /// There is neither a certificate nor a list.
    Nothing,
    /// There is no list.
    NoList,
}

/// Why a chain of certificates could not be read. The message follows the name of its file.
#[derive(Debug, PartialEq, Eq)]
pub struct ChainError {
    pub(super) is_first: bool,
    pub(super) fault: Fault,
}

/// Why trusted certificates or revocation lists could not be read. The message follows the word
/// `failed`.
#[derive(Debug, PartialEq, Eq)]
pub struct TrustError(pub(super) Fault);

impl Fault {
    /// The line in which the fault is.
    fn line(self) -> Option<usize> {
        match self {
            Fault::Pem(PemError { line, .. })
            | Fault::Malformed(line)
            | Fault::Header(line)
            | Fault::Encrypted(line)
            | Fault::Several(line)
            | Fault::LeftOut(line) => Some(line),
            Fault::NoCertificate | Fault::Nothing | Fault::NoList => None,
        }
    }

    /// Writes the fault. OpenSSL's reason is followed by that of its caller.
    fn write(self, out: &mut fmt::Formatter<'_>, of_caller: &str) -> fmt::Result {
        match (self, self.line()) {
            (Fault::LeftOut(line), _) => write!(
                out,
                "(the block that begins in line {line} would be left out: its first line must \
                 stand alone, after the last line of the block before)"
            ),
            (fault, Some(line)) => write!(out, "(SSL: {fault}{of_caller}), see line {line}"),
            (fault, None) => write!(out, "(SSL: {fault})"),
        }
    }
}

/// OpenSSL's words, where it has some.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Fault::Pem(PemError { fault, .. }) => return fault.fmt(out),
            Fault::Malformed(_) => "error:0488000D:PEM routines::ASN1 lib",
            Fault::Header(_) => "error:0480006B:PEM routines::not proc type",
            Fault::Encrypted(_) => "error:04800068:PEM routines::bad password read",
            Fault::Several(_) => "more than one certificate in a block",
            Fault::LeftOut(_) => "it would be left out",
            Fault::NoCertificate => {
                "error:0480006C:PEM routines::no start line:Expecting: TRUSTED CERTIFICATE"
            }
            Fault::Nothing => {
                "error:05800088:x509 certificate routines::no certificate or crl found"
            }
            Fault::NoList => "no list of revoked certificates in it",
        })
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_first {
            "PEM_read_bio_X509_AUX() failed "
        } else {
            "PEM_read_bio_X509() failed "
        })?;
        self.fault.write(out, "")
    }
}

impl fmt::Display for TrustError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_caller = " error:05880009:x509 certificate routines::PEM lib";
        self.0.write(out, of_caller)
    }
}

impl Error for ChainError {}
impl Error for TrustError {}

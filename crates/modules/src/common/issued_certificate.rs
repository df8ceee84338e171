//! The certificate that an issuer has given a server, handed from the family that orders it to the
//! one that shows it in handshakes, while the server is read.

use std::sync::Arc;

use turnpike_plan::tls::CertificateSource;

/// What an issuer has for the server that is being read.
#[derive(Default)]
pub(crate) struct IssuedSource {
    /// Where handshakes get `$acme_certificate`; `None`: it has none.
    pub(crate) source: Option<Arc<dyn CertificateSource>>,
    /// Whether the server would have one, if it had a name that can be certified.
    pub(crate) lacks_name: bool,
}

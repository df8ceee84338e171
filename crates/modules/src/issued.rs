//! The certificate that an issuer has given a server, handed from the family that orders it to the
//! one that shows it in handshakes, while the server is read.

use std::sync::Arc;

use turnpike_plan::tls::CertificateSource;

/// Where handshakes of the server that is being read get `$acme_certificate`; `None`: it has none.
#[derive(Default)]
pub(crate) struct IssuedSource(pub(crate) Option<Arc<dyn CertificateSource>>);

//! What the certificate that a client has shown, or the lack of one, means for its requests.

use std::sync::Arc;

use turnpike_lane::log::Level;
use turnpike_plan::tls::{ClientRefusal, ServerTls, VerifyClient};

use crate::exchange::Exchange;

/// The status of a request for a server that the handshake was not with.
pub(crate) const MISDIRECTED: u16 = 421;

impl Exchange {
    /// The status by which the request's server refuses the client for its certificate, or for the
    /// lack of one; `None`: it does not.
    pub(crate) fn client_refusal(&mut self) -> Option<u16> {
        let plan = self.plan.clone();
        let root = plan.location(self.server().root);
        let verify = root.verify_client;
        if verify == VerifyClient::Off {
            return None;
        }
        // A client that names no server was judged by the default one, and a reload may have
        // changed what is trusted since the handshake.
        if let Some(ServerTls::Serve(identity)) = &root.tls
            && let Some(session) = self.requester.tls()?.judged_by(identity)
        {
            self.requester.set_tls(Some(&Arc::new(session)));
        }
        let session = self.requester.tls()?;
        let refuse = |status: u16, why: std::fmt::Arguments<'_>| {
            self.log(Level::Info, why);
            Some(status)
        };
        // The handshake was another server's: what the client has shown, it has shown to that one.
        let negotiated = session.negotiated_host();
        if !negotiated.is_empty() && negotiated != self.request().host() {
            return refuse(
                MISDIRECTED,
                format_args!(
                    "client attempted to request the server name different from the one that was \
                     negotiated"
                ),
            );
        }
        let refusal = verify.refusal(session.client.as_deref())?;
        let status = match refusal {
            ClientRefusal::Missing => 496,
            ClientRefusal::Bad(_) => 495,
        };
        refuse(status, format_args!("{refusal}"))
    }
}

//! What the certificate that a client has shown, or the lack of one, means for its requests.

use turnpike_lane::log::Level;

use crate::exchange::Exchange;
use turnpike_plan::tls::{ClientRefusal, VerifyClient};

impl Exchange {
    /// The status by which the request's server refuses the client for its certificate, or for the
    /// lack of one; `None`: it does not.
    pub(crate) fn client_refusal(&self) -> Option<u16> {
        let session = self.requester.tls()?;
        let plan = self.plan.clone();
        let verify = plan.location(self.server().root).verify_client;
        if verify == VerifyClient::Off {
            return None;
        }
        let refuse = |status: u16, why: std::fmt::Arguments<'_>| {
            self.log(Level::Info, why);
            Some(status)
        };
        // The handshake was another server's: what the client has shown, it has shown to that one.
        if !session.server_name.is_empty() && *session.server_name != *self.request().host() {
            return refuse(
                421,
                format_args!(
                    "client attempted to request the server name different from the one that was \
                     negotiated"
                ),
            );
        }
        let refusal = verify.refusal(session.client.as_ref())?;
        let status = match refusal {
            ClientRefusal::Missing => 496,
            ClientRefusal::Bad(_) => 495,
        };
        refuse(status, format_args!("{refusal}"))
    }
}

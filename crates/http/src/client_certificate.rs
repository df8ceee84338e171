//! What the certificate that a client has shown, or the lack of one, means for its requests.

use turnpike_lane::log::Level;

use crate::exchange::Exchange;
use crate::tls::VerifyClient;

impl Exchange {
    /// The status by which the request's server refuses the client for its certificate, or for the
    /// lack of one; `None`: it does not.
    pub(crate) fn client_refusal(&self) -> Option<u16> {
        let session = self.tls.as_deref()?;
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
        if !session.server_name.is_empty() && *session.server_name != *self.host {
            return refuse(
                421,
                format_args!(
                    "client attempted to request the server name different from the one that was \
                     negotiated"
                ),
            );
        }
        let Some(client) = &session.client else {
            return match verify {
                VerifyClient::On => {
                    refuse(496, format_args!("client sent no required SSL certificate"))
                }
                _ => None,
            };
        };
        let failure = client.failure?;
        if verify == VerifyClient::OptionalNoCa && failure.is_of_trust() {
            return None;
        }
        let number = failure.number();
        refuse(
            495,
            format_args!("client SSL certificate verify error: ({number}:{failure})"),
        )
    }
}

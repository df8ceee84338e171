//! How a connection is secured: not at all, by a session, or by one that is being agreed on.

use std::sync::Arc;

use turnpike_lane::transport::{Greeting, Hello};

use crate::requester::Requester;
use turnpike_plan::tls::{Loaded, Offer, ServerIdentity, TlsSession};

/// How a connection is secured.
pub(in crate::connection) enum Security {
    /// Not at all.
    Plain,
    /// Not at all, though its listener expects it.
    PlainOnTlsPort,
    /// The handshake goes on; what has the connection has its state too.
    Handshaking,
    /// The session stands.
    Secure(Arc<TlsSession>),
}

/// How far a handshake is.
pub(in crate::connection) enum Handshaking {
    /// Nothing has come of it; these bytes, if any, are a part of a PROXY protocol header.
    Beginning(Vec<u8>),
    /// First bytes that whoever passed the connection on has read; not empty.
    Given(Vec<u8>),
    /// A part of the client's hello.
    Hello(Box<Hello>),
    /// The certificates that the session shows were read, or could not be.
    Certified(Box<Certified>),
    /// The session is agreed on.
    Session(Agreed),
    /// The session stands, and the client's certificate has been asked for.
    Complete(Box<TlsSession>),
}

/// A ClientHello with the certificates that answer it.
pub(in crate::connection) struct Certified {
    pub(in crate::connection) greeting: Greeting,
    pub(in crate::connection) agreed: Agreed,
    pub(in crate::connection) certificates: Loaded,
}

/// What a session goes on with.
pub(in crate::connection) struct Agreed {
    pub(in crate::connection) offer: Offer,
    pub(in crate::connection) identity: Arc<ServerIdentity>,
}

impl Security {
    /// Of a connection that was just accepted.
    pub(in crate::connection) fn of_new(expects_tls: bool) -> Security {
        if expects_tls {
            Security::Handshaking
        } else {
            Security::Plain
        }
    }

    pub(in crate::connection) fn is_handshaking(&self) -> bool {
        matches!(self, Security::Handshaking)
    }

    /// Lets the requester of an exchange know.
    pub(in crate::connection) fn tell(&self, client: &mut Requester) {
        client.set_plain_on_tls_port(matches!(self, Security::PlainOnTlsPort));
        client.set_tls(match self {
            Security::Secure(session) => Some(session),
            _ => None,
        });
    }
}

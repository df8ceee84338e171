//! The request or session that a line belongs to.

use std::fmt;

/// The request or session that a line belongs to. Its text stands after the message, in nginx's
/// form.
pub trait Subject: fmt::Display {
    /// Calls `add` with each member and its value.
    fn members(&self, add: &mut dyn FnMut(Member, fmt::Arguments<'_>));
}

/// A part of the text about a subject: a member of a line in JSON, and a property of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The work that was under way.
    Action,
    /// The client's address.
    Client,
    /// The server's name or address.
    Server,
    /// The request line.
    Request,
    /// The path of the subrequest.
    Subrequest,
    /// The peer, with the path that was asked for.
    Upstream,
    /// The request's `Host`.
    Host,
    /// The request's `Referer`.
    Referrer,
}

impl Member {
    /// All members, in the order of a line.
    pub const ALL: [Member; 8] = [
        Member::Action,
        Member::Client,
        Member::Server,
        Member::Request,
        Member::Subrequest,
        Member::Upstream,
        Member::Host,
        Member::Referrer,
    ];

    /// The member's name in JSON and in filters.
    pub fn name(self) -> &'static str {
        match self {
            Member::Action => "action",
            Member::Client => "client",
            Member::Server => "server",
            Member::Request => "request",
            Member::Subrequest => "subrequest",
            Member::Upstream => "upstream",
            Member::Host => "host",
            Member::Referrer => "referrer",
        }
    }
}

//! What is passed to groups: requests of HTTP, and sessions of stream.

use turnpike_conf::{Complaint, Entry};
use turnpike_http::exchange::Exchange;
use turnpike_plan::builder::Builder;
use turnpike_stream::session::Session;
use turnpike_upstream::Until;

use super::servers;
use super::sticky::Sticky;

/// What is passed to groups. Each kind has groups of its own.
pub(crate) trait Passed: Sized + 'static {
    /// What keys of the groups' states begin with.
    const STATES: &'static str;
    /// What their names for commands begin with.
    const NAME_PREFIX: &'static str;
    /// Port of servers that are written without one; 0: one must be written.
    const DEFAULT_PORT: u16;

    /// The times by which servers can be chosen, by their names in directives.
    const TIMES: &'static [(&'static str, Until)];

    /// Reads `sticky`.
    ///
    /// # Errors
    /// nginx's message, without its place.
    fn sticky(entry: &Entry, builder: &mut Builder<'_, Self>) -> Result<Sticky, Complaint>;
}

impl Passed for Exchange {
    const STATES: &'static str = "upstream";
    const NAME_PREFIX: &'static str = "";
    const DEFAULT_PORT: u16 = servers::DEFAULT_PORT;
    const TIMES: &'static [(&'static str, Until)] =
        &[("header", Until::Header), ("last_byte", Until::LastByte)];

    fn sticky(entry: &Entry, builder: &mut Builder<'_, Self>) -> Result<Sticky, Complaint> {
        Sticky::read(entry, builder)
    }
}

impl Passed for Session {
    const STATES: &'static str = "stream-upstream";
    const NAME_PREFIX: &'static str = "stream:";
    const DEFAULT_PORT: u16 = 0;
    const TIMES: &'static [(&'static str, Until)] = &[
        ("connect", Until::Connect),
        ("first_byte", Until::Header),
        ("last_byte", Until::LastByte),
    ];

    fn sticky(_: &Entry, _: &mut Builder<'_, Self>) -> Result<Sticky, Complaint> {
        Err("\"sticky\" directive is not allowed here".into())
    }
}

//! Interim responses, whatever protocol they leave in.

use turnpike_wire::message::Fields;

/// The head of an interim response (RFC 9110 section 15.2).
pub struct InterimHead<'a> {
    /// A status from 102 to 199.
    pub status: u16,
    pub fields: &'a Fields,
}

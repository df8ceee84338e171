//! `proxy_pass` of `stream`: connections are passed to servers, and their bytes both ways; so are
//! the datagrams of UDP's flows.
//!
//! Which server it is, [`crate::upstream`] says. Nothing here looks at the bytes.

mod activity;
mod buffer_size;
mod datagrams;
mod direction_limit;
mod flow_steps;
mod handler;
mod own_address;
mod plain_relay;
mod plan;
mod quic;
mod relay;
mod rows;
mod steps;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_stream::plan::Family;

pub(crate) const FAMILY: Family = Family {
    name: "stream proxy",
    rows: rows::ROWS,
    reference: &[
        ReferenceText::new(include_str!("reference.md")),
        ReferenceText::shared(crate::pass::TLS_REFERENCE, &[("PREFIX", "proxy")]),
    ],
    stream: buffer_size::check,
    server: plan::server,
    ..Family::NONE
};

//! `ssi`: commands in a response's text, such as the inclusion of another response.
//!
//! ```text
//!  response's body ─► template parser (wire::ssi) ─┬─► text ─────────────────────┐
//!                                                  └─► command ─► page ─┬─► text ─┴─► client
//!                                                                       └─► subrequest ─► its body
//! ```
//!
//! Parts are asked for one after another, each when its place in the page is reached.

mod body;
mod command;
mod expression;
mod handler;
mod page;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Ssi;

//! `userid`: a cookie by which a client is known again.

mod handler;
mod identifier;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::UserId;

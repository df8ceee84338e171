//! `fastcgi_pass`: requests are passed to FastCGI applications, such as PHP.
//!
//! ```text
//!  plan ─► settings ─► pass (the engine)
//!  request: parameters and body, in records ─►┐ application
//!  records: taken off ─► head (CGI) ─► body ◄─┘
//! ```
//!
//! The family reads its directives, writes requests and reads heads; `pass` does the rest.

mod origin;
mod plan;
mod records;
mod rows;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use plan::FastCgi;

//! The versions that the server claims, in one place.

/// The nginx version whose directives and behaviour are followed; shown by `-v`, in the Server
/// field and as `$nginx_version`.
pub const NGINX_VERSION: &str = "1.31.4";

/// This server's own version.
pub const TURNPIKE_VERSION: &str = env!("CARGO_PKG_VERSION");

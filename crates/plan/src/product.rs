//! The server's product name: its own, or nginx's for tools and users that expect it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The nginx version whose behaviour is followed; tools compare it numerically.
pub const NGINX_VERSION: &str = "1.31.6";

/// This server's own version.
pub const TURNPIKE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The product name in `Server`, on error pages, in the log and in `-v`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Product {
    #[default]
    Turnpike,
    Nginx,
}

impl Product {
    /// The product for the name of the program file: one that begins with `nginx`, as in packages
    /// and upgrades, means nginx's.
    pub fn of_program(program: &OsStr) -> Product {
        let name = Path::new(program).file_name().unwrap_or_default();
        if name.as_bytes().starts_with(b"nginx") {
            Product::Nginx
        } else {
            Product::Turnpike
        }
    }

    /// The name alone.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turnpike => "turnpike",
            Self::Nginx => "nginx",
        }
    }

    /// Name and version.
    pub const fn name_and_version(self) -> &'static str {
        match self {
            Self::Turnpike => concat!("turnpike/", env!("CARGO_PKG_VERSION")),
            Self::Nginx => "nginx/1.31.6",
        }
    }

    /// The build that `server_tokens build` and `-V` name: under nginx's name, the real product.
    pub const fn build(self) -> &'static str {
        match self {
            Self::Turnpike => "nginx/1.31.6",
            Self::Nginx => concat!("turnpike/", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Name, version and build.
    pub const fn name_and_build(self) -> &'static str {
        match self {
            Self::Turnpike => concat!("turnpike/", env!("CARGO_PKG_VERSION"), " (nginx/1.31.6)"),
            Self::Nginx => concat!("nginx/1.31.6 (turnpike/", env!("CARGO_PKG_VERSION"), ")"),
        }
    }
}

#[cfg(test)]
mod tests;

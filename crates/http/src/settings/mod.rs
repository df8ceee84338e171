//! The directives of the HTTP core, resolved: what the connection and the engine ask at each
//! request. Families keep their own settings; nothing of theirs stands here.

mod checks;
mod debugged;
pub(crate) mod error_page;
pub(crate) mod location;
mod root;
mod rows;
pub(crate) mod server;
mod types;

pub use debugged::{DebuggedClients, check_debug_connection};
pub use error_page::{ErrorPage, ErrorTarget, PageStatus};
pub use location::{LingeringClose, LocationSettings, Satisfy};
pub(crate) use location::{declare_folders, location_names};
pub use root::Root;
pub use rows::ROWS;
pub use server::{EventsSettings, Http2Settings, ServerSettings};
pub use types::{DEFAULT_TYPES, TypesTable};

/// What people wrote about the directives.
pub const REFERENCE: &[turnpike_conf::ReferenceText] = &[turnpike_conf::ReferenceText::new(
    include_str!("reference.md"),
)];

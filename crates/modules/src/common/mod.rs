//! Code that more than one family needs. A module here says what it has in the field's words; it is
//! no family: it has no directives of its own, and names no family.

pub(crate) mod added_body;
pub(crate) mod address;
pub(crate) mod buffers;
pub(crate) mod by_location;
pub(crate) mod conditions;
pub(crate) mod constant_time;
pub(crate) mod content;
pub(crate) mod cookie_expiry;
pub(crate) mod copies;
pub(crate) mod entity;
pub(crate) mod expiry;
pub(crate) mod file_access;
pub(crate) mod file_response;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod hostnames;
pub(crate) mod html;
pub(crate) mod internal_target;
pub(crate) mod issued;
pub(crate) mod limits;
pub(crate) mod own_request;
pub(crate) mod part;
pub(crate) mod pem_key;
pub(crate) mod predicates;
pub(crate) mod query;
pub(crate) mod refused;
pub(crate) mod rows;
pub(crate) mod safe_path;
pub(crate) mod server_names;
pub(crate) mod shards;
pub(crate) mod types;
pub(crate) mod wanted_part;
pub(crate) mod zone;

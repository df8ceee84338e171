//! Code that more than one family needs. A module here says what it has in the field's words; it is
//! no family: it has no directives of its own, and names no family.

pub(crate) mod added_body;
pub(crate) mod address;
pub(crate) mod address_refusal;
pub(crate) mod buffer_sizes;
pub(crate) mod by_location;
pub(crate) mod certificate_expiry;
pub(crate) mod changed_entity;
pub(crate) mod conditions;
pub(crate) mod constant_time;
pub(crate) mod content_directive;
pub(crate) mod content_types;
pub(crate) mod cookie_expiry;
pub(crate) mod file_access;
pub(crate) mod file_response;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod hostnames;
pub(crate) mod html;
pub(crate) mod internal_target;
pub(crate) mod issued_certificate;
pub(crate) mod limits;
pub(crate) mod own_request;
pub(crate) mod pem_key;
pub(crate) mod predicates;
pub(crate) mod published_copies;
pub(crate) mod query_argument;
pub(crate) mod row_tables;
pub(crate) mod safe_path;
pub(crate) mod served;
pub(crate) mod server_names;
pub(crate) mod shards;
pub(crate) mod subrequest_body;
pub(crate) mod wanted_part;
pub(crate) mod zone;

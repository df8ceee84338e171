//! Rows of TLS to gRPC servers that are not in force yet.

use turnpike_conf::Row;

use super::passing::*;

pub(super) const ROWS: &[Row] = table! {
    "Checked; not supported yet.";
    "grpc_ssl_conf_command" => COMMAND,
};

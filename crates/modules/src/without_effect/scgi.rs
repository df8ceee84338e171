//! SCGI's rows.

use turnpike_conf::Row;

use super::passing::*;

pub(super) const ROWS: &[Row] = passing! { "scgi"; };

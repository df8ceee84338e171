//! FastCGI's rows.

use turnpike_conf::{Repeat, Row, Value};

use super::checks;
use super::passing::*;

const SPLIT: Row = Row {
    value: Value::Checked(checks::split_path_info),
    repeat: Repeat::Many,
    syntax: "regex",
    ..ONE
};

pub(super) const ROWS: &[Row] = passing! {
    "fastcgi";
    "fastcgi_catch_stderr" => Row { repeat: Repeat::Many, ..TEXT },
    "fastcgi_index" => TEXT,
    "fastcgi_keep_conn" => FLAG,
    "fastcgi_send_lowat" => SIZE,
    "fastcgi_split_path_info" => SPLIT,
};

//! memcached's rows.

use turnpike_conf::Row;

use super::passing::*;

const NEXT_SERVER: Row = words(
    &["error", "timeout", "invalid_response", "not_found", "off"],
    "error | timeout | invalid_response | not_found | off ...",
);

pub(super) const ROWS: &[Row] = table! {
    "Checked; takes effect with `memcached_pass`, which is not supported yet.";
    "memcached_bind" => BIND,
    "memcached_buffer_size" => SIZE,
    "memcached_connect_timeout" => TIME,
    "memcached_gzip_flag" => NUMBER,
    "memcached_next_upstream" => NEXT_SERVER,
    "memcached_next_upstream_timeout" => TIME,
    "memcached_next_upstream_tries" => NUMBER,
    "memcached_read_timeout" => TIME,
    "memcached_send_timeout" => TIME,
    "memcached_socket_keepalive" => FLAG,
};

//! The family's variables.

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::VariableRow;

use crate::pass::http_origin::accepts_trailers;

pub(super) const ROWS: &[VariableRow] = &[VariableRow {
    name: "grpc_internal_trailers",
    get: trailers,
    set: None,
    summary: "`trailers` if the client accepts trailer fields, otherwise no value.",
}];

fn trailers(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let accepts = accepts_trailers(exchange);
    if accepts {
        out.extend_from_slice(b"trailers");
    }
    accepts
}

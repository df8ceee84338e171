//! The family's variable.

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::VariableRow;

use crate::common::wanted_part::WantedPart;

pub(super) const ROWS: &[VariableRow] = &[VariableRow {
    name: "slice_range",
    get: slice_range,
    set: None,
    summary: "The requested part, in the form of `Range`: `bytes=0-1048575`.",
}];

fn slice_range(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let range = WantedPart::tell(exchange);
    out.extend_from_slice(range.unwrap_or_default());
    range.is_some()
}

//! Variables of what cannot be here, with the values that nginx gives them on plain connections.

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::VariableRow;

/// No value, as logs show by a hyphen.
const fn absent(name: &'static str, summary: &'static str) -> VariableRow {
    VariableRow {
        name,
        get: none,
        set: None,
        summary,
    }
}

/// An empty value.
const fn empty(name: &'static str, summary: &'static str) -> VariableRow {
    VariableRow {
        get: nothing,
        ..absent(name, summary)
    }
}

fn none(_: &Exchange, _: &mut Vec<u8>) -> bool {
    false
}

fn nothing(_: &Exchange, _: &mut Vec<u8>) -> bool {
    true
}

pub(super) const HTTP3: &[VariableRow] = &[empty("http3", "Empty: HTTP/3 is not supported yet.")];

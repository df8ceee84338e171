//! `$date_gmt` and `$date_local`.

use turnpike_plan::time::{append_date_gmt, append_date_local};

use super::row::VariableRow;
use crate::exchange::Exchange;

/// `$date_gmt` and `$date_local`.
pub const DATES: &[VariableRow] = &[
    VariableRow {
        name: "date_gmt",
        get: date_gmt,
        set: None,
        summary: "The current time in GMT, with the day of the week.",
    },
    VariableRow {
        name: "date_local",
        get: date_local,
        set: None,
        summary: "The current local time, with the day of the week.",
    },
];

fn date_gmt(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    append_date_gmt(exchange.lane.clock.unix_seconds(), out);
    true
}

fn date_local(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    append_date_local(exchange.lane.clock.unix_seconds(), out);
    true
}

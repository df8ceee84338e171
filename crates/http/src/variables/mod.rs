//! The variables of a request, and the request as what variables have values for.

mod builtin;
mod date;
mod proxy;
pub(crate) mod row;
mod socket;
mod text;
mod upstream;

use std::cell::RefCell;
use std::fmt;

use turnpike_lane::log::Level;
use turnpike_plan::regex::Allowance;
use turnpike_plan::tls::{HasTlsSession, TlsSession};
use turnpike_plan::variables::{PrefixRow, Subject};

pub use builtin::{BUILTIN, request_number};
pub use date::DATES;
pub use row::{Getter, Setter, VariableRow, VariableTable};
pub use socket::SOCKET;
pub use text::{append_address, append_number};
pub use turnpike_plan::template::Template;
pub use turnpike_plan::variables::{Evaluate, Sources, Values, VariableId, append_named};

use crate::exchange::Exchange;
use crate::regex::{Regex, Undecided};

/// The names that stand for any field, argument or cookie.
const PREFIXES: &[PrefixRow<Exchange>] = &[
    PrefixRow {
        prefix: "http_",
        get: builtin::request_field,
    },
    PrefixRow {
        prefix: "sent_http_",
        get: builtin::sent_field,
    },
    PrefixRow {
        prefix: "sent_trailer_",
        get: |exchange, name, out| builtin::values(exchange.response.trailers(), name, out),
    },
    PrefixRow {
        prefix: "arg_",
        get: builtin::argument,
    },
    PrefixRow {
        prefix: "upstream_http_",
        get: upstream::field,
    },
    PrefixRow {
        prefix: "upstream_trailer_",
        get: |exchange, name, out| builtin::values(exchange.upstream.trailers(), name, out),
    },
    PrefixRow {
        prefix: "upstream_cookie_",
        get: upstream::cookie,
    },
    PrefixRow {
        prefix: "proxy_protocol_tlv_",
        get: proxy::addition,
    },
    PrefixRow {
        prefix: "cookie_",
        get: builtin::cookie,
    },
];

/// A table that knows the built-in variables and those of the families.
pub fn table(rows: impl IntoIterator<Item = VariableRow>) -> VariableTable {
    let builtin = BUILTIN.iter().chain(SOCKET).chain(DATES).copied();
    let mut table = VariableTable::new(builtin.chain(rows), PREFIXES);
    table.add_unsettled(builtin::CONTENT);
    table
}

impl HasTlsSession for Exchange {
    fn tls_session(&self) -> Option<&TlsSession> {
        self.requester.tls()
    }
}

impl Subject for Exchange {
    fn variables(&self) -> &VariableTable {
        self.plan.variables()
    }

    fn values(&self) -> &RefCell<Values> {
        self.evaluation.values()
    }

    fn group(&self, number: usize, take: &mut dyn FnMut(&[u8])) {
        if let Some(group) = self.evaluation.captures().borrow().group(number) {
            take(group);
        }
    }

    fn capture(&self, regex: &Regex, text: &[u8]) -> Result<bool, Undecided> {
        Exchange::capture(self, regex, text)
    }

    fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T {
        Exchange::with_allowance(self, call)
    }

    fn match_failures(&self) -> u32 {
        Exchange::match_failures(self)
    }

    fn is_undecided(&self) -> bool {
        Exchange::is_undecided(self)
    }

    fn unsettled_uses(&self) -> u32 {
        self.body.unsettled_uses()
    }

    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        Exchange::log(self, level, message);
    }
}

impl Exchange {
    /// Appends a variable's value to `out`; `false` when the request has none.
    pub fn variable(&self, id: VariableId, out: &mut Vec<u8>) -> bool {
        turnpike_plan::variables::append(self, id, out)
    }

    /// Stores a value, as `set` does: the variable may take it itself.
    pub fn set_variable(&mut self, id: VariableId, value: &[u8]) {
        match self.plan.variables().assignment(id) {
            Some(assignment) => assignment.make(self, value),
            None => self.evaluation.values().borrow_mut().store(id, Some(value)),
        }
    }
}

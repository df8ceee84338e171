//! Variables of requests, as families offer them and as a plan has them.

use crate::exchange::Exchange;

/// Appends a variable's value to a buffer; `false` when the request has none.
pub type Getter = turnpike_plan::variables::Getter<Exchange>;

/// Changes what a variable stands for (`set $args ...`).
pub type Setter = turnpike_plan::variables::Setter<Exchange>;

/// A variable that a directive family offers.
pub type VariableRow = turnpike_plan::variables::VariableRow<Exchange>;

/// The variables of a plan.
pub type VariableTable = turnpike_plan::variables::VariableTable<Exchange>;

//! The result of a chore, apart from the list of chores.

/// What a chore ends with: an error is one line for the person who ran it.
pub(crate) type Outcome = Result<(), String>;

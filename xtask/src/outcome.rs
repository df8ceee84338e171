//! The result of a chore, apart from the list of chores.

/// The result of a chore: an error is one line for the user.
pub(crate) type Outcome = Result<(), String>;

//! `match` blocks by name, for the checks of `http` and of `stream`. The lines of a block are read
//! by those who know what they mean.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, Directive, View};
use turnpike_plan::builder::Builder;

/// What a `match` block says of an answer.
pub(super) trait Match: Default + 'static {
    /// Reads a line of the block; `place` is the line's, for errors that come later.
    ///
    /// # Errors
    /// nginx's message, of the line.
    fn add(&mut self, line: &Directive, place: &str) -> Result<(), Complaint>;
}

struct Matches<M>(HashMap<String, Arc<M>>);

impl<M> Default for Matches<M> {
    fn default() -> Matches<M> {
        Matches(HashMap::new())
    }
}

/// Reads the blocks of a level; errors are reported to the builder.
pub(super) fn read<M: Match, S>(view: View<'_>, builder: &mut Builder<'_, S>) {
    for block in view.children("match") {
        let name = block.argument(0).to_owned();
        let mut read = M::default();
        for line in block.data() {
            if let Err(message) = read.add(line, &view.place(line.span)) {
                builder.report(view.error(line.span, message));
            }
        }
        let matches = &mut builder.store::<Matches<M>>().0;
        if matches.insert(name.clone(), Arc::new(read)).is_some() {
            let message = format!("duplicate match \"{name}\"");
            builder.report(view.error(block.span(), message));
        }
    }
}

/// The block of that name.
///
/// # Errors
/// nginx's message, where there is none.
pub(super) fn named<M: Match, S>(
    name: &str,
    builder: &mut Builder<'_, S>,
) -> Result<Arc<M>, Complaint> {
    let found = builder.store::<Matches<M>>().0.get(name).cloned();
    found.ok_or_else(|| format!("unknown match \"{name}\"").into())
}

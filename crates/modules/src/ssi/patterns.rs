//! The regular expressions that pages on a lane have used: compiling one costs far more than a
//! match.

use std::cell::RefCell;
use std::rc::Rc;

use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::plan::{Builder, Pattern};

use super::expression;

/// Expressions that a lane keeps. A site has a few; one that holds a variable may be another for
/// each request, so those kept longest go first.
const PATTERNS_MAX: usize = 32;

/// A lane's expressions, the newest last.
#[derive(Default)]
pub(super) struct Patterns(RefCell<Vec<Kept>>);

struct Kept {
    text: Vec<u8>,
    /// Where `ssi` stands, which what is logged of it says.
    place: String,
    pattern: Rc<Pattern>,
}

/// The slot for all locations, once it was made.
#[derive(Default)]
struct Slot(Option<LaneSlot<Patterns>>);

impl Patterns {
    pub(super) fn slot(builder: &mut Builder<'_>) -> LaneSlot<Self> {
        if let Some(slot) = builder.store::<Slot>().0 {
            return slot;
        }
        let slot = builder.lane_state(Self::default);
        builder.store::<Slot>().0 = Some(slot);
        slot
    }

    /// The expression with this text, which ignores case.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn find(&self, text: &[u8], place: &str) -> Result<Rc<Pattern>, String> {
        let mut patterns = self.0.borrow_mut();
        let mut kept = patterns.iter();
        if let Some(kept) = kept.find(|kept| kept.text == text && kept.place == place) {
            return Ok(Rc::clone(&kept.pattern));
        }
        let pattern = Rc::new(expression::compile(text, place)?);
        if patterns.len() == PATTERNS_MAX {
            patterns.remove(0);
        }
        patterns.push(Kept {
            text: text.to_vec(),
            place: place.to_owned(),
            pattern: Rc::clone(&pattern),
        });
        Ok(pattern)
    }
}

impl LaneState for Patterns {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn those_used_before_are_kept_up_to_a_limit() {
        let patterns = Patterns::default();
        let first = patterns.find(b"^a", "here").unwrap();
        assert!(Rc::ptr_eq(&first, &patterns.find(b"^a", "here").unwrap()));
        assert!(!Rc::ptr_eq(&first, &patterns.find(b"^a", "there").unwrap()));
        assert!(patterns.find(b"(", "here").is_err());
        for number in 0..PATTERNS_MAX {
            patterns.find(number.to_string().as_bytes(), "").unwrap();
        }
        assert_eq!(patterns.0.borrow().len(), PATTERNS_MAX);
        assert!(!Rc::ptr_eq(&first, &patterns.find(b"^a", "here").unwrap()));
    }
}

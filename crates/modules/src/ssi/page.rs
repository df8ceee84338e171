//! What the parts of one page have in common: variables, blocks, and groups of the last expression.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use turnpike_http::rooms::{Room, Rooms};

/// Parts that are asked for in one turn, before others have theirs: each may open a file.
const TURN_PARTS_MAX: u32 = 16;

/// Bytes of templates that are read and of values that are made in one turn: a page of usual size,
/// and less than a millisecond of the lane.
const TURN_BYTES_MAX: usize = 256 * 1024;

/// Bytes of all blocks and variables of a page, so that no template fills the memory with them.
pub(super) const STORED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Texts of a page whose memory the next one gets: names and values of some variables, and groups.
const KEPT_TEXTS_MAX: usize = 32;

/// Bytes of memory that such a text may have.
const KEPT_TEXT_BYTES_MAX: usize = 1024;

/// What all parts of a page share.
#[derive(Debug, Default)]
pub(super) struct Page {
    variables: HashMap<Vec<u8>, Vec<u8>>,
    blocks: HashMap<Vec<u8>, Rc<[u8]>>,
    /// Bytes of the names and texts of both.
    stored_bytes: usize,
    /// Groups of the regular expression that matched last, the whole match first.
    groups: Vec<Vec<u8>>,
    /// Empty texts that have memory.
    spare: Vec<Vec<u8>>,
    /// Parts that were asked for in this turn.
    turn_parts: u32,
    /// Bytes that were read and made in this turn.
    turn_bytes: usize,
}

impl Page {
    /// Others have had their turn.
    pub(super) fn begin_turn(&mut self) {
        self.turn_parts = 0;
        self.turn_bytes = 0;
    }

    /// Counts bytes that were read of a template, or made for a value.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.turn_bytes = self.turn_bytes.saturating_add(bytes);
    }

    /// Whether so much was done in this turn that others have theirs first.
    pub(super) fn is_turn_over(&self) -> bool {
        self.turn_bytes >= TURN_BYTES_MAX
    }

    /// Counts a part that is to be asked for now. `false`: others have their turn first.
    pub(super) fn may_ask(&mut self) -> bool {
        let may = self.turn_parts < TURN_PARTS_MAX;
        self.turn_parts += u32::from(may);
        may
    }

    /// The value of a variable that the page has set.
    pub(super) fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.variables.get(name).map(Vec::as_slice)
    }

    /// Stores a variable. `false`: there is no room for it.
    pub(super) fn set_variable(&mut self, name: &[u8], value: &[u8]) -> bool {
        if !self.has_room(name.len() + value.len()) {
            return false;
        }
        if let Some(stored) = self.variables.get_mut(name) {
            self.stored_bytes = self.stored_bytes - stored.len() + value.len();
            stored.clear();
            stored.extend_from_slice(value);
            return true;
        }
        self.stored_bytes += name.len() + value.len();
        let (name, value) = (self.text(name), self.text(value));
        self.variables.insert(name, value);
        true
    }

    /// The content of a block.
    pub(super) fn block(&self, name: &[u8]) -> Option<Rc<[u8]>> {
        self.blocks.get(name).cloned()
    }

    /// Stores a block. `false`: there is no room for it.
    pub(super) fn set_block(&mut self, name: Vec<u8>, content: Vec<u8>) -> bool {
        let more_bytes = name.len() + content.len();
        if !self.has_room(more_bytes) {
            return false;
        }
        let name_bytes = name.len();
        self.stored_bytes += more_bytes;
        if let Some(before) = self.blocks.insert(name, content.into()) {
            self.stored_bytes -= name_bytes + before.len();
        }
        true
    }

    /// A group of the last expression that matched.
    pub(super) fn group(&self, number: usize) -> Option<&[u8]> {
        self.groups.get(number).map(Vec::as_slice)
    }

    /// An expression has matched, with these groups.
    pub(super) fn set_groups<'a>(&mut self, groups: impl Iterator<Item = &'a [u8]>) {
        self.spare_groups();
        for group in groups {
            let text = self.text(group);
            self.groups.push(text);
        }
    }

    /// Whether so many bytes more may be stored.
    pub(super) fn has_room(&self, more_bytes: usize) -> bool {
        self.stored_bytes + more_bytes <= STORED_BYTES_MAX
    }

    /// The text, in spare memory.
    fn text(&mut self, text: &[u8]) -> Vec<u8> {
        let mut stored = self.spare.pop().unwrap_or_default();
        stored.extend_from_slice(text);
        stored
    }

    fn spare_groups(&mut self) {
        for group in self.groups.drain(..) {
            keep(&mut self.spare, group);
        }
    }

    /// Makes ready for another page; keeps memory that the usual one needs.
    fn clear(&mut self) {
        self.begin_turn();
        self.spare_groups();
        if self.variables.len() > KEPT_TEXTS_MAX || !self.blocks.is_empty() {
            *self = Self::default();
            return;
        }
        self.stored_bytes = 0;
        for (name, value) in self.variables.drain() {
            keep(&mut self.spare, name);
            keep(&mut self.spare, value);
        }
    }
}

fn keep(spare: &mut Vec<Vec<u8>>, mut text: Vec<u8>) {
    if spare.len() < KEPT_TEXTS_MAX && (1..=KEPT_TEXT_BYTES_MAX).contains(&text.capacity()) {
        text.clear();
        spare.push(text);
    }
}

/// The page that an exchange makes, or is a part of.
#[derive(Debug, Default)]
pub(super) struct PageRoom {
    own: Rc<RefCell<Page>>,
    /// The page that this one is a part of.
    outer: Option<Rc<RefCell<Page>>>,
    /// How many parts this one is within.
    pub(super) depth: u32,
}

impl PageRoom {
    /// The page.
    pub(super) fn page(&self) -> &Rc<RefCell<Page>> {
        self.outer.as_ref().unwrap_or(&self.own)
    }
}

impl Room for PageRoom {
    fn clear(&mut self) {
        self.depth = 0;
        self.outer = None;
        match Rc::get_mut(&mut self.own) {
            Some(page) => page.get_mut().clear(),
            None => self.own = Rc::default(),
        }
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        let room = rooms.get_mut::<Self>();
        room.outer = Some(Rc::clone(self.page()));
        room.depth = self.depth + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_after_much_that_shows_nothing() {
        let mut page = Page::default();
        page.spend(TURN_BYTES_MAX - 1);
        assert!(!page.is_turn_over());
        page.spend(1);
        assert!(page.is_turn_over());
        page.begin_turn();
        assert!(!page.is_turn_over());
    }
}

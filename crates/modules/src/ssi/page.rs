//! What the parts of one page have in common: variables, blocks, and groups of the last expression.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use turnpike_http::rooms::{Room, Rooms};

/// Parts that are asked for in one turn, before others have theirs: each may open a file.
const TURN_PARTS_MAX: u32 = 16;

/// Bytes of all blocks and variables of a page, so that no template fills the memory with them.
pub(super) const STORED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What all parts of a page share.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) variables: HashMap<Vec<u8>, Vec<u8>>,
    pub(super) blocks: HashMap<Vec<u8>, Vec<u8>>,
    /// Groups of the regular expression that matched last, the whole match first.
    pub(super) groups: Vec<Vec<u8>>,
    /// Parts that were asked for in this turn.
    turn_parts: u32,
}

impl Page {
    /// Others have had their turn.
    pub(super) fn begin_turn(&mut self) {
        self.turn_parts = 0;
    }

    /// Counts a part that is to be asked for now. `false`: others have their turn first.
    pub(super) fn may_ask(&mut self) -> bool {
        let may = self.turn_parts < TURN_PARTS_MAX;
        self.turn_parts += u32::from(may);
        may
    }

    /// Whether nothing was stored that takes memory.
    fn holds_nothing(&self) -> bool {
        let maps_are_empty = self.variables.capacity() == 0 && self.blocks.capacity() == 0;
        maps_are_empty && self.groups.capacity() == 0
    }

    /// Whether so many bytes more may be stored.
    pub(super) fn has_room(&self, more_bytes: usize) -> bool {
        let length = |(name, value): (&Vec<u8>, &Vec<u8>)| name.len() + value.len();
        let variables: usize = self.variables.iter().map(length).sum();
        let blocks: usize = self.blocks.iter().map(length).sum();
        variables + blocks + more_bytes <= STORED_BYTES_MAX
    }
}

/// The page that an exchange makes, or is a part of.
#[derive(Debug, Default)]
pub(super) struct PageRoom {
    pub(super) page: Rc<RefCell<Page>>,
    /// How many parts this one is within.
    pub(super) depth: u32,
}

impl Room for PageRoom {
    fn clear(&mut self) {
        self.depth = 0;
        match Rc::get_mut(&mut self.page) {
            Some(page) if page.borrow().holds_nothing() => page.get_mut().turn_parts = 0,
            _ => self.page = Rc::default(),
        }
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        let room = rooms.get_mut::<Self>();
        room.page.clone_from(&self.page);
        room.depth = self.depth + 1;
    }
}

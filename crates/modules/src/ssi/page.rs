//! What the parts of one page have in common: variables, blocks, groups of the last expression, and
//! how many parts there are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use turnpike_http::rooms::Room;

/// How deep parts may include others; nginx's number. More is a template that includes itself.
pub(super) const DEPTH_MAX: u32 = 50;

/// Parts of a page in all, with those of its parts. A template that includes itself twice would
/// have 2^50 of them.
pub(super) const PARTS_MAX: u32 = 1024;

/// Bytes of all blocks and variables of a page, so that no template fills the memory with them.
pub(super) const STORED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What all parts of a page share.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) variables: HashMap<Vec<u8>, Vec<u8>>,
    pub(super) blocks: HashMap<Vec<u8>, Vec<u8>>,
    /// Groups of the regular expression that matched last, the whole match first.
    pub(super) groups: Vec<Vec<u8>>,
    pub(super) parts: u32,
}

impl Page {
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
        *self = Self::default();
    }

    fn for_subrequest(&self) -> Option<Box<dyn Room>> {
        Some(Box::new(Self {
            page: Rc::clone(&self.page),
            depth: self.depth + 1,
        }))
    }
}

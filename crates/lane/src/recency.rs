//! The order in which the entries of a slab were last used.
//!
//! The order is a list linked by indices, separate from the entries and under the same keys. Every
//! operation takes constant time, and no memory once the list has grown to the slab's size. It
//! knows no entry and no clock.

/// No neighbour.
const NONE: usize = usize::MAX;

/// Keys from the most recently to the least recently used one.
#[derive(Clone, Debug)]
pub struct Recency {
    links: Vec<Link>,
    newest: usize,
    oldest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: usize,
    older: usize,
}

impl Default for Recency {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }
}

impl Recency {
    /// Adds a key that is not in the list, as the most recently used one. Keys are those of a slab:
    /// small, and reused.
    pub fn insert(&mut self, key: usize) {
        if self.links.len() <= key {
            let unlinked = Link {
                newer: NONE,
                older: NONE,
            };
            self.links.resize(key + 1, unlinked);
        }
        let second = std::mem::replace(&mut self.newest, key);
        self.links[key] = Link {
            newer: NONE,
            older: second,
        };
        match self.links.get_mut(second) {
            Some(second) => second.newer = key,
            None => self.oldest = key,
        }
    }

    /// Removes a key from the list.
    pub fn remove(&mut self, key: usize) {
        let Some(&Link { newer, older }) = self.links.get(key) else {
            return;
        };
        match self.links.get_mut(newer) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
        match self.links.get_mut(older) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Makes a key of the list the most recently used one.
    pub fn touch(&mut self, key: usize) {
        self.remove(key);
        self.insert(key);
    }

    /// The most recently used key.
    pub fn newest(&self) -> Option<usize> {
        (self.newest != NONE).then_some(self.newest)
    }

    /// The least recently used key.
    pub fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The keys, most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.newest(), |key| {
            let older = self.links.get(*key)?.older;
            (older != NONE).then_some(older)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Recency;

    /// The steps, and the keys after each, most recently used first.
    #[test]
    fn order() {
        type Change = fn(&mut Recency);
        const STEPS: &[(&str, Change, &[usize])] = &[
            ("nothing is there", |_| {}, &[]),
            ("the first key", |list| list.insert(3), &[3]),
            ("the newest stands first", |list| list.insert(0), &[0, 3]),
            ("one more", |list| list.insert(1), &[1, 0, 3]),
            ("the oldest is used", |list| list.touch(3), &[3, 1, 0]),
            ("the newest is used", |list| list.touch(3), &[3, 1, 0]),
            ("the middle one goes", |list| list.remove(1), &[3, 0]),
            ("the oldest goes", |list| list.remove(0), &[3]),
            ("the last one goes", |list| list.remove(3), &[]),
            ("a key comes again", |list| list.insert(1), &[1]),
        ];
        let mut list = Recency::default();
        for (name, change, expected) in STEPS {
            change(&mut list);
            assert_eq!(list.iter().collect::<Vec<_>>(), *expected, "{name}");
            assert_eq!(list.newest(), expected.first().copied(), "{name}");
            assert_eq!(list.oldest(), expected.last().copied(), "{name}");
        }
    }
}

//! The data of directive families for an exchange: each has its own type, which the core does not
//! know.

use std::any::Any;

/// The most spare boxes of an exchange: one of each of the six types that there are (the waits for
/// a head and for a body, records, a page, a body at hand, the memory of a request), and two more
/// for bodies within bodies.
const SPARE_MAX: usize = 8;

/// The data of a family for an exchange. It is kept for later exchanges too, so that it is
/// allocated once.
pub trait Room: Any {
    /// Clears the data of the request.
    fn clear(&mut self);

    /// Drops what lasts until the exchange has ended and was logged.
    fn release(&mut self) {}

    /// Sets the initial data of a subrequest in its rooms; none by default.
    fn begin_subrequest(&self, _rooms: &mut Rooms) {}
}

/// The rooms of an exchange. A request uses a few families with one, so a linear search finds them.
#[derive(Default)]
pub struct Rooms {
    rooms: Vec<Box<dyn Room>>,
    /// See [`Rooms::hold`].
    held: Vec<Box<dyn Any>>,
    /// See [`Rooms::take_spare`].
    spare: Vec<Spare>,
}

/// A box that a later request gets.
struct Spare {
    value: Box<dyn Any>,
    bytes: usize,
}

impl Rooms {
    /// The room of this type, if the family has used it.
    pub fn get<T: Room>(&self) -> Option<&T> {
        let mut rooms = self.rooms.iter();
        rooms.find_map(|room| (&**room as &dyn Any).downcast_ref())
    }

    /// The room of this type, which is created if there is none.
    pub fn get_mut<T: Room + Default>(&mut self) -> &mut T {
        let mut rooms = self.rooms.iter();
        let index = match rooms.position(|room| (&**room as &dyn Any).is::<T>()) {
            Some(index) => index,
            None => {
                self.rooms.push(Box::<T>::default());
                self.rooms.len() - 1
            }
        };
        match (&mut *self.rooms[index] as &mut dyn Any).downcast_mut() {
            Some(room) => room,
            None => unreachable!("the room at this place is of this type"),
        }
    }

    /// Keeps a value until the exchange has ended and was logged.
    pub fn hold<T: Any>(&mut self, guard: T) {
        self.held.push(Box::new(guard));
    }

    /// Removes the held value of this type.
    pub fn take_held<T: Any>(&mut self) -> Option<T> {
        let mut held = self.held.iter();
        let index = held.position(|guard| guard.is::<T>())?;
        let guard = self.held.swap_remove(index).downcast();
        guard.ok().map(|guard| *guard)
    }

    /// A spare box of an earlier request, or a new one, so that a wait need not allocate each time.
    pub fn take_spare<T: Any + Default>(&mut self) -> Box<T> {
        let position = self.spare.iter().position(|spare| spare.value.is::<T>());
        let kept = position.map(|position| self.spare.swap_remove(position));
        let kept = kept.and_then(|spare| spare.value.downcast().ok());
        kept.unwrap_or_default()
    }

    /// Keeps a box for a later request; it must hold no data of the current one. `held_bytes` is
    /// what its buffers hold beside it.
    pub fn keep_spare<T: Any>(&mut self, spare: Box<T>, held_bytes: usize) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(Spare {
                value: spare,
                bytes: size_of::<T>() + held_bytes,
            });
        }
    }

    /// The bytes of memory of all spare boxes and their buffers.
    pub fn spare_bytes(&self) -> usize {
        self.spare.iter().map(|spare| spare.bytes).sum()
    }

    /// Drops the held values: the exchange has ended.
    pub fn release(&mut self) {
        self.held.clear();
        for room in &mut self.rooms {
            room.release();
        }
    }

    /// Sets what a subrequest of the request with the rooms `parent` has of them at its beginning.
    /// These are the subrequest's own, and clear.
    pub fn begin_subrequest_of(&mut self, parent: &Self) {
        for room in &parent.rooms {
            room.begin_subrequest(self);
        }
    }

    /// Clears the data of the request; keeps the rooms.
    pub fn clear(&mut self) {
        self.release();
        for room in &mut self.rooms {
            room.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    //! Tests with the rooms of two families.

    use std::rc::Rc;

    use super::*;

    #[derive(Default)]
    struct Passed(u32);

    #[derive(Default)]
    struct Own(u32);

    impl Room for Passed {
        fn clear(&mut self) {
            self.0 = 0;
        }

        fn begin_subrequest(&self, rooms: &mut Rooms) {
            rooms.get_mut::<Self>().0 = self.0;
        }
    }

    impl Room for Own {
        fn clear(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn each_family_finds_its_own_room_cleared_of_earlier_requests() {
        let mut rooms = Rooms::default();
        assert!(rooms.get::<Own>().is_none());
        rooms.get_mut::<Passed>().0 = 1;
        rooms.get_mut::<Own>().0 = 2;
        assert_eq!(rooms.get::<Passed>().map(|room| room.0), Some(1));
        assert_eq!(rooms.get::<Own>().map(|room| room.0), Some(2));
        let mut child = Rooms::default();
        child.begin_subrequest_of(&rooms);
        assert_eq!(child.get::<Passed>().map(|room| room.0), Some(1));
        assert!(child.get::<Own>().is_none());
        let before: *const Own = rooms.get_mut();
        rooms.clear();
        assert_eq!(rooms.get::<Passed>().map(|room| room.0), Some(0));
        assert_eq!(rooms.get::<Own>().map(|room| room.0), Some(0));
        let after: *const Own = rooms.get_mut();
        assert!(std::ptr::eq(before, after), "it was allocated again");
    }

    #[test]
    fn spare_boxes_count_with_what_their_buffers_hold() {
        let mut rooms = Rooms::default();
        rooms.keep_spare(Box::new(1_u64), 100);
        rooms.keep_spare(Box::new(1_u8), 0);
        assert_eq!(rooms.spare_bytes(), 8 + 100 + 1);
        assert_eq!(*rooms.take_spare::<u64>(), 1);
        assert_eq!(rooms.spare_bytes(), 1);
        for _ in 0..2 * SPARE_MAX {
            rooms.keep_spare(Box::new(1_u8), 0);
        }
        assert_eq!(rooms.spare_bytes(), SPARE_MAX);
    }

    #[test]
    fn held_values_are_found_by_type_and_dropped_at_the_end() {
        let mut rooms = Rooms::default();
        let held = Rc::new(());
        rooms.hold(Rc::clone(&held));
        rooms.hold(1_u32);
        assert_eq!(rooms.take_held::<u32>(), Some(1));
        assert_eq!(rooms.take_held::<u32>(), None);
        assert_eq!(Rc::strong_count(&held), 2);
        rooms.clear();
        assert_eq!(Rc::strong_count(&held), 1);
    }
}

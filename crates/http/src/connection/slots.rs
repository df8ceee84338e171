//! The places of a lane's connections, by token, and how many of each kind there are.
//!
//! What is counted changes only by [`Slots::put`], [`Slots::remove`] and the functions beside them,
//! so that the counts cannot differ from the places; [`Slots::check_invariants`] counts anew.

use slab::Slab;

use super::slot::{Awaited, DrivenWork, Parked, Slot};

/// The place of a connection while it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// None yet: the connection was accepted in this turn, and its socket is not watched.
    New,
    /// The place of that token, which stands empty in the turn.
    At(u32),
}

/// The places of a lane's connections.
#[derive(Default)]
pub(super) struct Slots {
    slab: Slab<Slot>,
    population: Population,
}

/// How many connections there are of each kind that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Population {
    /// Driven connections of HTTP/1.
    pub(super) driven_http1: usize,
    /// Driven connections of HTTP/2: their requests are counted apart.
    pub(super) driven_http2: usize,
    /// Driven connections that end to make room, and still have a place.
    pub(super) leaving: usize,
    /// Connections whose answer is awaited.
    pub(super) awaited: usize,
}

impl Population {
    /// Driven connections, whatever they speak.
    pub(super) fn driven(&self) -> usize {
        self.driven_http1 + self.driven_http2
    }

    fn add(&mut self, slot: &Slot) {
        match slot {
            Slot::Driven(driven) => {
                *self.driven_by(&driven.work) += 1;
                self.leaving += usize::from(driven.is_leaving);
            }
            Slot::Awaiting(_) => self.awaited += 1,
            Slot::InTurn | Slot::Parked(_) | Slot::ParkedHttp2(_) => {}
        }
    }

    fn subtract(&mut self, slot: &Slot) {
        match slot {
            Slot::Driven(driven) => {
                *self.driven_by(&driven.work) -= 1;
                self.leaving -= usize::from(driven.is_leaving);
            }
            Slot::Awaiting(_) => self.awaited -= 1,
            Slot::InTurn | Slot::Parked(_) | Slot::ParkedHttp2(_) => {}
        }
    }

    fn driven_by(&mut self, work: &DrivenWork) -> &mut usize {
        match work {
            DrivenWork::Streams(_) => &mut self.driven_http2,
            DrivenWork::None | DrivenWork::Request(_) => &mut self.driven_http1,
        }
    }
}

impl Slots {
    /// How many there are of each kind that is counted.
    pub(super) fn population(&self) -> Population {
        self.population
    }

    /// How many places are taken.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// One more than the highest token that there may be.
    pub(super) fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    /// Gives memory back that no place needs.
    pub(super) fn shrink_to_fit(&mut self) {
        self.slab.shrink_to_fit();
    }

    /// A new place, whose connection is in its turn.
    pub(super) fn insert(&mut self) -> u32 {
        self.slab.insert(Slot::InTurn) as u32
    }

    /// Gives a place up; returns whether there was one.
    pub(super) fn remove(&mut self, token: u32) -> bool {
        let removed = self.slab.try_remove(token as usize);
        removed
            .inspect(|slot| self.population.subtract(slot))
            .is_some()
    }

    /// Puts a connection at the place that it has.
    pub(super) fn put(&mut self, token: u32, slot: Slot) {
        let place = &mut self.slab[token as usize];
        self.population.subtract(place);
        self.population.add(&slot);
        *place = slot;
    }

    pub(super) fn get(&self, token: u32) -> Option<&Slot> {
        self.slab.get(token as usize)
    }

    /// A place, for a change that leaves it of the same kind.
    pub(super) fn get_mut(&mut self, token: u32) -> Option<&mut Slot> {
        self.slab.get_mut(token as usize)
    }

    /// A connection that is parked there, if there is one.
    pub(super) fn parked(&self, token: u32) -> Option<&Parked> {
        self.get(token).and_then(Slot::parked)
    }

    /// The same, to be changed.
    pub(super) fn parked_mut(&mut self, token: u32) -> Option<&mut Parked> {
        self.get_mut(token).and_then(Slot::parked_mut)
    }

    /// Takes a parked connection out, which stays in its turn.
    pub(super) fn take_parked(&mut self, token: u32) -> Option<Parked> {
        self.get_mut(token)?.take_parked()
    }

    /// Takes a connection out whose answer is awaited, which stays in its turn.
    pub(super) fn take_awaited(&mut self, token: u32) -> Option<Awaited> {
        let slot = self.slab.get_mut(token as usize)?;
        // What stands there is looked at first: it is large, and putting it back would be a copy.
        let Slot::Awaiting(_) = slot else {
            return None;
        };
        let Slot::Awaiting(awaited) = std::mem::replace(slot, Slot::InTurn) else {
            return None;
        };
        self.population.awaited -= 1;
        Some(awaited)
    }

    /// Notes that a driven connection ends to make room; returns whether it did not before.
    pub(super) fn begin_to_leave(&mut self, token: u32) -> bool {
        let Some(driven) = self.get_mut(token).and_then(Slot::driven_mut) else {
            return false;
        };
        driven.is_leaving = true;
        self.population.leaving += 1;
        true
    }

    /// All places with their tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        self.slab.iter().map(|(token, slot)| (token as u32, slot))
    }

    /// The same, for changes that leave each of the same kind.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Slot)> {
        let slots = self.slab.iter_mut();
        slots.map(|(token, slot)| (token as u32, slot))
    }

    /// Counts all places anew.
    ///
    /// # Panics
    /// Where the counts differ, in builds with debug assertions; others do nothing.
    pub(super) fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            let mut counted = Population::default();
            self.slab.iter().for_each(|(_, slot)| counted.add(slot));
            assert_eq!(counted, self.population, "the places and their counts");
        }
    }
}

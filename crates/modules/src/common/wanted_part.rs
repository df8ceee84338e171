//! Which part of the whole a request wants of servers and caches, where that is not what its client
//! asked for (`slice`). It asks nobody.

use std::cell::Cell;

use turnpike_http::exchange::Exchange;
use turnpike_http::plan::LocationIndex;
use turnpike_http::rooms::{Room, Rooms};

/// The part that a request wants of the content of one location.
#[derive(Default)]
pub(crate) struct WantedPart {
    part: Option<Part>,
    /// Whether somebody has asked for the part. Otherwise servers send the whole.
    is_told: Cell<bool>,
}

struct Part {
    location: LocationIndex,
    start: u64,
    /// As `Range` has it.
    range: Vec<u8>,
}

impl Room for WantedPart {
    fn clear(&mut self) {
        self.part = None;
        self.is_told.set(false);
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        let Some(part) = &self.part else { return };
        let room = rooms.get_mut::<Self>();
        room.part = Some(Part {
            location: part.location,
            start: part.start,
            range: part.range.clone(),
        });
        room.is_told.set(self.is_told.get());
    }
}

impl WantedPart {
    /// Wants so many bytes from `start` on, of what this location, the request's present one, has.
    pub(crate) fn want(rooms: &mut Rooms, location: LocationIndex, start: u64, length: u64) {
        let last = start.saturating_add(length.saturating_sub(1));
        let room = rooms.get_mut::<Self>();
        room.part = Some(Part {
            location,
            start,
            range: format!("bytes={start}-{last}").into_bytes(),
        });
    }

    /// Says which part is wanted (`$slice_range`).
    pub(crate) fn tell(exchange: &Exchange) -> Option<&[u8]> {
        let room = exchange.rooms.get::<Self>()?;
        let part = room.of(exchange)?;
        room.is_told.set(true);
        Some(&part.range)
    }

    fn of(&self, exchange: &Exchange) -> Option<&Part> {
        let part = self.part.as_ref()?;
        (part.location == exchange.walk.location()).then_some(part)
    }

    fn told(exchange: &Exchange) -> Option<&Part> {
        let room = exchange.rooms.get::<Self>()?;
        room.of(exchange).filter(|_| room.is_told.get())
    }
}

/// The part that was asked for in place of the client's, as `Range` has it.
pub(crate) fn range_of(exchange: &Exchange) -> Option<&[u8]> {
    WantedPart::told(exchange).map(|part| part.range.as_slice())
}

/// The first byte of that part.
pub(crate) fn start_of(exchange: &Exchange) -> Option<u64> {
    WantedPart::told(exchange).map(|part| part.start)
}

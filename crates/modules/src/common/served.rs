//! What families for both protocols need of what is served besides its variables: of a request of
//! HTTP, or of a session of stream.

use turnpike_http::exchange::Exchange;
use turnpike_http::rooms::Rooms;
use turnpike_plan::variables::Subject;
use turnpike_stream::session::Session;

/// A request of HTTP, or a session of stream.
pub(crate) trait Served: Subject {
    /// What families keep with it.
    fn rooms(&self) -> &Rooms;
    /// The same, to be changed.
    fn rooms_mut(&mut self) -> &mut Rooms;
    /// The lane's monotonic time in milliseconds.
    fn now_ms(&self) -> u64;
}

impl Served for Exchange {
    fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    fn rooms_mut(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    fn now_ms(&self) -> u64 {
        self.lane.clock.now_ms()
    }
}

impl Served for Session {
    fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    fn rooms_mut(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    fn now_ms(&self) -> u64 {
        self.lane.clock.now_ms()
    }
}

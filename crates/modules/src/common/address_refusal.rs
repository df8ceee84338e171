//! Which requests were refused for the address of their client: by a rule for addresses, or by a
//! limit that counts by address. Families that refuse note it here; who keeps such clients out
//! earlier asks here.

use turnpike_http::exchange::Exchange;
use turnpike_http::rooms::{Room, Rooms};
use turnpike_plan::template::Template;

#[derive(Default)]
struct ByAddress(bool);

impl Room for ByAddress {
    fn clear(&mut self) {
        self.0 = false;
    }
}

/// Notes that a request is refused for its client's address.
pub(crate) fn note(rooms: &mut Rooms) {
    rooms.get_mut::<ByAddress>().0 = true;
}

/// Whether a request was refused for its client's address.
pub(crate) fn is_noted(exchange: &Exchange) -> bool {
    let noted = exchange.rooms.get::<ByAddress>();
    noted.is_some_and(|noted| noted.0)
}

/// Whether a key is the client's address and nothing else.
pub(crate) fn is_address(key: &Template) -> bool {
    matches!(key.text(), b"$binary_remote_addr" | b"$remote_addr")
}

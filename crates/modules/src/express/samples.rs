//! `express_log`: the driver passes random samples of the requests that it answers to the lanes,
//! which write lines of the access logs of their locations.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnpike_express::{Publisher, Sample};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{LocationIndex, ServerIndex};
use turnpike_http::sampling::{SampleSource, SampledRequest};
use turnpike_http::variables::VariableRow;

/// Samples that a lane takes at a time: some hundred microseconds of its time. The program draws as
/// many of a CPU in a second, so that a lane for each keeps up though it looks only so often.
const SAMPLES_MAX: usize = 200;

pub(super) const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "express_sample",
    get: |exchange, out| {
        let weight = exchange.account.sample_weight();
        if weight > 0 {
            out.extend_from_slice(weight.to_string().as_bytes());
        }
        weight > 0
    },
    set: None,
    summary: "The number of requests that a line of the access log stands for, if the express lane \
        answered the request (`express_log`); empty if a lane did.",
}];

/// What the locations of a plan have sampled.
pub(super) struct Samples {
    publisher: Arc<Publisher>,
    /// By location: one of so many requests.
    one_in: RwLock<HashMap<LocationIndex, u32>>,
}

impl Samples {
    /// Samples of no location yet.
    pub(super) fn new(publisher: Arc<Publisher>) -> Arc<Samples> {
        Arc::new(Samples {
            publisher,
            one_in: RwLock::default(),
        })
    }

    /// A location has one of so many requests sampled.
    pub(super) fn add(&self, location: LocationIndex, one_in: u32) {
        let mut known = self.one_in.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(location, one_in);
    }
}

impl SampleSource for Samples {
    fn drain(&self, take: &mut dyn FnMut(SampledRequest<'_>)) {
        // Nobody writes while the plan is in force.
        let one_in = self.one_in.read().unwrap_or_else(PoisonError::into_inner);
        if one_in.is_empty() {
            return;
        }
        self.publisher
            .take_samples(SAMPLES_MAX, &mut |sample: Sample<'_>| {
                let note = Note::of(sample.note);
                take(SampledRequest {
                    head: sample.head,
                    client: sample.client,
                    gate: sample.gate,
                    server: note.server,
                    location: note.location,
                    status: note.status,
                    head_bytes: note.head_bytes,
                    sent_bytes: sample.answer_bytes.into(),
                    weight: one_in.get(&note.location).copied().unwrap_or(1),
                });
            });
    }
}

/// What a sample has to bring back of its answer, in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    status: u16,
    head_bytes: u64,
    server: ServerIndex,
    location: LocationIndex,
}

/// Bits of a note's parts. A configuration with more blocks has no samples of those behind.
const STATUS_BITS: u32 = 10;
const HEAD_BITS: u32 = 11;
const SERVER_BITS: u32 = 20;
const LOCATION_BITS: u32 = 23;

impl Note {
    /// What is to be noted of an answer whose bytes these are.
    pub(super) fn noted(exchange: &Exchange, bytes: &[u8]) -> Note {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n");
        Note {
            status: exchange.logged_status(),
            head_bytes: end.map_or(bytes.len(), |end| end + 4) as u64,
            server: exchange.walk.server(),
            location: exchange.walk.location(),
        }
    }

    /// The note as a number; `None`: it has no room.
    pub(super) fn number(self) -> Option<u64> {
        let parts = [
            (u64::from(self.status), STATUS_BITS),
            (self.head_bytes, HEAD_BITS),
            (u64::from(self.server.0), SERVER_BITS),
            (u64::from(self.location.0), LOCATION_BITS),
        ];
        let mut parts = parts.into_iter();
        parts.try_fold(0, |number, (part, bits)| {
            (part >> bits == 0).then_some(number << bits | part)
        })
    }

    fn of(number: u64) -> Note {
        let mut rest = number;
        let mut take = |bits: u32| {
            let part = rest & ((1 << bits) - 1);
            rest >>= bits;
            part
        };
        let [location, server] = [LOCATION_BITS, SERVER_BITS].map(&mut take);
        let [head_bytes, status] = [HEAD_BITS, STATUS_BITS].map(&mut take);
        Note {
            status: status as u16,
            head_bytes,
            server: ServerIndex(server as u32),
            location: LocationIndex(location as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: (u16, u64, u32, u32) = (1023, 2047, (1 << 20) - 1, (1 << 23) - 1);

    #[test]
    fn notes_come_back_as_they_were() {
        let (status, head_bytes, server, location) = LARGEST;
        for (note, has_room) in [
            ((200, 0, 0, 0), true),
            ((404, 1460, 3, 17), true),
            (LARGEST, true),
            ((status + 1, 0, 0, 0), false),
            ((0, head_bytes + 1, 0, 0), false),
            ((0, 0, server + 1, 0), false),
            ((0, 0, 0, location + 1), false),
        ] {
            let (status, head_bytes, server, location) = note;
            let noted = Note {
                status,
                head_bytes,
                server: ServerIndex(server),
                location: LocationIndex(location),
            };
            let found = noted.number().map(Note::of);
            assert_eq!(found, has_room.then_some(noted), "{note:?}");
        }
    }
}

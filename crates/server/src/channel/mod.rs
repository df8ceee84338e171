//! What master and serving process say to each other, over a socket pair.
//!
//! Every message is one parcel: bytes, and the descriptors that go with them. The first byte is
//! the kind. Both ends come from one binary, so there is no versioning; but neither trusts the
//! other: every length is checked against what is there, and a message that does not decode
//! closes the channel.
//!
//! ```text
//!  master                                   serving process
//!    ── Apply(Bundle: texts, gates, logs) ─►   builds a Plan, swaps it in
//!    ◄─ Ready{generation} | Refused{..} ────
//!    ◄─ Released{generation} ───────────────   the last user of an old Plan is gone
//!    ◄─ GatesClosed{generation, gates} ─────   nothing uses these sockets of removed addresses
//!    ── Reopen(logs) ──────────────────────►   writes to the new descriptors
//!    ── Ask{number, request} ──────────────►   a verb of the control socket
//!    ◄─ Answer{number, outcome} ────────────
//!    ◄─ Stuck ──────────────────────────────   a lane is given up: another process is to follow
//!    ── Counts ────────────────────────────►   what only the master knows, for metrics
//!    ── Adoption(socket) ──────────────────►   where it is found when the master is gone
//!    ── Succession(links) ─────────────────►   when another process serves, gives it what waits
//!                                              and goes on with its flows
//!    ── Announce | Quit | Stop ────────────►   says that it will end, drains, ends
//! ```

mod bundle;
mod codec;
mod succession;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use turnpike_lane::sys::descriptor;

pub(crate) use bundle::{
    BOARD_NAME, CHECK_GATES_FROM, HELD_NAME, KEPT_NAME, express_extras, take_express,
};
pub use bundle::{Bundle, Extra, ListeningSocket};
pub use succession::SuccessionLinks;

use codec::{Decoder, Encoder, Malformed};

/// Largest message: as much configuration as the loader reads from one file, several times over.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// An opened log file on its way.
#[derive(Debug)]
pub struct Log {
    /// The full path.
    pub path: PathBuf,
    /// Open for appending.
    pub descriptor: OwnedFd,
}

/// What the master tells the serving process.
#[derive(Debug)]
pub enum Order {
    /// Serve this configuration from now on.
    Apply(Box<Bundle>),
    /// Write to these descriptors from now on.
    Reopen(Vec<Log>),
    /// A verb of the control socket is asked for.
    Ask {
        /// What its answer must say.
        number: u64,
        /// The request, as its line.
        request: Vec<u8>,
    },
    /// What the master has counted.
    Counts(MasterCounts),
    /// Be found here by another master when this one is gone.
    Adoption(OwnedFd),
    /// Another serving process is to follow, which is at the other ends of these links.
    Succession(SuccessionLinks),
    /// Tell clients and balancers that this ends soon; go on with everything (`shutdown_delay`).
    Announce,
    /// Accept what waits, finish what is running, then end.
    Quit,
    /// End at once.
    Stop,
}

/// What the serving process tells the master.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The configuration is being served.
    Ready {
        /// The bundle's number.
        generation: u64,
        /// What that has changed, as JSON.
        report: String,
    },
    /// The configuration cannot be served; the one before still is.
    Refused {
        /// The bundle's number.
        generation: u64,
        /// Why, in words for the log.
        message: String,
    },
    /// Nothing uses this configuration any more.
    Released {
        /// The bundle's number.
        generation: u64,
    },
    /// Nothing uses these listening sockets, which the configuration has no more.
    GatesClosed {
        /// The number of the bundle in force.
        generation: u64,
        /// Their numbers.
        gates: Vec<u64>,
    },
    /// One of its threads is given up: another process has to take its place.
    Stuck,
    /// An order to tell something was carried out.
    Answer {
        /// The order's number.
        number: u64,
        /// An answer of the control socket, as its line.
        outcome: String,
    },
}

const APPLY: u8 = 1;
const REOPEN: u8 = 2;
const QUIT: u8 = 3;
const STOP: u8 = 4;
const READY: u8 = 5;
const REFUSED: u8 = 6;
const RELEASED: u8 = 7;
const ASK: u8 = 8;
const ANSWER: u8 = 9;
const ANNOUNCE: u8 = 10;
const COUNTS: u8 = 11;
const ADOPTION: u8 = 12;
const SUCCESSION: u8 = 13;
const STUCK: u8 = 14;
const GATES_CLOSED: u8 = 15;

/// Sends a bundle. Its descriptors are only borrowed: the master keeps its own.
///
/// # Errors
/// Those of `sendmsg(2)`; the channel must be closed then.
pub fn send_apply(channel: BorrowedFd<'_>, bundle: &Bundle) -> io::Result<()> {
    let mut encoder = Encoder::new(APPLY);
    bundle.encode(&mut encoder);
    descriptor::send_parcel(channel, &encoder.bytes, &bundle.descriptors())
}

/// Sends reopened log files.
///
/// # Errors
/// As [`send_apply`].
pub fn send_reopen(channel: BorrowedFd<'_>, logs: &[Log]) -> io::Result<()> {
    let mut encoder = Encoder::new(REOPEN);
    encoder.list(logs, |encoder, log| encoder.path(&log.path));
    let descriptors: Vec<_> = logs.iter().map(|log| log.descriptor.as_fd()).collect();
    descriptor::send_parcel(channel, &encoder.bytes, &descriptors)
}

/// Says where the serving process is found when the master is gone. The socket is only borrowed.
///
/// # Errors
/// As [`send_apply`].
pub fn send_adoption(channel: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    descriptor::send_parcel(channel, &[ADOPTION], &[listener])
}

/// Says that another serving process is to follow, at the other ends of these links. The
/// descriptors are only borrowed.
///
/// # Errors
/// As [`send_apply`].
pub fn send_succession(channel: BorrowedFd<'_>, links: &SuccessionLinks) -> io::Result<()> {
    let mut encoder = Encoder::new(SUCCESSION);
    links.encode(&mut encoder);
    descriptor::send_parcel(channel, &encoder.bytes, &links.descriptors())
}

/// Tells what the master has counted: reloads, those that failed, restarts.
///
/// # Errors
/// As [`send_apply`].
pub fn send_counts(channel: BorrowedFd<'_>, counts: MasterCounts) -> io::Result<()> {
    let MasterCounts {
        reloads,
        reloads_failed,
        restarts,
        cores,
    } = counts;
    let counts = [reloads, reloads_failed, restarts, cores];
    let encoder = Encoder::new(COUNTS);
    let encoder = counts.into_iter().fold(encoder, Encoder::with_number);
    descriptor::send_parcel(channel, &encoder.bytes, &[])
}

/// What the master counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MasterCounts {
    /// Configurations that were put in force after the first.
    pub reloads: u64,
    /// The others.
    pub reloads_failed: u64,
    /// Serving processes that took the place of one that had died.
    pub restarts: u64,
    /// Serving processes of which the kernel has written a core file.
    pub cores: u64,
}

/// How a serving process is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The process is to end soon: clients are told.
    Announced,
    /// What is running is finished.
    Drained,
    /// At once.
    Stopped,
}

/// Tells the serving process to end.
///
/// # Errors
/// As [`send_apply`].
pub fn send_end(channel: BorrowedFd<'_>, end: End) -> io::Result<()> {
    let kind = match end {
        End::Announced => ANNOUNCE,
        End::Drained => QUIT,
        End::Stopped => STOP,
    };
    descriptor::send_parcel(channel, &[kind], &[])
}

/// Asks for a verb of the control socket.
///
/// # Errors
/// As [`send_apply`].
pub fn send_ask(channel: BorrowedFd<'_>, number: u64, request: &[u8]) -> io::Result<()> {
    let mut encoder = Encoder::new(ASK).with_number(number);
    encoder.bytes(request);
    descriptor::send_parcel(channel, &encoder.bytes, &[])
}

/// Waits for the master's next order; `None` when the master is gone.
///
/// # Errors
/// Those of `recvmsg(2)`; `InvalidData` for a message that does not decode.
pub fn receive_order(channel: BorrowedFd<'_>) -> io::Result<Option<Order>> {
    let Some((bytes, descriptors)) = receive(channel)? else {
        return Ok(None);
    };
    Ok(Some(decode_order(&bytes, descriptors)?))
}

/// Sends a reply.
///
/// # Errors
/// Those of `sendmsg(2)`.
pub fn send_reply(channel: BorrowedFd<'_>, reply: &Reply) -> io::Result<()> {
    let encoder = match reply {
        Reply::Ready { generation, report } => {
            let mut encoder = Encoder::new(READY).with_number(*generation);
            encoder.bytes(report.as_bytes());
            encoder
        }
        Reply::Released { generation } => Encoder::new(RELEASED).with_number(*generation),
        Reply::GatesClosed { generation, gates } => {
            let mut encoder = Encoder::new(GATES_CLOSED).with_number(*generation);
            encoder.list(gates, |encoder, gate| encoder.number(*gate));
            encoder
        }
        Reply::Stuck => Encoder::new(STUCK).with_number(0),
        Reply::Refused {
            generation,
            message,
        } => {
            let mut encoder = Encoder::new(REFUSED).with_number(*generation);
            encoder.bytes(message.as_bytes());
            encoder
        }
        Reply::Answer { number, outcome } => {
            let mut encoder = Encoder::new(ANSWER).with_number(*number);
            encoder.bytes(outcome.as_bytes());
            encoder
        }
    };
    descriptor::send_parcel(channel, &encoder.bytes, &[])
}

/// Waits for the serving process's next reply; `None` when it is gone.
///
/// # Errors
/// As [`receive_order`].
pub fn receive_reply(channel: BorrowedFd<'_>) -> io::Result<Option<Reply>> {
    let Some((bytes, _)) = receive(channel)? else {
        return Ok(None);
    };
    Ok(Some(decode_reply(&bytes)?))
}

fn receive(channel: BorrowedFd<'_>) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    match descriptor::receive_parcel(channel, MESSAGE_BYTES_MAX) {
        Ok(parcel) => Ok(Some(parcel)),
        Err(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(None),
            _ => Err(error),
        },
    }
}

fn decode_order(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Result<Order, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let mut descriptors = descriptors.into_iter();
    let order = match decoder.byte()? {
        APPLY => Order::Apply(Box::new(Bundle::decode(&mut decoder, &mut descriptors)?)),
        REOPEN => Order::Reopen(bundle::decode_logs(&mut decoder, &mut descriptors)?),
        ASK => Order::Ask {
            number: decoder.number()?,
            request: decoder.bytes()?.to_vec(),
        },
        COUNTS => Order::Counts(MasterCounts {
            reloads: decoder.number()?,
            reloads_failed: decoder.number()?,
            restarts: decoder.number()?,
            cores: decoder.number()?,
        }),
        ADOPTION => Order::Adoption(descriptors.next().ok_or(Malformed)?),
        SUCCESSION => {
            let links = SuccessionLinks::decode(&mut decoder, &mut descriptors)?;
            Order::Succession(links)
        }
        ANNOUNCE => Order::Announce,
        QUIT => Order::Quit,
        STOP => Order::Stop,
        _ => return Err(Malformed),
    };
    if descriptors.next().is_some() {
        return Err(Malformed);
    }
    decoder.end()?;
    Ok(order)
}

fn decode_reply(bytes: &[u8]) -> Result<Reply, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let kind = decoder.byte()?;
    // Every reply has one: a bundle's, or an order's, or 0.
    let generation = decoder.number()?;
    let reply = match kind {
        READY => Reply::Ready {
            generation,
            report: decoder.text()?,
        },
        RELEASED => Reply::Released { generation },
        GATES_CLOSED => Reply::GatesClosed {
            generation,
            gates: decoder.list(Decoder::number)?,
        },
        STUCK => Reply::Stuck,
        REFUSED => Reply::Refused {
            generation,
            message: decoder.text()?,
        },
        ANSWER => Reply::Answer {
            number: generation,
            outcome: decoder.text()?,
        },
        _ => return Err(Malformed),
    };
    decoder.end()?;
    Ok(reply)
}

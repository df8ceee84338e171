//! Flows through a change of the serving process: the flows of the process before stay with
//! it, though the one after it reads the sockets.
//!
//! ```text
//!  before                               after
//!    reads the gates, has flows           does not read them
//!    ── Held(keys) ─────────────────────►   notes whose these flows are
//!    ── Free ───────────────────────────►   reads the gates
//!    ◄─ Datagram ────────────────────────   of a flow that the other one has
//!    ── Returned(datagram) ─────────────►   that flow has ended: it begins another one here
//!    ── Done ───────────────────────────►   passes nothing on any more
//!    ◄─ (end) ───────────────────────────
//!    ── (end) ──────────────────────────►
//! ```
//!
//! Answers go to the client from whoever has the flow: both have the gates' sockets. A process may
//! be between two others; then it passes on what concerns the flows of the first.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use super::directory::FlowDirectory;
use super::{Arrival, FlowKey, ForwardedDatagram, KEY_BYTES_MAX, ProcessBehind};
use crate::event_loop::Owner;
use crate::gate::ListenAddress;
use crate::sys::descriptor;
use crate::sys::socket::{self, More};

/// Bytes of a message: the largest datagram, with its addresses before it.
const MESSAGE_BYTES_MAX: usize = 65_536 + 256;

/// Keys of a message.
const KEYS_MAX: usize = 1_000;

// They fit, each with its owner and its length.
const _: () = assert!(KEYS_MAX * (2 + KEY_BYTES_MAX) < MESSAGE_BYTES_MAX);

// 1, 3 and 4 had keys of another form in versions before; they are passed over.
const FREE: u8 = 2;
const DONE: u8 = 5;
const HELD: u8 = 6;
const DATAGRAM: u8 = 7;
const RETURNED: u8 = 8;

/// One end of the link between two serving processes.
pub(super) struct FlowLink {
    socket: OwnedFd,
}

impl FlowLink {
    /// Sends a datagram to the process that has its flow; `false`: the link has ended. Where it is
    /// full the datagram is lost, as in a socket whose buffer is full.
    pub(super) fn pass_on(&self, datagram: &ForwardedDatagram) -> bool {
        self.send_datagram(DATAGRAM, datagram)
    }

    /// Sends a datagram back whose flow has ended. It is lost where the link is full, and where
    /// nobody is there.
    pub(super) fn give_back(&self, datagram: &ForwardedDatagram) {
        self.send_datagram(RETURNED, datagram);
    }

    fn send_datagram(&self, kind: u8, datagram: &ForwardedDatagram) -> bool {
        let mut message = vec![kind];
        write_datagram(&mut message, datagram);
        match socket::send(self.socket.as_fd(), &message, More::No) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Says which flows stay here, and that the other process may read the gates. Waits while the
    /// link is full.
    ///
    /// # Errors
    /// The other process is gone.
    pub(super) fn hand_over(&self, keys: &[FlowKey]) -> io::Result<()> {
        for keys in keys.chunks(KEYS_MAX) {
            let mut message = vec![HELD];
            for key in keys {
                write_key(&mut message, key);
            }
            descriptor::send_packet(self.socket.as_fd(), &message)?;
        }
        descriptor::send_packet(self.socket.as_fd(), &[FREE])
    }

    /// Says that no flow is left here. Where the link is full a thread waits, since a lane may not;
    /// one that has ended needs no word.
    pub(super) fn finish(self: &Arc<Self>) {
        let sent = socket::send(self.socket.as_fd(), &[DONE], More::No);
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let link = Arc::clone(self);
            let builder = thread::Builder::new().name("flows".to_owned());
            // Without a thread this process ends with the other one.
            let _ = builder.spawn(move || descriptor::send_packet(link.socket.as_fd(), &[DONE]));
        }
    }

    /// Passes nothing on any more. What the other process gives back still comes.
    fn end(&self) {
        // It fails only where the other process is gone, which is the same.
        let _ = socket::shutdown(self.socket.as_fd(), Shutdown::Write);
    }
}

/// Listens to a link on a thread of its own until it ends. `free` is called when the gates are free
/// to be read, at its end at the latest.
///
/// # Errors
/// Those of starting a thread.
pub(super) fn listen(
    directory: &Arc<FlowDirectory>,
    socket: OwnedFd,
    free: impl FnOnce() + Send + 'static,
) -> io::Result<Arc<FlowLink>> {
    let link = Arc::new(FlowLink { socket });
    let (directory, own) = (Arc::clone(directory), Arc::clone(&link));
    let builder = thread::Builder::new().name("flows".to_owned());
    builder.spawn(move || {
        let mut free = Some(free);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Ok(count @ 1..) = descriptor::receive_packet(own.socket.as_fd(), &mut buffer) {
            match buffer[..count].split_first() {
                Some((&FREE, _)) => {
                    if let Some(free) = free.take() {
                        free();
                    }
                }
                Some((&kind, message)) => take(&directory, &own, kind, message),
                None => {}
            }
        }
        directory.link_ended(&own);
        if let Some(free) = free {
            free();
        }
    })?;
    Ok(link)
}

/// A message that cannot be read is passed over: another version may have sent it.
fn take(directory: &FlowDirectory, link: &Arc<FlowLink>, kind: u8, mut message: &[u8]) {
    match kind {
        HELD => {
            while let Some(key) = read_key(&mut message) {
                directory.add_held(key, link);
            }
        }
        DATAGRAM => {
            if let Some(datagram) =
                read_datagram(message, Arrival::Process(ProcessBehind(Arc::clone(link))))
            {
                directory.deliver(datagram, link);
            }
        }
        // Datagrams that are on their way there come back before the other end closes.
        DONE => link.end(),
        RETURNED => {
            if let Some(datagram) = read_datagram(message, Arrival::Returned) {
                directory.returned(datagram, link);
            }
        }
        _ => {}
    }
}

fn write_datagram(message: &mut Vec<u8>, datagram: &ForwardedDatagram) {
    let ListenAddress::Udp(own) = datagram.gate_address else {
        return;
    };
    write_key(message, &datagram.key);
    for address in [own, datagram.local, datagram.peer] {
        write_address(message, address);
    }
    message.push(u8::from(datagram.source.is_some()));
    message.extend_from_slice(&datagram.bytes);
}

fn read_datagram(mut message: &[u8], arrival: Arrival) -> Option<ForwardedDatagram> {
    let key = read_key(&mut message)?;
    let own = read_address(&mut message)?;
    let local = read_address(&mut message)?;
    let peer = read_address(&mut message)?;
    let [has_source] = read(&mut message)?;
    Some(ForwardedDatagram {
        key,
        gate_address: ListenAddress::Udp(own),
        peer,
        local,
        source: (has_source != 0).then(|| local.ip()),
        arrival,
        bytes: message.to_vec(),
    })
}

/// Writes the owner, the length and the bytes.
fn write_key(message: &mut Vec<u8>, key: &FlowKey) {
    message.extend([key.owner.0, key.length]);
    message.extend_from_slice(key.bytes());
}

fn read_key(message: &mut &[u8]) -> Option<FlowKey> {
    let [owner, length] = read(message)?;
    let (bytes, rest) = message.split_at_checked(usize::from(length))?;
    *message = rest;
    FlowKey::read(Owner(owner), bytes)
}

/// The family, the address, the port, and for IPv6 the flow label and the scope.
fn write_address(message: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            message.push(4);
            message.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            message.push(6);
            message.extend(ip.octets());
        }
    }
    message.extend(address.port().to_be_bytes());
    if let SocketAddr::V6(address) = address {
        message.extend(address.flowinfo().to_be_bytes());
        message.extend(address.scope_id().to_be_bytes());
    }
}

fn read_address(message: &mut &[u8]) -> Option<SocketAddr> {
    match read(message)? {
        [4] => {
            let ip = Ipv4Addr::from(read::<4>(message)?);
            Some((ip, u16::from_be_bytes(read(message)?)).into())
        }
        [6] => {
            let ip = Ipv6Addr::from(read::<16>(message)?);
            let port = u16::from_be_bytes(read(message)?);
            let flow = u32::from_be_bytes(read(message)?);
            let scope = u32::from_be_bytes(read(message)?);
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

fn read<const COUNT: usize>(message: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (bytes, rest) = message.split_first_chunk()?;
    *message = rest;
    Some(*bytes)
}

#[cfg(test)]
mod tests;

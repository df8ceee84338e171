//! Datagrams by the batch, so that clients and origins of a study take little of the processors
//! that they share, and the server between them is what limits. It knows no study.

use std::io;
use std::net::UdpSocket;

use crate::sys::Datagrams;

/// Datagrams that a thread sends and receives. Their bytes are of no interest.
pub struct Burst(Datagrams);

impl Default for Burst {
    fn default() -> Self {
        Self(Datagrams::new())
    }
}

impl Burst {
    /// Sends `count` datagrams of so many bytes to the peer of a connected socket; returns how many
    /// the socket took, 32 at most.
    ///
    /// # Errors
    /// The error of sendmmsg(2) for the first.
    pub fn send(&mut self, socket: &UdpSocket, count: usize, bytes: usize) -> io::Result<usize> {
        self.0.send(socket, (count, bytes))
    }

    /// Waits for a datagram, and receives those that have come with it, 32 at most; returns their
    /// number.
    ///
    /// # Errors
    /// The error of recvmmsg(2); `WouldBlock` when the socket's time-out has passed.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.0.receive(socket)
    }

    /// Sends the first `count` that were received last back to their senders; returns how many the
    /// socket took.
    ///
    /// # Errors
    /// The error of sendmmsg(2) for the first.
    pub fn send_back(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        self.0.send_back(socket, count)
    }

    /// Answers each of the first `count` that were received last with so many datagrams of so many
    /// bytes. What a full socket loses is lost.
    pub fn answer(&mut self, socket: &UdpSocket, count: usize, each: (usize, usize)) {
        for place in 0..count {
            let _ = self.0.send_burst(socket, place, each);
        }
    }
}

#[cfg(test)]
mod tests;

//! The buffers into which a body of known length is read straight from its socket: a fast client
//! takes few reads, and a slow one no more memory than one small read and twice what it has sent.

use std::io;

use turnpike_lane::transport::Transport;

use crate::arrived::Arrived;
use crate::scratch::{SCRATCH_BYTES_MAX, Scratches};

/// Bytes that are read at a time until a client has filled them: some segments of a network, and
/// nginx's default for `client_body_buffer_size`.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// Spare bytes of a buffer that are worth a read, before there is more room: three segments of a
/// network.
const SPARE_BYTES_MIN: usize = 4 * 1024;

/// The buffers of one body.
pub(crate) struct BodyBuffers<'a> {
    arrived: &'a mut Arrived,
    kept: &'a mut Vec<u8>,
    overflow: &'a mut Vec<u8>,
    buffer_bytes: usize,
    scratches: Option<&'a Scratches>,
}

/// What a read has brought.
pub(crate) struct BodyRead {
    /// Bytes of the body; 0 is the end of the input.
    pub(crate) bytes: usize,
    /// The byte behind the body: the next request has begun.
    pub(crate) behind: Option<u8>,
}

impl<'a> BodyBuffers<'a> {
    /// The buffers of a body of which `kept` is in memory, where it may have `buffer_bytes`. If it
    /// goes to a file, a piece that does not fit beside `kept` is left in `overflow`, in room that
    /// is lent of `scratches`.
    pub(crate) fn new(
        arrived: &'a mut Arrived,
        [kept, overflow]: [&'a mut Vec<u8>; 2],
        buffer_bytes: usize,
        scratches: Option<&'a Scratches>,
    ) -> Self {
        Self {
            arrived,
            kept,
            overflow,
            buffer_bytes,
            scratches,
        }
    }

    /// What has come and nobody has asked for.
    pub(crate) fn arrived(&mut self) -> &mut Arrived {
        self.arrived
    }

    /// The most bytes that the next read takes, where `left` bytes of the body are to come. One
    /// more than these is asked for: a read that does not get it has emptied the socket.
    pub(crate) fn read_bytes_max(&self, left: u64) -> usize {
        let wanted = match self.scratches {
            Some(_) => SCRATCH_BYTES_MAX,
            None => {
                let spare = self.kept.capacity().saturating_sub(self.kept.len());
                let grown = self.arrived.filled_bytes().saturating_mul(2);
                let most = self.buffer_bytes.clamp(READ_BYTES, SCRATCH_BYTES_MAX);
                match grown.max(spare).min(most) {
                    few if few < SPARE_BYTES_MIN => READ_BYTES,
                    wanted => wanted,
                }
            }
        };
        usize::try_from(left).map_or(wanted, |left| wanted.min(left.saturating_add(1)))
    }

    /// Reads at most `bytes_max` bytes, of which `left` may be of the body.
    ///
    /// # Errors
    /// What the transport says.
    pub(crate) fn read(
        &mut self,
        transport: &Transport,
        bytes_max: usize,
        left: u64,
    ) -> io::Result<BodyRead> {
        let Some(scratches) = self.scratches else {
            self.make_room(bytes_max, left);
            let mut read = BodyRead::of(transport, self.kept, bytes_max)?;
            read.cut(self.kept, left);
            self.note(&read, bytes_max);
            return Ok(read);
        };
        let mut scratch = scratches.take();
        scratch.reserve_exact(bytes_max);
        let read = BodyRead::of(transport, &mut scratch, bytes_max);
        let read = read.map(|mut read| {
            read.cut(&mut scratch, left);
            self.note(&read, bytes_max);
            read
        });
        if !scratch.is_empty() && self.kept.len() + scratch.len() > self.buffer_bytes {
            *self.overflow = scratch;
        } else {
            self.kept.extend_from_slice(&scratch);
            scratches.keep(scratch);
        }
        read
    }

    /// Makes room for a read: twice as much as there was, so that few reads copy what is there, but
    /// no more than the body needs.
    fn make_room(&mut self, bytes_max: usize, left: u64) {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let more = bytes_max.max(self.kept.len()).min(left.saturating_add(1));
        if self.kept.capacity() - self.kept.len() < bytes_max {
            self.kept.reserve_exact(more);
        }
    }

    fn note(&mut self, read: &BodyRead, bytes_max: usize) {
        self.arrived.add_kept(read.bytes, read.bytes == bytes_max);
    }
}

impl BodyRead {
    fn of(transport: &Transport, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<Self> {
        let bytes = transport.try_read(buffer, bytes_max)?;
        Ok(Self {
            bytes,
            behind: None,
        })
    }

    /// Takes off what stands behind the body.
    fn cut(&mut self, buffer: &mut Vec<u8>, left: u64) {
        if self.bytes as u64 > left {
            self.behind = buffer.pop();
            self.bytes -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, Transport) {
        let (client, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (client, Transport::plain(ours.into()))
    }

    /// What is read of a body into memory, and of its socket what is behind: bytes sent, bytes
    /// of the body to come, `client_body_buffer_size`; then the sizes of the reads.
    const READS: &[(usize, u64, usize, &[usize])] = &[
        (10, 10, 100, &[10]),
        (11, 10, 100, &[10]),
        (READ_BYTES, 20_000, 65_536, &[READ_BYTES]),
        // One that fills its reads is read in larger ones, up to the size.
        (100_000, 100_000, 1 << 20, &[16_384, 32_768, 50_848]),
        (80_000, 100_000, 32_768, &[16_384, 32_768, 30_848]),
        (
            80_000,
            100_000,
            100,
            &[16_384, 16_384, 16_384, 16_384, 14_464],
        ),
    ];

    #[test]
    fn a_body_in_memory_is_read_in_pieces_that_grow_as_they_are_filled() {
        for (sent, length, buffer_bytes, reads) in READS {
            let (mut client, ours) = pair();
            client.write_all(&vec![b'x'; *sent]).unwrap();
            let (mut arrived, mut kept, mut overflow) = (Arrived::default(), vec![], vec![]);
            let mut left = *length;
            let mut sizes = Vec::new();
            while left > 0 {
                let vecs = [&mut kept, &mut overflow];
                let mut buffers = BodyBuffers::new(&mut arrived, vecs, *buffer_bytes, None);
                let bytes_max = buffers.read_bytes_max(left);
                let Ok(read) = buffers.read(&ours, bytes_max, left) else {
                    break;
                };
                assert_eq!(read.behind.is_some(), *sent as u64 > *length);
                left -= read.bytes as u64;
                sizes.push(read.bytes);
                // As if it had been sent on.
                kept = Vec::new();
            }
            assert_eq!(sizes, *reads, "{sent} of {length}, {buffer_bytes}");
            assert_eq!(overflow.capacity(), 0);
        }
    }

    #[test]
    fn a_body_that_comes_in_small_parts_is_copied_few_times() {
        const PART_BYTES: usize = 1000;
        const LENGTH: u64 = 1 << 20;
        let (mut client, ours) = pair();
        let (mut arrived, mut kept, mut overflow) = (Arrived::default(), vec![], vec![]);
        let mut copies = 0;
        let mut left = LENGTH;
        while left > 0 {
            let part = PART_BYTES.min(usize::try_from(left).unwrap());
            client.write_all(&vec![b'x'; part]).unwrap();
            let capacity = kept.capacity();
            let vecs = [&mut kept, &mut overflow];
            let mut buffers = BodyBuffers::new(&mut arrived, vecs, 1 << 20, None);
            let bytes_max = buffers.read_bytes_max(left);
            left -= buffers.read(&ours, bytes_max, left).unwrap().bytes as u64;
            copies += usize::from(kept.capacity() != capacity);
        }
        // 16 KB, doubled up to 1 MB.
        assert!(copies <= 8, "{copies}");
        assert!(kept.capacity() as u64 <= LENGTH + 1);
    }

    #[test]
    fn a_body_for_a_file_borrows_room_only_for_what_does_not_fit() {
        let (mut client, ours) = pair();
        let scratches = Scratches::default();
        let (mut arrived, mut kept, mut overflow) = (Arrived::default(), vec![], vec![]);
        for (sent, kept_bytes, overflow_bytes) in [(60, 60, 0), (40, 100, 0), (7, 100, 7)] {
            client.write_all(&vec![b'x'; sent]).unwrap();
            let vecs = [&mut kept, &mut overflow];
            let mut buffers = BodyBuffers::new(&mut arrived, vecs, 100, Some(&scratches));
            assert_eq!(buffers.read_bytes_max(1 << 40), SCRATCH_BYTES_MAX);
            let read = buffers.read(&ours, SCRATCH_BYTES_MAX, 1 << 40).unwrap();
            assert_eq!(read.bytes, sent);
            assert_eq!((kept.len(), overflow.len()), (kept_bytes, overflow_bytes));
        }
        assert!(kept.capacity() < READ_BYTES);
        assert_eq!(arrived.take_received_bytes(), 107);
    }
}

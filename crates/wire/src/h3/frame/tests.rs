use super::*;
use crate::hex;

/// The parts of frames, the pieces of a payload as one.
fn read(bytes: &[u8], piece: usize) -> (Vec<(FrameHeader, Vec<u8>)>, bool) {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    for mut input in bytes.chunks(piece) {
        while let Some(part) = reader.next(&mut input) {
            match part {
                Part::Header(header) => frames.push((header, Vec::new())),
                Part::Payload { bytes, .. } => {
                    frames
                        .last_mut()
                        .expect("a header")
                        .1
                        .extend_from_slice(bytes);
                }
            }
        }
        assert!(input.is_empty());
    }
    (frames, reader.is_between_frames())
}

#[test]
fn frames_are_read_wherever_their_bytes_are_cut() {
    let bytes = "0003 616263 0100 8000 4000 c000000000000002 2122 \
        800f0700 05 00 753d31 2c 4704 04 01020304";
    let bytes = hex::bytes(bytes.replace(' ', "").as_bytes()).expect("frames");
    let kinds = [
        (FrameKind::Data, "abc"),
        (FrameKind::Headers, ""),
        (FrameKind::Unknown, "!\""),
        (FrameKind::PriorityUpdate, "\0u=1,"),
    ];
    for piece in 1..=bytes.len() {
        let (frames, is_whole) = read(&bytes, piece);
        assert!(is_whole);
        for ((header, payload), (kind, expected)) in frames.iter().zip(kinds) {
            assert_eq!((header.kind, header.length), (kind, expected.len() as u64));
            assert_eq!(payload, expected.as_bytes(), "pieces of {piece}");
        }
        assert_eq!(frames.len(), kinds.len() + 1);
    }
    for length in 1..bytes.len() {
        let (_, is_whole) = read(&bytes[..length], 3);
        let ends = [5, 7, 21, 31];
        assert_eq!(is_whole, ends.contains(&length), "cut at {length}");
    }
}

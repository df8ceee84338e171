//! Tests of what is judged of a server's frames.

use super::well_formed;
use crate::http2_frames::{
    CONTINUATION, DATA, FLAG_END, FLAG_END_HEADERS, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, write_frame,
};

const OPENING: Sent = (SETTINGS, 0, 0, &[]);
const HEAD: Sent = (HEADERS, FLAG_END_HEADERS, 1, b"\x88");

/// A frame: kind, flags, stream, payload.
type Sent = (u8, u8, u32, &'static [u8]);

/// Frames, and whether a server may send them.
const CASES: &[(&[Sent], bool)] = &[
    (&[], true),
    (&[OPENING, HEAD, (DATA, FLAG_END, 1, b"body")], true),
    (
        &[
            OPENING,
            HEAD,
            (DATA, 0, 1, b"body"),
            (RST_STREAM, 0, 1, &[0; 4]),
        ],
        true,
    ),
    (
        &[OPENING, HEAD, (DATA, 0, 1, b""), (HEADERS, 5, 1, b"\x88")],
        true,
    ),
    (
        &[OPENING, (HEADERS, 1, 1, b"\x88"), (CONTINUATION, 4, 1, b"")],
        true,
    ),
    (
        &[
            OPENING,
            (PING, FLAG_END, 0, &[7; 8]),
            (SETTINGS, FLAG_END, 0, &[]),
        ],
        true,
    ),
    (&[HEAD], false),
    (&[(SETTINGS, FLAG_END, 0, &[])], false),
    (&[OPENING, (DATA, 0, 1, b"body")], false),
    (
        &[OPENING, HEAD, (DATA, FLAG_END, 1, b""), (DATA, 0, 1, b"")],
        false,
    ),
    (&[OPENING, HEAD, (DATA, 0, 1, b""), HEAD], false),
    (
        &[OPENING, (HEADERS, 1, 1, b"\x88"), (PING, 0, 0, &[7; 8])],
        false,
    ),
    (&[OPENING, (CONTINUATION, 4, 1, b"")], false),
    (&[OPENING, (PING, 0, 0, &[7; 7])], false),
    (&[OPENING, (WINDOW_UPDATE, 0, 0, &[0; 4])], false),
    (&[OPENING, (PRIORITY, 0, 1, &[0; 5])], false),
    (&[OPENING, (HEADERS, FLAG_END_HEADERS, 2, b"\x88")], false),
];

#[test]
fn frames_of_a_server_are_judged() {
    for (number, (frames, expected)) in CASES.iter().enumerate() {
        let mut bytes = Vec::new();
        for (kind, flags, stream, payload) in *frames {
            write_frame(&mut bytes, *kind, *flags, *stream, payload);
        }
        assert_eq!(well_formed(&bytes).is_ok(), *expected, "case {number}");
    }
}

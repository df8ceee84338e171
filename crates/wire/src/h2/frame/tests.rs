use super::*;

/// Header and payload of a frame, and the parsed frame or the error code.
type Case = (u8, u8, &'static [u8], Result<Frame<'static>, ErrorCode>);

const CASES: &[Case] = &[
    (
        0,
        0x9,
        b"\x02ab\0\0",
        Ok(Frame::Data {
            data: b"ab",
            ends_stream: true,
        }),
    ),
    (0, 0x8, b"\x05ab", Err(ErrorCode::ProtocolError)),
    (0, 0x8, b"", Err(ErrorCode::FrameSizeError)),
    (
        1,
        0x2d,
        b"\x01\x80\0\0\x03\x10x\0",
        Ok(Frame::Headers {
            fragment: b"x",
            dependency: Some(3),
            ends_headers: true,
            ends_stream: true,
        }),
    ),
    (1, 0x20, b"\0\0\0", Err(ErrorCode::FrameSizeError)),
    (
        2,
        0,
        b"\x80\0\0\x05\x10",
        Ok(Frame::Priority { dependency: 5 }),
    ),
    (2, 0, b"\0\0\0\x05", Err(ErrorCode::FrameSizeError)),
    (
        3,
        0,
        b"\0\0\0\x08",
        Ok(Frame::RstStream {
            code: ErrorCode::Cancel,
        }),
    ),
    (3, 0, b"\0\0\0", Err(ErrorCode::FrameSizeError)),
    (4, 1, b"", Ok(Frame::SettingsAck)),
    (4, 1, b"\0\x04\0\0\0\0", Err(ErrorCode::FrameSizeError)),
    (4, 0, b"\0\x04\0\0", Err(ErrorCode::FrameSizeError)),
    (5, 4, b"\0\0\0\x02", Ok(Frame::PushPromise)),
    (6, 0, b"12345678", Ok(Frame::Ping { data: *b"12345678" })),
    (6, 1, b"12345678", Ok(Frame::PingAck)),
    (6, 0, b"1234567", Err(ErrorCode::FrameSizeError)),
    (
        7,
        0,
        b"\0\0\0\x05\0\0\0\x63debug",
        Ok(Frame::GoAway {
            last_stream: 5,
            code: ErrorCode::InternalError,
        }),
    ),
    (7, 0, b"\0\0\0\x05", Err(ErrorCode::FrameSizeError)),
    (
        8,
        0,
        b"\x80\0\0\x07",
        Ok(Frame::WindowUpdate { increment: 7 }),
    ),
    (8, 0, b"\0\0\x07", Err(ErrorCode::FrameSizeError)),
    (
        9,
        4,
        b"x",
        Ok(Frame::Continuation {
            fragment: b"x",
            ends_headers: true,
        }),
    ),
    (
        0x10,
        0,
        b"\0\0\0\x03u=1",
        Ok(Frame::PriorityUpdate {
            prioritized: 3,
            value: b"u=1",
        }),
    ),
    (0x10, 0, b"\0\0", Err(ErrorCode::FrameSizeError)),
    (0x42, 0xff, b"grease", Ok(Frame::Unknown)),
];

#[test]
fn payloads_are_parsed_by_their_kind() {
    for (kind, flags, payload, expected) in CASES {
        let header = FrameHeader {
            length: payload.len() as u32,
            kind: FrameKind::of(*kind),
            flags: *flags,
            stream: 3,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        assert_eq!(FrameHeader::parse(&bytes), Some(header));
        assert_eq!(FrameHeader::parse(&bytes[..HEADER_BYTES - 1]), None);
        let parsed = Frame::parse(header, payload).map_err(|error| error.code);
        assert_eq!(parsed, *expected, "{kind} {flags:#x} {payload:?}");
    }
}

#[test]
fn a_long_header_block_goes_into_several_frames() {
    let mut bytes = Vec::new();
    write_headers(&mut bytes, 5, b"abcdefg", 3, true);
    let expected: &[u8] = b"\0\0\x03\x01\x01\0\0\0\x05abc\
        \0\0\x03\x09\0\0\0\0\x05def\
        \0\0\x01\x09\x04\0\0\0\x05g";
    assert_eq!(bytes, expected);
}

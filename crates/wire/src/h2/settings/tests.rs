use super::super::error::ErrorCode;
use super::*;

/// Settings by number, and the result.
type Case = (&'static [(u16, u32)], Result<PeerSettings, ErrorCode>);

#[test]
fn settings_are_applied_in_order_or_refused() {
    let table: &[Case] = &[
        (&[(0x0a0a, 7), (6, 0)], Ok(PeerSettings::default())),
        (
            &[(1, 0), (3, 9), (4, 42), (4, 65536), (5, 1 << 15)],
            Ok(PeerSettings {
                header_table_bytes: 0,
                streams_max: 9,
                initial_window: 65536,
                payload_bytes_max: 1 << 15,
            }),
        ),
        (&[(2, 2)], Err(ErrorCode::ProtocolError)),
        (&[(4, 1 << 31)], Err(ErrorCode::FlowControlError)),
        (&[(5, 42)], Err(ErrorCode::ProtocolError)),
        (&[(5, 1 << 24)], Err(ErrorCode::ProtocolError)),
    ];
    for (settings, expected) in table {
        let mut payload = Vec::new();
        for (number, value) in *settings {
            payload.extend_from_slice(&number.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut peer = PeerSettings::default();
        let applied = peer.apply(&payload).map(|()| peer);
        assert_eq!(
            applied.map_err(|error| error.code),
            *expected,
            "{settings:?}"
        );
    }
}

//! Clients whose TLS handshakes fail at any byte: they send the first message of a real client,
//! whole, cut or damaged, and cannot end the handshake, since they do not know its keys.

use crate::client::{Piece, Script};
use turnpike_testkit::random::Random;

/// The first message of `openssl s_client`.
const HELLO: &[u8] = include_bytes!("handshake/hello.bin");

/// A certificate whose signatures all have the same length, so that a seed gives the same run
/// again, and its key. They are for nothing else.
pub(crate) const CERTIFICATE: &[u8] = include_bytes!("handshake/certificate.pem");
pub(crate) const KEY: &[u8] = include_bytes!("handshake/key.pem");

/// Records of a client that claims to have the keys.
const WRONG_RECORDS: &[u8] = b"\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x1435 bytes of nonsense";

/// The script of such a client, without its failure.
pub(crate) fn script(random: &mut Random) -> Script {
    let mut bytes = HELLO.to_vec();
    if random.percent(20) {
        // Not the first byte, by which TLS is recognised.
        let at = 1 + random.index(HELLO.len() - 1);
        bytes[at] ^= 1 << random.index(8);
    }
    if random.percent(40) {
        bytes.extend_from_slice(WRONG_RECORDS);
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    let most = random.pick(&[20, 100, 1_000]);
    while at < bytes.len() {
        let length = 1 + random.index((bytes.len() - at).min(most));
        pieces.push(Piece {
            bytes: at..at + length,
            pause_ms: random.pick(&[0, 0, 0, 1, 20, 400]),
            answers: 0,
            in_tunnel: false,
        });
        at += length;
    }
    Script {
        start_ms: random.pick(&[0, 0, 1, 50]),
        requests: Vec::new(),
        bytes,
        pieces,
        read_bytes: random.pick(&[1, 100, 20_000]),
        read_pause_ms: 0,
        cut: None,
        close_after_ms: random.percent(30).then(|| random.pick(&[0, 100, 1_500])),
        is_handshake: true,
        is_http2: false,
        window_bytes: None,
    }
}

//! What a client is known by: sixteen bytes, in base64 in cookies and in hexadecimal in variables.

use turnpike_http::base64;

/// Characters of base64 that sixteen bytes make, without padding.
const ENCODED_BYTES: usize = 22;

/// Four numbers in the order of the machine, as nginx has them: where the identifier was given,
/// when, and two that no other has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identifier(pub(super) [u8; 16]);

impl Identifier {
    /// One that nobody has yet. Its first number says where it was given.
    pub(super) fn new(service: [u8; 4], time: [u8; 4], random: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&service);
        bytes[4..8].copy_from_slice(&time);
        bytes[8..].copy_from_slice(&random.to_ne_bytes());
        Self(bytes)
    }

    /// The identifier in a cookie. `None`: there is none in it.
    pub(super) fn read(cookie: &[u8]) -> Option<Self> {
        let bytes = base64::decode(cookie.get(..ENCODED_BYTES)?)?;
        bytes.try_into().ok().map(Self)
    }

    /// Whether a cookie has this mark, in the place of its padding.
    pub(super) fn has_mark(cookie: &[u8], mark: u8) -> bool {
        cookie.get(ENCODED_BYTES..ENCODED_BYTES + 2) == Some(&[mark, b'='])
    }

    /// The identifier as a cookie has it.
    pub(super) fn encode(&self, mark: Option<u8>) -> String {
        let mut text = base64::encode(&self.0);
        if let Some(mark) = mark {
            let mark = char::from(mark).to_string();
            text.replace_range(ENCODED_BYTES..=ENCODED_BYTES, &mark);
        }
        text
    }

    /// The identifier as variables and logs have it.
    pub(super) fn in_hexadecimal(&self) -> String {
        let numbers = self.0.chunks_exact(4).map(|number| {
            let number = number.try_into().unwrap_or_default();
            format!("{:08X}", u32::from_ne_bytes(number))
        });
        numbers.collect()
    }
}

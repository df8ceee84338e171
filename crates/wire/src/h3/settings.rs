//! Settings (RFC 9114 section 7.2.4, RFC 9204 section 5, RFC 9220 section 3, RFC 9297 section
//! 2.1.1).

use super::error::{ConnectionError, ErrorCode};
use crate::varint;

/// The name of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    QpackMaxTableCapacity,
    MaxFieldSectionSize,
    QpackBlockedStreams,
    EnableConnectProtocol,
    Datagram,
}

impl Setting {
    const ALL: [Setting; 5] = [
        Setting::QpackMaxTableCapacity,
        Setting::MaxFieldSectionSize,
        Setting::QpackBlockedStreams,
        Setting::EnableConnectProtocol,
        Setting::Datagram,
    ];

    /// The number in a frame.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Setting::QpackMaxTableCapacity => 1,
            Setting::MaxFieldSectionSize => 6,
            Setting::QpackBlockedStreams => 7,
            Setting::EnableConnectProtocol => 8,
            Setting::Datagram => 0x33,
        }
    }

    /// Appends the setting to the payload of a frame.
    pub(super) fn write(self, value: u64, payload: &mut Vec<u8>) {
        varint::write(payload, self.number());
        varint::write(payload, value);
    }
}

/// The peer's settings that matter for sending to it. Its dynamic table stays unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// The largest field section that it accepts, in bytes as RFC 9114 section 4.2.2 counts them.
    pub field_section_bytes_max: u64,
    /// Whether it accepts the extended CONNECT.
    pub has_connect_protocol: bool,
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            field_section_bytes_max: u64::MAX,
            has_connect_protocol: false,
        }
    }
}

impl PeerSettings {
    /// Applies the payload of the frame.
    ///
    /// # Errors
    /// The payload is cut, a setting stands in it twice or is one of HTTP/2, or a value is out of
    /// its range.
    pub fn apply(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        let mut rest = payload;
        let mut seen = [false; Setting::ALL.len()];
        while !rest.is_empty() {
            let pair = varint::read(&mut rest).zip(varint::read(&mut rest));
            let (number, value) = pair.ok_or(ConnectionError::frame(
                "client sent SETTINGS frame with incorrect length",
            ))?;
            if matches!(number, 0 | 2..=5) {
                return Err(error("client sent SETTINGS frame with a setting of HTTP/2"));
            }
            let known = Setting::ALL.iter().zip(&mut seen);
            let Some((setting, is_seen)) = known
                .into_iter()
                .find(|(setting, _)| setting.number() == number)
            else {
                continue;
            };
            if std::mem::replace(is_seen, true) {
                return Err(error("client sent SETTINGS frame with a duplicate setting"));
            }
            match setting {
                Setting::MaxFieldSectionSize => self.field_section_bytes_max = value,
                Setting::EnableConnectProtocol | Setting::Datagram if value > 1 => {
                    return Err(error("client sent SETTINGS frame with incorrect value"));
                }
                Setting::EnableConnectProtocol => self.has_connect_protocol = value == 1,
                Setting::Datagram
                | Setting::QpackMaxTableCapacity
                | Setting::QpackBlockedStreams => {}
            }
        }
        Ok(())
    }
}

fn error(reason: &'static str) -> ConnectionError {
    ConnectionError::new(ErrorCode::SettingsError, reason)
}

//! Settings (RFC 9113 section 6.5, RFC 8441 section 3, RFC 9218 section 2.1).

use super::error::ConnectionError;
use super::frame::{PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX};
use super::window::{WINDOW_DEFAULT, WINDOW_MAX};

#[cfg(test)]
mod tests;

/// The name of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    HeaderTableSize,
    EnablePush,
    MaxConcurrentStreams,
    InitialWindowSize,
    MaxFrameSize,
    MaxHeaderListSize,
    EnableConnectProtocol,
    NoRfc7540Priorities,
}

impl Setting {
    /// Bytes of a setting in a frame.
    pub const BYTES: usize = 6;

    /// The number in a frame.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Setting::HeaderTableSize => 1,
            Setting::EnablePush => 2,
            Setting::MaxConcurrentStreams => 3,
            Setting::InitialWindowSize => 4,
            Setting::MaxFrameSize => 5,
            Setting::MaxHeaderListSize => 6,
            Setting::EnableConnectProtocol => 8,
            Setting::NoRfc7540Priorities => 9,
        }
    }
}

/// The peer's settings that matter for sending to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// The size of its decoder's dynamic table, in bytes.
    pub header_table_bytes: u32,
    /// Streams that may be open at once.
    pub streams_max: u32,
    /// The initial window of each stream, in bytes.
    pub initial_window: u32,
    /// The largest payload that it accepts, in bytes.
    pub payload_bytes_max: u32,
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            header_table_bytes: super::hpack::TABLE_BYTES_DEFAULT,
            streams_max: u32::MAX,
            initial_window: WINDOW_DEFAULT,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT,
        }
    }
}

impl PeerSettings {
    /// Applies the settings of a frame's payload, in order.
    ///
    /// # Errors
    /// A value is out of its range.
    pub fn apply(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        let (settings, _) = payload.as_chunks::<{ Setting::BYTES }>();
        for [high, low, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*high, *low]) {
                1 => self.header_table_bytes = value,
                2 if value > 1 => {
                    return Err(ConnectionError::protocol(
                        "client sent SETTINGS frame with incorrect ENABLE_PUSH value",
                    ));
                }
                3 => self.streams_max = value,
                4 if value > WINDOW_MAX => {
                    return Err(ConnectionError::flow_control(
                        "client sent SETTINGS frame with incorrect INITIAL_WINDOW_SIZE value",
                    ));
                }
                4 => self.initial_window = value,
                5 if !(PAYLOAD_BYTES_DEFAULT..=PAYLOAD_BYTES_MAX).contains(&value) => {
                    return Err(ConnectionError::protocol(
                        "client sent SETTINGS frame with incorrect MAX_FRAME_SIZE value",
                    ));
                }
                5 => self.payload_bytes_max = value,
                _ => {}
            }
        }
        Ok(())
    }
}

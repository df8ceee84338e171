//! Flow-control windows (RFC 9113 section 5.2 and 6.9).

/// The largest window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// The window of a connection, and of a stream without a setting.
pub const WINDOW_DEFAULT: u32 = 65_535;

const _: () = assert!(WINDOW_DEFAULT <= WINDOW_MAX);

/// The bytes of DATA that may still be sent in one direction. A change of settings can make it
/// negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(i64);

/// The window would exceed the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOverflow;

impl Window {
    /// A window of so many bytes.
    #[must_use]
    pub fn new(bytes: u32) -> Window {
        Window(i64::from(bytes))
    }

    /// The bytes that may be sent now.
    #[must_use]
    pub fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Widens the window, by WINDOW_UPDATE.
    ///
    /// # Errors
    /// The window would exceed the maximum (RFC 9113 section 6.9.1).
    pub fn widen(&mut self, bytes: u32) -> Result<(), WindowOverflow> {
        self.shift(i64::from(bytes))
    }

    /// Applies a change of the initial window's size (RFC 9113 section 6.9.2).
    ///
    /// # Errors
    /// As [`Window::widen`].
    pub fn initial_changed(&mut self, old: u32, new: u32) -> Result<(), WindowOverflow> {
        self.shift(i64::from(new) - i64::from(old))
    }

    /// Subtracts sent bytes. The caller has checked that they fit.
    pub fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available(), "{bytes} bytes of {self:?}");
        self.0 -= i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    }

    fn shift(&mut self, bytes: i64) -> Result<(), WindowOverflow> {
        let shifted = self.0 + bytes;
        if shifted > i64::from(WINDOW_MAX) {
            return Err(WindowOverflow);
        }
        self.0 = shifted;
        debug_assert!(self.0 >= -i64::from(WINDOW_MAX), "{self:?}");
        Ok(())
    }
}

//! Password hashes by the C library's crypt(3), so that every scheme in the system's user files is
//! supported.

use std::ffi::{CStr, CString, c_char};

/// The size of `struct crypt_data`: libxcrypt needs 32 KB, glibc before 2.28 131,232 bytes, and the
/// library is only known at link time.
const STATE_BYTES: usize = 131_232;

/// Longest password, with its closing NUL (libxcrypt's `CRYPT_MAX_PASSPHRASE_SIZE`): some schemes
/// would silently ignore the rest of a longer one.
const PASSWORD_BYTES_MAX: usize = 512;

#[repr(C, align(16))]
struct State([u8; STATE_BYTES]);

#[cfg_attr(
    target_feature = "crt-static",
    link(name = "crypt", kind = "static", modifiers = "-bundle")
)]
#[cfg_attr(not(target_feature = "crt-static"), link(name = "crypt"))]
unsafe extern "C" {
    fn crypt_r(key: *const c_char, setting: *const c_char, state: *mut State) -> *mut c_char;
}

/// Why there is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CryptError {
    /// The password is too long, or holds a NUL, after which crypt(3) would stop.
    Password,
    /// The scheme is unknown, or the stored hash is malformed.
    Stored,
}

/// Hashes `password` with the scheme of `stored`, which is a complete hash or its beginning. The
/// scheme determines the time, which may be seconds. Allocates.
///
/// # Errors
/// A [`CryptError`]. The failure values of crypt(3) are never returned as a hash.
pub fn crypt(password: &[u8], stored: &[u8]) -> Result<Vec<u8>, CryptError> {
    if password.len() >= PASSWORD_BYTES_MAX || password.contains(&0) {
        return Err(CryptError::Password);
    }
    let setting = CString::new(stored).map_err(|_| CryptError::Stored)?;
    let mut key = [0; PASSWORD_BYTES_MAX];
    key[..password.len()].copy_from_slice(password);
    let mut state = Box::new(State([0; STATE_BYTES]));
    // SAFETY: both texts end in NUL and outlive the call; the state is as large as any crypt_data,
    // aligned, ours alone, and all zero as crypt_r wants it before its first use.
    let hash = unsafe { crypt_r(key.as_ptr().cast(), setting.as_ptr(), &mut *state) };
    // SAFETY: crypt_r gives NULL or a text inside the state, which lives until after the copy.
    let hash = (!hash.is_null()).then(|| unsafe { CStr::from_ptr(hash) }.to_bytes().to_vec());
    wipe(&mut state.0);
    wipe(&mut key);
    // "*0" and "*1" mean failure.
    hash.filter(|hash| hash.first().is_some_and(|byte| *byte != b'*'))
        .ok_or(CryptError::Stored)
}

/// Overwrites memory that held a password.
fn wipe(bytes: &mut [u8]) {
    // SAFETY: pointer and length are those of one slice.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) };
}

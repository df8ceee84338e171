//! Hashes of passwords (crypt(3)): the C library's own, so that whatever the system writes into its
//! files of users is understood.

use std::ffi::{CStr, CString, c_char};

/// Room for `struct crypt_data`: libxcrypt takes 32 KB, glibc before 2.28 took 131,232 bytes, and
/// which of them is there shows only when the server is linked.
const STATE_BYTES: usize = 131_232;

/// Longest password that is hashed, with its closing NUL (libxcrypt's
/// `CRYPT_MAX_PASSPHRASE_SIZE`): some schemes would silently leave out the rest of a longer one.
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
    /// The password is too long, or holds a NUL, behind which crypt(3) would not look.
    Password,
    /// The scheme is not known, or what is stored is broken.
    Stored,
}

/// Hashes `password` as `stored` says, which is a whole hash or what it begins with. Takes as long
/// as the scheme wants it to, which may be seconds. Allocates.
///
/// # Errors
/// As [`CryptError`] says. What crypt(3) gives for a failure never gets out of here.
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
    // "*0" and "*1" say that it failed.
    hash.filter(|hash| hash.first().is_some_and(|byte| *byte != b'*'))
        .ok_or(CryptError::Stored)
}

/// Overwrites what a password stood in.
fn wipe(bytes: &mut [u8]) {
    // SAFETY: pointer and length are those of one slice.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) };
}

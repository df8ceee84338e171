//! Files: opening, metadata, reading, sending, appending (open(2), stat(2), sendfile(2)).
//!
//! Paths are bytes, as in requests and configurations, and are copied to the stack with a closing
//! NUL. Opening never waits for the writer of a FIFO (`O_NONBLOCK`).

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

#[cfg(feature = "simulation")]
use super::simulation;
use super::{check, check_size, retry, with_c_path};

/// Most bytes one [`send_file`] asks for: the kernel's own limit for one call, page-aligned.
pub const SEND_FILE_BYTES_MAX: usize = 0x7fff_f000;

/// The metadata of a file, in plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Device that holds the file.
    pub device: u64,
    /// Inode number, unique on its device.
    pub inode: u64,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Owner.
    pub user_id: u32,
    pub size_bytes: u64,
    /// The space on disk, in bytes.
    pub disk_bytes: u64,
    /// Last change of the content, in seconds since 1970.
    pub modified_s: i64,
    /// The fraction, in nanoseconds.
    pub modified_ns: u32,
    /// Last change of the inode, in seconds since 1970.
    pub changed_s: i64,
    /// The fraction, in nanoseconds.
    pub changed_ns: u32,
}

impl Metadata {
    /// A regular file.
    pub fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// A directory.
    pub fn is_directory(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    /// A symbolic link; only if the metadata were read without following it.
    pub fn is_symlink(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFLNK
    }

    /// A unix socket.
    pub fn is_socket(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFSOCK
    }
}

/// The use of an opened descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read its bytes.
    Read,
    /// Only to look up names below it, or to read its metadata (`O_PATH`).
    Locate,
    /// As [`Purpose::Locate`], and it must be a directory.
    LocateDirectory,
}

/// Whether a symbolic link in the last component is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Follow,
    /// No: opening to read fails with `ELOOP`, opening to locate takes the link itself.
    Refuse,
}

/// Opens `path`, from the working directory or the root.
pub fn open(path: &[u8], purpose: Purpose, links: Links) -> io::Result<OwnedFd> {
    open_from(libc::AT_FDCWD, path, open_flags(purpose, links), 0)
}

/// Opens `name` below `directory`.
pub fn open_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
    purpose: Purpose,
    links: Links,
) -> io::Result<OwnedFd> {
    open_from(directory.as_raw_fd(), name, open_flags(purpose, links), 0)
}

/// Opens `path` for appending, and creates it with `mode` (less the umask) if it does not exist: a
/// log. Neither opening nor writing waits for the reader of a FIFO: `ENXIO` without a reader,
/// `EAGAIN` while it is full.
pub fn open_append(path: &[u8], mode: u32) -> io::Result<OwnedFd> {
    let flags = libc::O_WRONLY
        | libc::O_APPEND
        | libc::O_CREAT
        | libc::O_CLOEXEC
        | libc::O_NONBLOCK
        | libc::O_NOCTTY;
    open_from(libc::AT_FDCWD, path, flags, mode)
}

/// The metadata of an open file.
pub fn metadata(file: BorrowedFd<'_>) -> io::Result<Metadata> {
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the pointer points to a whole stat64.
    check(unsafe { libc::fstat64(file.as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: fstat64 has succeeded, so it has filled the struct.
    Ok(plain_metadata(&unsafe { raw.assume_init() }))
}

/// Whether an open file has no name any more. One whose metadata cannot be read counts as named.
pub fn is_unlinked(file: BorrowedFd<'_>) -> bool {
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the pointer points to a whole stat64.
    let found = check(unsafe { libc::fstat64(file.as_raw_fd(), raw.as_mut_ptr()) });
    // SAFETY: fstat64 has filled the struct if it has succeeded.
    found.is_ok() && unsafe { raw.assume_init() }.st_nlink == 0
}

/// Whether an open file is the null device, `/dev/null`.
pub fn is_null_device(file: BorrowedFd<'_>) -> bool {
    /// Documentation/admin-guide/devices.txt of the kernel.
    const NUMBER: libc::dev_t = libc::makedev(1, 3);
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the pointer points to a whole stat64.
    let found = check(unsafe { libc::fstat64(file.as_raw_fd(), raw.as_mut_ptr()) });
    // SAFETY: all bytes of a stat64 are numbers, and 0 is one.
    let raw = unsafe { raw.assume_init() };
    found.is_ok() && raw.st_mode & libc::S_IFMT == libc::S_IFCHR && raw.st_rdev == NUMBER
}

/// The metadata of `path`, without opening it.
pub fn metadata_of(path: &[u8], links: Links) -> io::Result<Metadata> {
    metadata_from(libc::AT_FDCWD, path, links)
}

/// The metadata of `name` below `directory`, without opening it.
pub fn metadata_at(directory: BorrowedFd<'_>, name: &[u8], links: Links) -> io::Result<Metadata> {
    metadata_from(directory.as_raw_fd(), name, links)
}

/// Whether a file is on a local file system, where stat(2) of the path shows every change at once.
/// With network file systems (NFS, SMB, 9P) and FUSE, only opening checks cached metadata. Unknown
/// file systems count as not local.
pub fn is_on_local_disk(file: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(LOCAL_FILE_SYSTEMS.contains(&file_system(file)?))
}

/// Whether a file is on a file system that is always in memory.
pub fn is_in_memory(file: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(matches!(file_system(file)?, TMPFS | RAMFS))
}

/// The magic number of a file's file system.
fn file_system(file: BorrowedFd<'_>) -> io::Result<u32> {
    let mut raw = MaybeUninit::<libc::statfs64>::zeroed();
    // SAFETY: the pointer points to a whole statfs64.
    check(unsafe { libc::fstatfs64(file.as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: fstatfs64 has succeeded, so it has filled the struct.
    Ok(unsafe { raw.assume_init() }.f_type as u32)
}

const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;

/// The magic numbers of file systems in statfs(2).
const LOCAL_FILE_SYSTEMS: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x794c_7630, // overlayfs
    TMPFS,
    RAMFS,
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x7371_7368, // SquashFS
    0xe0f5_e1e2, // EROFS
];

/// Reads at `offset` until `buffer` is full or the file ends. Returns the number of bytes.
pub fn fill_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_at(file, &mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Reads at `offset` without moving the file's own position. `Ok(0)` is the end.
pub fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let offset = position(offset)?;
    retry(|| {
        // SAFETY: pointer and length are those of one slice, which the kernel may overwrite.
        check_size(unsafe {
            libc::pread64(
                file.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                offset,
            )
        })
    })
}

/// Reads at `offset` what is in memory, without waiting for a disk (preadv2(2) with RWF_NOWAIT,
/// Linux 4.14). `Ok(0)` is the end. `WouldBlock`: the first byte is not in memory; `EOPNOTSUPP`:
/// the file system cannot say.
pub fn read_cached_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let offset = position(offset)?;
    #[cfg(test)]
    if let Some(error) = fake_disk::refused() {
        return Err(error);
    }
    let slice = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    retry(|| {
        // SAFETY: the vector has one slice, which the kernel may overwrite.
        check_size(unsafe {
            libc::preadv64v2(file.as_raw_fd(), &slice, 1, offset, libc::RWF_NOWAIT)
        })
    })
}

/// Sends at most `bytes_max` bytes of `file`, from `offset` on, to `socket`, and returns the number
/// of bytes sent. `Ok(0)` means that the file has become shorter. Linux 2.6.33 for any target.
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    bytes_max: usize,
) -> io::Result<usize> {
    let count = bytes_max.min(SEND_FILE_BYTES_MAX);
    #[cfg(feature = "simulation")]
    let count = simulation::may_send(socket, count)?;
    let start = position(offset)?;
    let result = retry(|| {
        let mut position = start;
        // SAFETY: the offset lives until the call returns.
        check_size(unsafe {
            libc::sendfile64(socket.as_raw_fd(), file.as_raw_fd(), &mut position, count)
        })
    });
    #[cfg(feature = "simulation")]
    let result = simulation::sent(socket, result);
    result
}

/// Reads from a descriptor's own position: a pipe, a signal or event descriptor.
pub fn read(file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    retry(|| {
        // SAFETY: pointer and length are those of one slice, which the kernel may overwrite.
        check_size(unsafe {
            libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
        })
    })
}

/// Writes once, at the end of a file opened by [`open_append`]; may take fewer than all.
pub fn write(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    retry(|| {
        // SAFETY: pointer and length are those of one slice.
        check_size(unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
    })
}

/// Writes all of `bytes`, in as many system calls as needed. `WriteZero` if the kernel takes
/// nothing.
pub fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(file, bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// Sets permission bits of `path`.
pub fn set_mode(path: &[u8], mode: u32) -> io::Result<()> {
    with_c_path(path, |path| {
        // SAFETY: the path is a C string that outlives the call.
        check(unsafe { libc::chmod(path.as_ptr(), mode) })?;
        Ok(())
    })
}

/// Removes the name `path`.
pub fn unlink(path: &[u8]) -> io::Result<()> {
    with_c_path(path, |path| {
        // SAFETY: the path is a C string that outlives the call.
        check(unsafe { libc::unlink(path.as_ptr()) })?;
        Ok(())
    })
}

fn open_flags(purpose: Purpose, links: Links) -> libc::c_int {
    let purpose = match purpose {
        Purpose::Read => libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY,
        Purpose::Locate => libc::O_PATH,
        Purpose::LocateDirectory => libc::O_PATH | libc::O_DIRECTORY,
    };
    let links = match links {
        Links::Follow => 0,
        Links::Refuse => libc::O_NOFOLLOW,
    };
    purpose | links | libc::O_CLOEXEC
}

fn open_from(
    directory: libc::c_int,
    path: &[u8],
    flags: libc::c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    with_c_path(path, |path| {
        retry(|| {
            // SAFETY: the path is a C string that outlives the call.
            let file = check(unsafe { libc::openat64(directory, path.as_ptr(), flags, mode) })?;
            // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
            Ok(unsafe { OwnedFd::from_raw_fd(file) })
        })
    })
}

fn metadata_from(directory: libc::c_int, path: &[u8], links: Links) -> io::Result<Metadata> {
    let flags = match links {
        Links::Follow => 0,
        Links::Refuse => libc::AT_SYMLINK_NOFOLLOW,
    };
    with_c_path(path, |path| {
        let mut raw = MaybeUninit::<libc::stat64>::zeroed();
        // SAFETY: the path is a C string and the pointer points to a whole stat64.
        check(unsafe { libc::fstatat64(directory, path.as_ptr(), raw.as_mut_ptr(), flags) })?;
        // SAFETY: fstatat64 has succeeded, so it has filled the struct.
        Ok(plain_metadata(&unsafe { raw.assume_init() }))
    })
}

fn plain_metadata(raw: &libc::stat64) -> Metadata {
    Metadata {
        device: raw.st_dev,
        inode: raw.st_ino,
        mode: raw.st_mode,
        user_id: raw.st_uid,
        size_bytes: u64::try_from(raw.st_size).unwrap_or(0),
        disk_bytes: u64::try_from(raw.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512),
        modified_s: raw.st_mtime,
        modified_ns: u32::try_from(raw.st_mtime_nsec).unwrap_or(0),
        changed_s: raw.st_ctime,
        changed_ns: u32::try_from(raw.st_ctime_nsec).unwrap_or(0),
    }
}

fn position(offset: u64) -> io::Result<libc::off64_t> {
    libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))
}

/// A disk whose files are not in memory, for the tests of this crate.
#[cfg(test)]
pub(crate) mod fake_disk {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static STATE: Cell<Option<(i32, usize)>> = const { Cell::new(None) };
    }

    /// Has this thread's reads of what is in memory fail with an error; `None`: they do not.
    /// Returns how many have failed since the last call.
    pub(crate) fn refuse(errno: Option<i32>) -> usize {
        let before = STATE.replace(errno.map(|errno| (errno, 0)));
        before.map_or(0, |(_, count)| count)
    }

    pub(super) fn refused() -> Option<io::Error> {
        let (errno, count) = STATE.get()?;
        STATE.set(Some((errno, count + 1)));
        Some(io::Error::from_raw_os_error(errno))
    }
}

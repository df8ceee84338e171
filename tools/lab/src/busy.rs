//! Busy polling of a server's epoll instances from outside: the server need not know of it, and an
//! instance that is made anew has none.

use std::path::Path;

use crate::sys;

/// What the kernel calls an epoll instance among a process's descriptors.
const EPOLL: &str = "anon_inode:[eventpoll]";

/// Has the epoll instances of these processes poll network queues themselves for so many
/// microseconds before they sleep; how many instances there are.
///
/// # Errors
/// In words; the kernel has it since 6.9.
pub fn poll_busily(processes: &[u32], microseconds: u32) -> Result<usize, String> {
    let mut count = 0;
    for process in processes {
        let folder = Path::new("/proc").join(process.to_string()).join("fd");
        // A process that has just ended has none.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let link = std::fs::read_link(entry.path());
            let is_epoll = link.is_ok_and(|link| link.as_os_str() == EPOLL);
            let name = entry.file_name();
            let descriptor = name.to_str().and_then(|name| name.parse().ok());
            let Some(descriptor) = descriptor.filter(|_| is_epoll) else {
                continue;
            };
            sys::poll_busily(*process, descriptor, microseconds).map_err(|error| {
                format!("EPIOCSPARAMS on an epoll instance (kernel 6.9 and later): {error}")
            })?;
            count += 1;
        }
    }
    Ok(count)
}

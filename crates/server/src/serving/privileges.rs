//! What a serving process does to itself before it serves: limits, priority, user, folder.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::unistd::{Gid, Uid, initgroups, setgid, setuid};
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::process::{self, Limit, Resource};

use crate::sandbox::{self, Sandbox, Wall};
use crate::settings::{Account, ProcessSettings};
use turnpike_plan::environment::Capability;

/// Applies the settings to this process. Must run before any other thread exists, though the
/// change of user would reach them too.
///
/// # Errors
/// What makes serving wrong: another user, another folder. Limits and priority are only logged.
pub(super) fn settle(
    settings: &ProcessSettings,
    capabilities: &BTreeSet<Capability>,
    limited: &mut Option<u64>,
    log: &ErrorLog,
) -> Result<(), String> {
    let complain = |action: &str, error: &io::Error| {
        log.event(
            Level::Alert,
            format_args!("{action} failed {}", Errno(error)),
        );
    };
    if settings.priority != 0
        && let Err(error) = process::set_priority(settings.priority)
    {
        complain(&format!("setpriority({})", settings.priority), &error);
    }
    limit_again(settings, limited, log);
    if let Some(bytes) = settings.core_bytes_max {
        let limit = Limit {
            soft: bytes,
            hard: bytes,
        };
        if let Err(error) = process::set_limit(Resource::CoreBytes, limit) {
            complain(&format!("setrlimit(RLIMIT_CORE, {bytes})"), &error);
        }
    }
    if settings.sandbox != Sandbox::Off {
        sandbox::prepare();
    }
    if let Some(account) = &settings.account {
        let is_raw = capabilities.contains(&Capability::NetRaw);
        // nginx's names for the calls, since logs are searched for them.
        if is_raw && let Err(error) = process::set_keep_capabilities(true) {
            complain("prctl(PR_SET_KEEPCAPS, 1)", &error);
        }
        become_account(account)?;
        if is_raw && let Err(error) = process::set_thread_capability(process::CAPABILITY_NET_RAW) {
            complain("capset()", &error);
        }
        // A core file is wanted as before; changing users forbids it.
        if let Err(error) = process::set_dumpable(true) {
            complain("prctl(PR_SET_DUMPABLE)", &error);
        }
    }
    if let Some(folder) = &settings.working_directory {
        std::env::set_current_dir(folder)
            .map_err(|error| format!("chdir(\"{}\") failed {}", folder.display(), Errno(&error)))?;
    }
    Ok(())
}

/// Enters the sandbox where the settings want one; `writable` are the folders that it serves with.
///
/// # Errors
/// What is missing of a sandbox that is required.
pub(super) fn confine(
    settings: &ProcessSettings,
    writable: &[PathBuf],
    log: &ErrorLog,
) -> Result<(), String> {
    if settings.sandbox == Sandbox::Off {
        return Ok(());
    }
    let missing = sandbox::enter(writable);
    for (wall, why) in &missing {
        if settings.sandbox == Sandbox::Required {
            return Err(format!(
                "the sandbox is required, and fails at {wall} ({why})"
            ));
        }
        log.event(
            Level::Warn,
            format_args!("the serving process is in a sandbox without {wall} ({why})"),
        );
    }
    if missing.iter().all(|(wall, _)| *wall != Wall::Seccomp)
        && let Err(error) = sandbox::tell(log)
    {
        complain_of_thread(&error, log);
    }
    if missing.is_empty() {
        let message = format_args!("the serving process is in a sandbox");
        log.event(Level::Notice, message);
    }
    Ok(())
}

fn complain_of_thread(error: &io::Error, log: &ErrorLog) {
    let errno = Errno(error);
    log.event(
        Level::Alert,
        format_args!("no thread can report which system calls the sandbox refuses {errno}"),
    );
}

/// Sets what a reload may change in a running process: the limit that follows the count of lanes.
/// `limited` is what was asked for last: a limit that was refused is asked for, and complained of,
/// once, since the process has less rights later.
pub(super) fn limit_again(settings: &ProcessSettings, limited: &mut Option<u64>, log: &ErrorLog) {
    let lanes = settings.lanes as u64;
    let wanted = settings
        .open_files_max
        .map(|each| each.saturating_mul(lanes));
    if wanted.is_some() && wanted == *limited {
        return;
    }
    *limited = wanted;
    if let Err(error) = limit_descriptors(settings.open_files_max, wanted) {
        let wanted = settings.open_files_max.unwrap_or_default();
        let message = format_args!(
            "setrlimit(RLIMIT_NOFILE, {wanted}) failed {}",
            Errno(&error)
        );
        log.event(Level::Alert, message);
    }
}

/// nginx's limit is for each of its processes; here all lanes share one. The ceiling stays as high
/// as it is, so that a reload may bring more lanes.
fn limit_descriptors(each: Option<u64>, wanted: Option<u64>) -> io::Result<()> {
    let now = process::limit(Resource::OpenFiles)?;
    let wanted = wanted.unwrap_or(now.hard);
    let limit = Limit {
        soft: wanted,
        hard: wanted.max(now.hard),
    };
    if limit == now {
        return Ok(());
    }
    match process::set_limit(Resource::OpenFiles, limit) {
        Err(_) if each.is_some_and(|each| each <= now.hard) => process::set_limit(
            Resource::OpenFiles,
            Limit {
                soft: now.hard,
                hard: now.hard,
            },
        ),
        set => set,
    }
}

fn become_account(account: &Account) -> Result<(), String> {
    let Account { name, user, group } = account;
    let failed = |call: String| {
        move |error: nix::Error| format!("{call} failed {}", Errno(&io::Error::from(error)))
    };
    let user_name = CString::new(name.as_str()).map_err(|error| error.to_string())?;
    let group_id = Gid::from_raw(*group);
    setgid(group_id).map_err(failed(format!("setgid({group})")))?;
    initgroups(&user_name, group_id).map_err(failed(format!("initgroups({name}, {group})")))?;
    setuid(Uid::from_raw(*user)).map_err(failed(format!("setuid({user})")))
}

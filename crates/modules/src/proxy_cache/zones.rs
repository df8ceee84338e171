//! Zones: `proxy_cache_path` and its like.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnpike_cache::disk::{Closing, DiskSettings, Pace};
use turnpike_cache::manager::Manager;
use turnpike_cache::zone::Zone;
use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_http::plan::Builder;
use turnpike_lane::files::{LARGE_FILE_BYTES, close_on_thread};
use turnpike_plan::background::{Lifetime, Running, Service, run_blocking};
use turnpike_plan::environment::{Environment, FolderKind};

use crate::common::zone;
use crate::pass::view::PassView;

/// Least size of a zone: two pages, nginx's.
const ZONE_BYTES_MIN: u64 = 2 * 4096;

/// nginx's defaults.
const INACTIVE_S: u64 = 600;
const PACE: Pace = Pace {
    files: 100,
    threshold_ms: 200,
    sleep_ms: 50,
};

/// The pause where no thread is free to look at the folder: nothing in it is urgent.
const RETRY: Duration = Duration::from_secs(1);

/// Zones by name, those of all families; and the family that has declared each.
#[derive(Clone, Default)]
pub(super) struct Zones(
    pub(super) Arc<BTreeMap<String, Arc<Zone>>>,
    Arc<BTreeMap<String, &'static str>>,
);

impl Zones {
    /// The zone of that name, where the family with this prefix has declared it.
    pub(super) fn find(&self, prefix: &str, name: &str) -> Option<&Arc<Zone>> {
        let declared = self.1.get(name).is_some_and(|owner| *owner == prefix);
        self.0.get(name).filter(|_| declared)
    }
}

/// What a directive says, before a zone is made of it.
struct Declaration<'a> {
    named: Option<(&'a str, u64)>,
    memory: bool,
    levels: Vec<usize>,
    use_temporary_folder: bool,
    inactive_s: u64,
    bytes_max: u64,
    free_bytes_min: u64,
    manager: Pace,
    loader: Pace,
    /// The first parameter that has no meaning for a zone in memory.
    about_files: Option<&'a str>,
}

/// Declares the zones of the http level, for the families with these prefixes.
pub(super) fn declare(
    view: View<'_>,
    prefixes: &[&'static str],
    builder: &mut Builder<'_>,
) -> Result<(), ConfError> {
    let (mut zones, mut owners) = (BTreeMap::new(), BTreeMap::new());
    let mut folders = HashSet::new();
    for prefix in prefixes {
        let pass = PassView::new(view, prefix);
        for entry in view.own_all(&pass.name("cache_path")) {
            let declared = Declaration::read(entry).and_then(|declared| {
                let folder = entry.argument(0).trim_end_matches('/');
                if declared.memory || folders.insert(folder) {
                    Ok(declared)
                } else {
                    Err(format!("the same path name \"{folder}\" is used by two caches").into())
                }
            });
            let opened = declared.and_then(|declared| open(pass, entry, &declared, builder));
            let declared = opened.and_then(|zone| {
                let name = zone.name().to_owned();
                owners.insert(name.clone(), *prefix);
                match zones.insert(name.clone(), zone) {
                    None => Ok(()),
                    Some(_) => Err(format!("duplicate zone \"{name}\"").into()),
                }
            });
            if let Err(message) = declared {
                builder.report(view.error(entry.span, message));
            }
        }
    }
    for zone in zones.values() {
        if let Some(care) = ZoneCare::of(zone) {
            builder.service(Arc::new(care));
        }
    }
    *builder.store::<Zones>() = Zones(Arc::new(zones), Arc::new(owners));
    Ok(())
}

/// Takes care of a zone's folder while a plan uses the zone. Without it the zone serves still; it
/// forgets nothing by itself then.
struct ZoneCare {
    zone: Arc<Zone>,
    manager: Mutex<Manager>,
}

impl ZoneCare {
    fn of(zone: &Arc<Zone>) -> Option<Self> {
        Some(Self {
            manager: Mutex::new(Manager::of(zone)?),
            zone: zone.clone(),
        })
    }

    fn step(&self) -> Duration {
        let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        manager.step(&self.zone)
    }
}

impl Service for ZoneCare {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            loop {
                let care = self.clone();
                let pause = match run_blocking(move || care.step()) {
                    Ok(step) => match step.await {
                        Some(pause) => pause,
                        // It would fail at the same file again.
                        None => return,
                    },
                    Err(_) => RETRY,
                };
                tokio::time::sleep(pause).await;
            }
        })
    }

    fn prepare(&self) {
        Manager::announce(&self.zone);
    }

    fn leave(&self) {
        self.zone.leave();
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::InUse
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.zone).addr()
    }
}

fn open(
    pass: PassView<'_>,
    entry: &Entry,
    declared: &Declaration<'_>,
    builder: &mut Builder<'_>,
) -> Result<Arc<Zone>, Complaint> {
    let Some((name, size_bytes)) = declared.named else {
        return Err(no_zone(entry).into());
    };
    let environment = &mut builder.environment;
    environment.zone_memory(entry.row.name, name, size_bytes);
    let owner = match pass.prefix {
        "proxy" => "proxy_cache",
        prefix => prefix,
    };
    if declared.memory {
        if let Some(parameter) = declared.about_files {
            return Err(format!("parameter \"{parameter}\" has no meaning with \"memory\"").into());
        }
        let identity = format!("memory:{size_bytes}");
        return zone::open(builder, owner, name, &identity, || {
            Zone::memory(name, size_bytes)
        });
    }
    let path = entry.argument(0);
    let folder = std::path::Path::new(path);
    builder.environment.folder(folder, FolderKind::Named);
    let prefix = builder.environment.prefix();
    let folder = prefix.join(path.strip_suffix('/').unwrap_or(path));
    let temporary = if declared.use_temporary_folder {
        Some(temporary_folder(pass, builder.environment)?)
    } else {
        None
    };
    let settings = DiskSettings {
        folder,
        levels: declared.levels.clone(),
        temporary_folder: temporary,
        bytes_max: declared.bytes_max,
        free_bytes_min: declared.free_bytes_min,
        inactive_s: declared.inactive_s,
        manager: declared.manager,
        loader: declared.loader,
        closing: Closing {
            bytes_min: LARGE_FILE_BYTES,
            close: close_on_thread,
        },
    };
    // A report of what a reload changes reads the first line.
    let folder = settings.folder.display();
    let identity = format!("disk:{folder}\n{size_bytes}:{settings:?}");
    zone::open(builder, owner, name, &identity, || {
        Zone::disk(name, size_bytes, settings.clone())
    })
}

/// What is said of a zone without a name.
fn no_zone(entry: &Entry) -> String {
    let name = entry.row.name;
    format!("\"{name}\" must have \"keys_zone\" parameter")
}

/// `..._temp_path` of the http level: a zone is one for all locations.
fn temporary_folder(
    pass: PassView<'_>,
    environment: &dyn Environment,
) -> Result<PathBuf, Complaint> {
    pass.temporary_folder(environment)
        .map(|folder| folder.path().to_path_buf())
        .map_err(|error| error.to_string().into())
}

impl<'a> Declaration<'a> {
    fn read(entry: &'a Entry) -> Result<Self, Complaint> {
        let mut declared = Self {
            named: None,
            memory: false,
            levels: Vec::new(),
            use_temporary_folder: true,
            inactive_s: INACTIVE_S,
            bytes_max: u64::MAX,
            free_bytes_min: 0,
            manager: PACE,
            loader: PACE,
            about_files: None,
        };
        for word in entry.arguments.iter().skip(1) {
            declared.parameter(entry, &word.text)?;
        }
        Ok(declared)
    }

    fn parameter(&mut self, entry: &Entry, text: &'a str) -> Result<(), Complaint> {
        if text == "memory" {
            self.memory = true;
            return Ok(());
        }
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("invalid parameter \"{text}\"").into());
        };
        if name == "keys_zone" {
            self.named = Some(keys_zone(entry, text, value)?);
            return Ok(());
        }
        self.about_files = self.about_files.or(Some(text));
        let wrong = || format!("invalid {name} value \"{text}\"");
        match name {
            "levels" => {
                self.levels =
                    levels(value).ok_or_else(|| format!("invalid \"levels\" \"{text}\""))?;
            }
            "use_temp_path" => {
                self.use_temporary_folder = value::flag(value).ok_or_else(|| {
                    format!("invalid use_temp_path value \"{text}\", it must be \"on\" or \"off\"")
                })?;
            }
            "inactive" => self.inactive_s = value::seconds(value).ok_or_else(wrong)?,
            "max_size" => self.bytes_max = value::offset(value).ok_or_else(wrong)?,
            "min_free" => self.free_bytes_min = value::offset(value).ok_or_else(wrong)?,
            _ => {
                let (pace, rest) =
                    match (name.strip_prefix("manager_"), name.strip_prefix("loader_")) {
                        (Some(rest), _) => (&mut self.manager, rest),
                        (_, Some(rest)) => (&mut self.loader, rest),
                        _ => return Err(format!("invalid parameter \"{text}\"").into()),
                    };
                match rest {
                    "files" => {
                        let files = value::number(value).and_then(|files| files.try_into().ok());
                        pace.files = files.ok_or_else(wrong)?;
                    }
                    "sleep" => pace.sleep_ms = value::milliseconds(value).ok_or_else(wrong)?,
                    "threshold" => {
                        pace.threshold_ms = value::milliseconds(value).ok_or_else(wrong)?;
                    }
                    _ => return Err(format!("invalid parameter \"{text}\"").into()),
                }
            }
        }
        Ok(())
    }
}

fn keys_zone<'a>(entry: &Entry, text: &str, value: &'a str) -> Result<(&'a str, u64), Complaint> {
    let invalid = || format!("invalid keys zone size \"{text}\"");
    let (name, size) = value.split_once(':').ok_or_else(invalid)?;
    let size_bytes = value::size(size).ok_or_else(invalid)?;
    if size_bytes < ZONE_BYTES_MIN {
        return Err(format!("keys zone \"{text}\" is too small").into());
    }
    if name.is_empty() {
        return Err(no_zone(entry).into());
    }
    Ok((name, size_bytes))
}

/// Up to three lengths of 1 or 2, between colons.
pub(super) fn levels(text: &str) -> Option<Vec<usize>> {
    // No level at all is nginx's default too.
    if text.is_empty() {
        return Some(Vec::new());
    }
    let level = |text: &str| match text {
        "1" => Some(1),
        "2" => Some(2),
        _ => None,
    };
    let levels: Option<Vec<usize>> = text.split(':').map(level).collect();
    levels.filter(|levels| levels.len() <= 3)
}

//! What the main and events contexts say, typed: the process, its user, its lanes.
//!
//! The rows have checked counts and simple types; here stands what needs more than a type. It is
//! read in both processes and must give the same in both.

use std::path::{Path, PathBuf};

use nix::unistd::{Group, User, geteuid};
use turnpike_conf::value::milliseconds;
use turnpike_conf::{Complaint, ConfError, Entry, View, bytes_of};
use turnpike_lane::affinity::{Affinity, CpuSet};
use turnpike_lane::log::{Destination, Level, Spec};
use turnpike_lane::sys::process;
use turnpike_plan::product::Product;

use crate::embedded;
use crate::modules::{self, Standing};
use crate::paths::Paths;
use crate::sandbox::Sandbox;
use crate::variable_names;

/// The user that the serving process runs as if the configuration names none, as in nginx.
const USER_DEFAULT: &str = "nobody";
/// That user's group: of the same name where there is one, else Debian's.
const GROUPS_DEFAULT: [&str; 2] = ["nobody", "nogroup"];
/// What the control socket's name has instead of the pid file's `.pid`.
const CONTROL_EXTENSION: &str = "control";
/// What the socket has instead, at which a serving process is found whose master is gone.
const ADOPTION_EXTENSION: &str = "adopt";
/// More lanes than any machine has CPUs: a bound for what a typing error can start (nginx's own).
const LANES_MAX: usize = 1024;

/// Silence of a lane after which others accept for it: a lane whose CPU somebody else has for a few
/// time slices comes round sooner, and clients hardly notice so much. A false alarm costs some
/// system calls of lanes that work; the log is told later.
const LANE_RESCUE_TIMEOUT_MS: u64 = 50;
/// Less is the time of ordinary work.
const LANE_RESCUE_TIMEOUT_MS_MIN: u64 = 20;

/// A user and group to become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The user's name, for its supplementary groups.
    pub name: String,
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

/// What a serving process is started with. A reload that changes anything but the lanes and their
/// CPUs needs a new process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSettings {
    /// The user to become; `None` when the master is not root's.
    pub account: Option<Account>,
    /// How many lanes.
    pub lanes: usize,
    /// Which CPUs each lane runs on; `None` leaves it to the kernel.
    pub affinity: Option<Affinity>,
    /// Limit of open descriptors for each lane.
    pub open_files_max: Option<u64>,
    /// Limit of a core file, in bytes.
    pub core_bytes_max: Option<u64>,
    /// Scheduling priority.
    pub priority: i32,
    /// Current folder.
    pub working_directory: Option<PathBuf>,
    /// `env`: a name to keep, or a name and its value.
    pub environment: Vec<(String, Option<String>)>,
    /// What the process gives up.
    pub sandbox: Sandbox,
}

impl ProcessSettings {
    /// Whether a running serving process can take `new` up. Not where it would have to become
    /// another user, or have again what it has given up.
    pub fn can_become(&self, new: &ProcessSettings) -> bool {
        let mut same = new.clone();
        same.lanes = self.lanes;
        same.affinity.clone_from(&self.affinity);
        *self == same
    }

    /// The CPUs of each lane; empty when lanes are not pinned.
    pub fn homes(&self) -> Vec<CpuSet> {
        let Some(affinity) = &self.affinity else {
            return Vec::new();
        };
        (0..self.lanes)
            .filter_map(|lane| affinity.lane(lane))
            .collect()
    }
}

/// Where the control socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlPath {
    /// Nowhere.
    Off,
    /// Beside the pid file, where one is written; done without where it cannot be had.
    Beside(PathBuf),
    /// Where the configuration says.
    Named(PathBuf),
}

impl ControlPath {
    /// The path, if there is to be one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            ControlPath::Off => None,
            ControlPath::Beside(path) | ControlPath::Named(path) => Some(path),
        }
    }
}

/// What concerns the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Go into the background.
    pub daemon: bool,
    /// Serve in a process of its own.
    pub master_process: bool,
    /// The pid file's full path.
    pub pid_file: PathBuf,
    /// Whether the configuration names the pid file.
    pub pid_file_named: bool,
    /// Where a serving process is found whose master is gone. The built-in configuration writes no
    /// files, and has none.
    pub adoption: Option<PathBuf>,
    /// The control socket.
    pub control: ControlPath,
    /// What the serving process is started with.
    pub process: ProcessSettings,
    /// Longest graceful stop, in milliseconds.
    pub shutdown_timeout_ms: Option<u64>,
    /// How long connections are accepted after QUIT, in milliseconds.
    pub shutdown_delay_ms: Option<u64>,
    /// Silence after which other lanes look after a lane's connections, in milliseconds; `None`:
    /// never.
    pub lane_rescue_timeout_ms: Option<u64>,
    /// The main context's error logs, with nginx's default where it adds one.
    pub error_logs: Vec<Spec>,
    /// The name that the server goes by.
    pub product: Product,
    /// What is worth a warning.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the main and events contexts; what is wrong goes into `errors`.
    pub fn read(root: View<'_>, paths: &Paths, errors: &mut Vec<ConfError>) -> Settings {
        let mut reader = Reader {
            root,
            errors,
            warnings: Vec::new(),
        };
        reader.check_modules();
        reader.check_thread_pools();
        let product = product(root, paths);
        reader.check_env_subst(product);
        let process = reader.process(paths);
        let error_logs = reader.error_logs(paths);
        reader.check_events();
        let lane_rescue_timeout_ms = reader.lane_rescue_timeout_ms();
        let pid_file = pid_path(root, paths);
        let pid_file_named = root.own("pid").is_some();
        let is_placed = pid_file_named || !paths.embedded;
        Settings {
            adoption: is_placed.then(|| pid_file.with_extension(ADOPTION_EXTENSION)),
            daemon: root.flag("daemon"),
            master_process: root.flag("master_process"),
            control: control_path(root, paths),
            pid_file,
            pid_file_named,
            process,
            shutdown_delay_ms: root.try_milliseconds("shutdown_delay"),
            shutdown_timeout_ms: root.try_milliseconds("worker_shutdown_timeout"),
            lane_rescue_timeout_ms,
            error_logs,
            product,
            warnings: reader.warnings,
        }
    }
}

/// The name that the server goes by: what the configuration says, else the program's.
fn product(root: View<'_>, paths: &Paths) -> Product {
    match root.try_choice("compatibility") {
        Some("nginx") => Product::Nginx,
        Some(_) => Product::Turnpike,
        None => paths.product,
    }
}

struct Reader<'a, 'b> {
    root: View<'a>,
    errors: &'b mut Vec<ConfError>,
    warnings: Vec<String>,
}

impl<'a> Reader<'a, '_> {
    fn fail(&mut self, entry: &Entry, message: impl Into<Complaint>) {
        self.errors.push(self.root.error(entry.span, message));
    }

    fn warn(&mut self, entry: &Entry, message: &str) {
        self.warnings
            .push(self.root.error(entry.span, message).to_string());
    }

    /// Modules are built in: a line that loads one of them has nothing to do.
    fn check_modules(&mut self) {
        for entry in self.root.own_all("load_module") {
            let file = entry.argument(0);
            match modules::standing(file) {
                Standing::Present => {}
                Standing::Absent => self.warn(
                    entry,
                    &format!("module \"{file}\" is not supported yet: its directives are refused"),
                ),
                Standing::Unknown => self.fail(
                    entry,
                    format!(
                        "module \"{file}\" cannot be loaded: this module is not built in; remove \
                         the line and the directives that need it"
                    ),
                ),
            }
        }
    }

    /// Names of variables would mean two things; nginx knows no such directive.
    fn check_env_subst(&mut self, product: Product) {
        for entry in self.root.own_all("env_subst") {
            if product == Product::Nginx {
                self.fail(entry, "unknown directive \"env_subst\"");
            }
            for word in entry.arguments.iter() {
                let name = word.text.to_ascii_lowercase();
                if variable_names::is_variable(&name) {
                    let message = format!(
                        "\"{}\" is also a variable: give the environment variable another name",
                        word.text
                    );
                    self.fail(entry, message);
                }
            }
        }
    }

    fn check_thread_pools(&mut self) {
        for entry in self.root.own_all("thread_pool") {
            let mut threads = false;
            for word in entry.arguments.iter().skip(1) {
                let number = |name: &str| {
                    let text = word.text.strip_prefix(name)?;
                    text.parse::<u32>().ok().filter(|number| *number > 0)
                };
                if number("threads=").is_some() {
                    threads = true;
                } else if word
                    .text
                    .strip_prefix("max_queue=")
                    .is_none_or(|n| n.parse::<u32>().is_err())
                {
                    let kind = match word.text.split_once('=') {
                        Some(("threads", _)) => "invalid threads value",
                        Some(("max_queue", _)) => "invalid max_queue value",
                        _ => "invalid parameter",
                    };
                    self.fail(entry, format!("{kind} \"{}\"", word.text));
                }
            }
            if !threads {
                let name = entry.argument(0);
                self.fail(
                    entry,
                    format!("\"threads\" parameter is required for \"{name}\""),
                );
            }
        }
    }

    fn process(&mut self, paths: &Paths) -> ProcessSettings {
        let lanes = self.lanes(paths);
        ProcessSettings {
            account: self.account(),
            lanes,
            affinity: self.affinity(lanes),
            open_files_max: self
                .root
                .try_number("worker_rlimit_nofile")
                .map(i64::unsigned_abs),
            core_bytes_max: self.root.try_offset("worker_rlimit_core"),
            priority: self.priority(),
            working_directory: self.root.try_text("working_directory").map(PathBuf::from),
            environment: self.environment(),
            sandbox: match self.root.try_choice("sandbox") {
                Some("on") => Sandbox::On,
                Some("required") => Sandbox::Required,
                _ => Sandbox::Off,
            },
        }
    }

    fn lanes(&mut self, paths: &Paths) -> usize {
        let Some(entry) = self.root.own("worker_processes") else {
            return 1;
        };
        if entry.argument(0) == "auto" {
            return paths.cpu_count.clamp(1, LANES_MAX);
        }
        match turnpike_conf::value::number(entry.argument(0)) {
            Some(number) => match usize::try_from(number) {
                Ok(number) if number <= LANES_MAX => number.max(1),
                _ => {
                    let message = format!("no more than {LANES_MAX} worker processes are started");
                    self.warn(entry, &message);
                    LANES_MAX
                }
            },
            None => {
                self.fail(entry, "\"worker_processes\" directive invalid value");
                1
            }
        }
    }

    fn affinity(&mut self, lanes: usize) -> Option<Affinity> {
        let entry = self.root.own("worker_cpu_affinity")?;
        let words: Vec<&str> = entry
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        match Affinity::parse(&words, process::cpu_count()) {
            Ok(affinity) => {
                if matches!(&affinity, Affinity::Masks(m) if m.len() != 1 && m.len() != lanes) {
                    self.warnings.push(
                        "the number of \"worker_processes\" is not equal to the number of \
                         \"worker_cpu_affinity\" masks, using last mask for remaining worker \
                         processes"
                            .to_owned(),
                    );
                }
                Some(affinity)
            }
            Err(error) => {
                self.fail(entry, error.message());
                None
            }
        }
    }

    fn priority(&mut self) -> i32 {
        let Some(entry) = self.root.own("worker_priority") else {
            return 0;
        };
        entry.argument(0).parse().unwrap_or_else(|_| {
            self.fail(entry, "\"worker_priority\" directive invalid number");
            0
        })
    }

    fn lane_rescue_timeout_ms(&mut self) -> Option<u64> {
        let Some(entry) = self.root.own("lane_rescue_timeout") else {
            return Some(LANE_RESCUE_TIMEOUT_MS);
        };
        if entry.argument(0) == "off" {
            return None;
        }
        let time_ms =
            milliseconds(entry.argument(0)).filter(|ms| *ms >= LANE_RESCUE_TIMEOUT_MS_MIN);
        if time_ms.is_none() {
            self.fail(entry, "\"lane_rescue_timeout\" directive invalid value");
        }
        time_ms
    }

    fn environment(&self) -> Vec<(String, Option<String>)> {
        let variable = |entry: &Entry| match entry.argument(0).split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (entry.argument(0).to_owned(), None),
        };
        self.root.own_all("env").map(variable).collect()
    }

    fn account(&mut self) -> Option<Account> {
        let entry = self.root.own("user");
        if !geteuid().is_root() {
            if let Some(entry) = entry {
                self.warn(
                    entry,
                    "the \"user\" directive makes sense only if the master process runs with \
                     super-user privileges, ignored",
                );
            }
            return None;
        }
        let found = match entry {
            Some(entry) => {
                let user = entry.argument(0);
                let group = entry
                    .arguments
                    .get(1)
                    .map_or(user, |word| word.text.as_str());
                find_account(user, &[group])
            }
            None => find_account(USER_DEFAULT, &GROUPS_DEFAULT),
        };
        match (found, entry) {
            (Ok(account), _) => return Some(account),
            (Err(message), Some(entry)) => self.fail(entry, message),
            (Err(message), None) => self.errors.push(ConfError::unplaced(message)),
        }
        None
    }

    fn error_logs(&mut self, paths: &Paths) -> Vec<Spec> {
        let mut specs = Vec::new();
        for entry in self.root.own_all("error_log") {
            let words: Vec<&str> = entry
                .arguments
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            match Spec::parse(&words, &paths.prefix) {
                Ok(spec) => specs.push(spec),
                Err(error) => self.fail(entry, String::from(error)),
            }
        }
        let is_syslog = |spec: &Spec| matches!(spec.destination, Destination::Syslog(_));
        if specs.iter().all(is_syslog) {
            let destination = match &paths.error_log {
                Some(path) => Destination::File(path.clone()),
                None => Destination::Stderr,
            };
            specs.push(Spec::new(destination, Level::Error));
        }
        specs
    }

    fn check_events(&mut self) {
        let events = self.root.children("events").next().unwrap_or(self.root);
        if let Some(entry) = events
            .own("use")
            .filter(|entry| entry.argument(0) != "epoll")
        {
            self.fail(
                entry,
                format!("invalid event type \"{}\"", entry.argument(0)),
            );
        }
    }
}

/// The `pid` directive's path, or the default place.
fn pid_path(root: View<'_>, paths: &Paths) -> PathBuf {
    match root.own("pid") {
        Some(entry) => paths.under_prefix(entry.argument(0)),
        None => paths.default_place(root.text("pid"), None),
    }
}

/// The `control` directive's path, or the one beside the pid file. The built-in configuration
/// writes no pid file; its socket has a place of its own.
fn control_path(root: View<'_>, paths: &Paths) -> ControlPath {
    match root.try_text("control") {
        Some("off") => ControlPath::Off,
        Some(path) => ControlPath::Named(paths.under_prefix(path)),
        None if paths.embedded => ControlPath::Beside(embedded::control_path()),
        None => {
            let pid_file = pid_path(root, paths);
            ControlPath::Beside(pid_file.with_extension(CONTROL_EXTENSION))
        }
    }
}

/// Looks a user up, and the first of `groups` that exists.
fn find_account(user: &str, groups: &[&str]) -> Result<Account, String> {
    let known = |text: &str| String::from_utf8(bytes_of(text)).ok();
    let name = known(user).unwrap_or_default();
    let found = User::from_name(&name).ok().flatten();
    let found = found.ok_or_else(|| format!("getpwnam(\"{user}\") failed"))?;
    let group = groups
        .iter()
        .find_map(|group| Group::from_name(&known(group)?).ok().flatten());
    let missing = || format!("getgrnam(\"{}\") failed", groups.first().unwrap_or(&""));
    let group = group.ok_or_else(missing)?;
    Ok(Account {
        name,
        user: found.uid.as_raw(),
        group: group.gid.as_raw(),
    })
}

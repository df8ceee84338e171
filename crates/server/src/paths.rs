//! Where files are: nginx's rules for the prefix, the configuration file and the error log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_lane::sys::process;
use turnpike_plan::product::Product;

use crate::cli::Options;
use crate::title;

/// The prefix when `-p` is not given.
pub const PREFIX_DEFAULT: &str = "/usr/local/turnpike/";
/// The configuration file under the prefix when `-c` is not given.
pub const CONFIGURATION_DEFAULT: &str = "conf/nginx.conf";
/// The error log under the prefix when neither `-e` nor the configuration names one.
pub const ERROR_LOG_DEFAULT: &str = "logs/error.log";
/// The folder under the prefix where logs and the pid file stand by default.
const LOG_FOLDER: &str = "logs";
/// The configuration's name when it is the built-in one.
pub const EMBEDDED_NAME: &str = "built-in.conf";

/// The folder under the error log's default place, in an installation under `/usr` or `/usr/local`.
const LOGS_INSTALLED: &str = "/var/log";

/// The folders for temporary files: their names in nginx's `configure`, and below the prefix.
const TEMPORARY_FOLDERS: &[(&str, &str)] = &[
    ("client-body", "client_body_temp"),
    ("proxy", "proxy_temp"),
    ("fastcgi", "fastcgi_temp"),
    ("uwsgi", "uwsgi_temp"),
    ("scgi", "scgi_temp"),
];

/// Where this program looks for what the command line does not name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The prefix.
    pub prefix: PathBuf,
    /// The configuration file.
    pub configuration: PathBuf,
    /// The error log until the configuration names one.
    pub error_log: PathBuf,
    /// The name of the folders of an installation; `None` for a program outside of one.
    pub installed: Option<&'static str>,
}

impl Layout {
    /// The layout of the running program.
    pub fn current() -> Layout {
        let program = std::env::current_exe().unwrap_or_default();
        let name = title::program();
        let name = Path::new(&name).file_name().unwrap_or_default();
        Layout::of(&program, name, &|path| path.exists())
    }

    /// The places under nginx's name as nginx's `configure` was told them: tools read them in `-V`.
    /// Empty under another name.
    pub fn configure_arguments(&self) -> String {
        if self.installed != Some("nginx") {
            return String::new();
        }
        let text = |path: &Path| path.display().to_string();
        let place = |path| text(&Places::Nginx.place(&self.prefix, path, "www-data"));
        let mut arguments = format!(
            " --prefix={} --conf-path={} --error-log-path={} --http-log-path={} --pid-path={}",
            text(&self.prefix).trim_end_matches('/'),
            text(&self.configuration),
            text(&self.error_log),
            place("logs/access.log"),
            place("logs/nginx.pid"),
        );
        for (option, folder) in TEMPORARY_FOLDERS {
            let folder = place(folder);
            arguments.push_str(&format!(" --http-{option}-temp-path={folder}"));
        }
        arguments
    }

    /// The layout of a program file that is called by a name: packages install it as
    /// `PREFIX/sbin/turnpike`, with its own files in `PREFIX/share/turnpike`. Called `nginx` it
    /// uses nginx's places where these are there.
    fn of(program: &Path, name: &OsStr, exists: &dyn Fn(&Path) -> bool) -> Layout {
        let folder = program.parent();
        let folder = folder.filter(|folder| folder.file_name() == Some(OsStr::new("sbin")));
        let root = folder.and_then(Path::parent);
        let Some(root) = root.filter(|root| exists(&root.join("share/turnpike"))) else {
            return Layout {
                prefix: PathBuf::from(PREFIX_DEFAULT),
                configuration: PathBuf::from(CONFIGURATION_DEFAULT),
                error_log: PathBuf::from(ERROR_LOG_DEFAULT),
                installed: None,
            };
        };
        let settings = if root == Path::new("/usr") {
            PathBuf::from("/etc")
        } else {
            root.join("etc")
        };
        let nginx = settings.join("nginx/nginx.conf");
        let name = if name == "nginx" && exists(&nginx) {
            "nginx"
        } else {
            "turnpike"
        };
        let mut prefix = root.join("share").join(name).into_os_string();
        prefix.push("/");
        Layout {
            prefix: prefix.into(),
            configuration: settings.join(name).join("nginx.conf"),
            error_log: Path::new(LOGS_INSTALLED).join(name).join("error.log"),
            installed: Some(name),
        }
    }
}

/// The places of files and folders that the configuration does not name. A path that it names is
/// never replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Places {
    /// Below the prefix, as with nginx from source.
    Prefix,
    /// The places that Debian's nginx has compiled in, which its package makes.
    Nginx,
    /// The places of our packages.
    Package,
    /// The places of root without an installation and a prefix: what lanes write is in folders of
    /// the serving user's, everything else below the prefix.
    Unpackaged,
    /// This folder for what lanes write, since the starting user cannot write below the prefix;
    /// everything else below the prefix.
    Folder(PathBuf),
}

/// The serving user of our packages.
const PACKAGE_USER: &str = "turnpike";

impl Places {
    /// The places of the running program.
    pub fn current() -> Places {
        Places::of(&Layout::current())
    }

    /// The places of a layout, for the user who starts the program.
    fn of(layout: &Layout) -> Places {
        let is_root = nix::unistd::geteuid().is_root();
        match layout.installed {
            Some("nginx") => Places::Nginx,
            Some(_) if is_root => Places::Package,
            None if is_writable(&layout.prefix) => Places::Prefix,
            None if is_root => Places::Unpackaged,
            Some(_) | None => Places::Folder(user_folder()),
        }
    }

    /// The place of the path that nginx from source has below the prefix. A folder that lanes write
    /// to belongs to the user that serves, so servers of two users have no such folder in common.
    pub fn place(&self, prefix: &Path, path: &str, user: &str) -> PathBuf {
        let temporary = path.strip_suffix("_temp");
        let log = path.strip_prefix("logs/");
        let own = match self {
            Places::Package if user == PACKAGE_USER => PACKAGE_USER.to_owned(),
            _ => format!("turnpike-{user}"),
        };
        match (self, log, temporary) {
            (Places::Prefix, ..) => prefix.join(path),
            (Places::Unpackaged | Places::Folder(_), Some(_), _) => prefix.join(path),
            (Places::Folder(folder), ..) => folder.join(path),
            (Places::Nginx, Some("nginx.pid"), _) => PathBuf::from("/run/nginx.pid"),
            (Places::Nginx, Some(log), _) => Path::new(LOGS_INSTALLED).join("nginx").join(log),
            (Places::Nginx, _, Some("client_body")) => PathBuf::from("/var/lib/nginx/body"),
            (Places::Nginx, _, Some(name)) => Path::new("/var/lib/nginx").join(name),
            (Places::Nginx, ..) => Path::new("/var/lib/nginx").join(path),
            (Places::Package, Some("nginx.pid"), _) => PathBuf::from("/run/turnpike/turnpike.pid"),
            (Places::Package, Some(log), _) => {
                Path::new(LOGS_INSTALLED).join(PACKAGE_USER).join(log)
            }
            (_, _, Some(name)) => Path::new("/var/cache").join(own).join(name),
            _ => Path::new("/var/lib").join(own).join(path),
        }
    }

    /// The mode of the folders above a default one, where they are made too; `None`: they must be
    /// there, as the prefix must.
    pub fn mode_above(&self) -> Option<u32> {
        match self {
            Places::Prefix => None,
            Places::Nginx | Places::Package | Places::Unpackaged => Some(0o755),
            Places::Folder(_) => Some(0o700),
        }
    }
}

/// Whether this user can make files in a folder.
fn is_writable(folder: &Path) -> bool {
    nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// The path in a variable of the environment, if it is a whole one: others are ignored, as the XDG
/// base directory specification has it.
pub fn absolute_variable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

/// The folder of an ordinary user's temporary files: `$XDG_CACHE_HOME/turnpike`, else
/// `~/.cache/turnpike`. Who has no home that can be written has one among temporary files, which
/// nobody else may own.
fn user_folder() -> PathBuf {
    let home = absolute_variable("HOME").filter(|home| is_writable(home));
    let cache = absolute_variable("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
    match cache {
        Some(cache) => cache.join("turnpike"),
        None => std::env::temp_dir().join(format!("turnpike-{}", nix::unistd::geteuid())),
    }
}

/// The name of a configuration that is read from standard input, in the prefix.
pub const STANDARD_INPUT: &str = "-";

/// A configuration that is in no file: it was given once, and cannot be read again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// Texts by their paths: the configuration, and what it includes. Others are on the disk.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Where it came from, for messages.
    pub from: &'static str,
    /// What is said when it is served.
    pub greeting: Option<String>,
}

/// What command line and name of the program say of a configuration before it is read: where its
/// relative paths start, and whose name it goes by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    /// `-p`: logs, the pid file, roots.
    pub prefix: PathBuf,
    /// The configuration file's full path.
    pub configuration: PathBuf,
    /// Whether the configuration is the built-in one.
    pub embedded: bool,
    /// The configuration where it is in no file. Only the master has it.
    pub given: Option<Arc<Given>>,
    /// The error log until the configuration names one; `None`: standard error.
    pub error_log: Option<PathBuf>,
    /// The server's name, unless the configuration says otherwise.
    pub product: Product,
    /// The CPUs that the master could use at once: the lanes of `worker_processes auto`. The
    /// serving process cannot always see them from its sandbox.
    pub cpu_count: usize,
    /// Where files and folders are that the configuration does not name.
    pub places: Places,
    /// The name of the user that serves, where the master has found it: the serving process cannot
    /// always look it up in its sandbox.
    pub user: Option<String>,
}

impl Paths {
    /// Finds the configuration: `-c`, else the prefix's own, else the built-in one. Whoever gives
    /// `-p` or `-c` means a file: if it is missing, opening it says so.
    pub fn of(options: &Options) -> Paths {
        let (layout, places) = match &options.prefix {
            None => {
                let layout = Layout::current();
                let places = Places::of(&layout);
                (layout, places)
            }
            Some(prefix) => {
                let layout = Layout {
                    prefix: PathBuf::from(prefix),
                    configuration: PathBuf::from(CONFIGURATION_DEFAULT),
                    error_log: PathBuf::from(ERROR_LOG_DEFAULT),
                    installed: None,
                };
                (layout, Places::Prefix)
            }
        };
        let prefix = layout.prefix;
        let (file, is_named) = match &options.configuration {
            Some(file) => (PathBuf::from(file), true),
            None => (layout.configuration, false),
        };
        let mut configuration = prefix.join(file);
        let given = options.standard_input.as_ref().map(|text| {
            let text = (configuration.clone(), text.clone());
            Arc::new(Given {
                files: [text].into_iter().collect(),
                from: "standard input",
                greeting: None,
            })
        });
        let embedded = !is_named && options.prefix.is_none() && !configuration.exists();
        let mut error_log = match options.error_log.as_ref().map(|name| name.as_bytes()) {
            Some(b"stderr" | b"") => None,
            Some(name) => Some(prefix.join(OsStr::from_bytes(name))),
            None => Some(prefix.join(layout.error_log)),
        };
        if embedded {
            configuration = PathBuf::from(EMBEDDED_NAME);
            error_log = error_log.filter(|_| options.error_log.is_some());
        }
        Paths {
            prefix,
            configuration,
            embedded,
            given,
            error_log,
            product: Product::of_program(&title::program()),
            cpu_count: process::usable_cpu_count(),
            places,
            user: None,
        }
    }

    /// The place of a file or folder that the configuration does not name, by its path below the
    /// prefix and the user that serves as the configuration has it.
    pub fn default_place(&self, path: &str, user: Option<&str>) -> PathBuf {
        let user = self.user.as_deref().or(user).unwrap_or("root");
        self.places.place(&self.prefix, path, user)
    }

    /// The text that was read from standard input, if the configuration was.
    pub fn standard_input(&self) -> Option<&[u8]> {
        let name = self.configuration.file_name();
        let given = self.given.as_ref();
        let given = given.filter(|_| name == Some(OsStr::new(STANDARD_INPUT)))?;
        given.files.get(&self.configuration).map(Vec::as_slice)
    }

    /// The full path of a file that the configuration names.
    pub fn under_prefix(&self, path: impl AsRef<Path>) -> PathBuf {
        self.prefix.join(path)
    }

    /// Opens a file, making the folder for logs under the prefix first when only that is missing:
    /// in a new prefix everything that is not named stands there.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open_with_folder<T>(
        &self,
        path: &Path,
        open: impl Fn(&Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let opened = open(path);
        let is_missing = opened
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        let folder = self.log_folder();
        if is_missing && path.parent() == Some(&folder) && fs::create_dir(&folder).is_ok() {
            return open(path);
        }
        opened
    }

    /// The folder for logs under the prefix.
    pub fn log_folder(&self) -> PathBuf {
        self.prefix.join(LOG_FOLDER)
    }

    /// The configuration's path as messages show it.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.configuration.as_os_str().as_bytes()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_from_the_program_and_its_name() {
        let shared = ["/usr/share/turnpike", "/usr/local/share/turnpike"];
        let with_nginx = [shared[0], shared[1], "/etc/nginx/nginx.conf"];
        let cases: &[(&str, &str, &[&str], [&str; 3])] = &[
            (
                "/src/target/debug/turnpike",
                "turnpike",
                &shared,
                ["/usr/local/turnpike/", "conf/nginx.conf", "logs/error.log"],
            ),
            (
                "/usr/sbin/turnpike",
                "turnpike",
                &with_nginx,
                [
                    "/usr/share/turnpike/",
                    "/etc/turnpike/nginx.conf",
                    "/var/log/turnpike/error.log",
                ],
            ),
            (
                "/usr/sbin/turnpike",
                "nginx",
                &with_nginx,
                [
                    "/usr/share/nginx/",
                    "/etc/nginx/nginx.conf",
                    "/var/log/nginx/error.log",
                ],
            ),
            (
                "/usr/sbin/turnpike",
                "nginx",
                &shared,
                [
                    "/usr/share/turnpike/",
                    "/etc/turnpike/nginx.conf",
                    "/var/log/turnpike/error.log",
                ],
            ),
            (
                "/usr/local/sbin/turnpike",
                "turnpike",
                &shared,
                [
                    "/usr/local/share/turnpike/",
                    "/usr/local/etc/turnpike/nginx.conf",
                    "/var/log/turnpike/error.log",
                ],
            ),
            (
                "/usr/sbin/turnpike",
                "turnpike",
                &[],
                ["/usr/local/turnpike/", "conf/nginx.conf", "logs/error.log"],
            ),
        ];
        for (program, name, there, [prefix, configuration, error_log]) in cases {
            let exists = |path: &Path| there.iter().any(|one| Path::new(one) == path);
            let layout = Layout::of(Path::new(program), OsStr::new(name), &exists);
            let places = [&layout.prefix, &layout.configuration, &layout.error_log];
            assert_eq!(
                places,
                [prefix, configuration, error_log].map(Path::new),
                "{program} {name}"
            );
            // Folders are compared as text with a slash at the end.
            assert!(layout.prefix.as_os_str().as_bytes().ends_with(b"/"));
        }
    }

    /// A path below the prefix, and its place with Debian's nginx, in our packages for their user
    /// and for another one, for root without an installation, and for who cannot write below the
    /// prefix.
    const PLACES: &[[&str; 6]] = &[
        [
            "logs/nginx.pid",
            "/run/nginx.pid",
            "/run/turnpike/turnpike.pid",
            "/run/turnpike/turnpike.pid",
            "/p/logs/nginx.pid",
            "/p/logs/nginx.pid",
        ],
        [
            "logs/access.log",
            "/var/log/nginx/access.log",
            "/var/log/turnpike/access.log",
            "/var/log/turnpike/access.log",
            "/p/logs/access.log",
            "/p/logs/access.log",
        ],
        [
            "client_body_temp",
            "/var/lib/nginx/body",
            "/var/cache/turnpike/client_body",
            "/var/cache/turnpike-www-data/client_body",
            "/var/cache/turnpike-www-data/client_body",
            "/f/client_body_temp",
        ],
        [
            "scgi_temp",
            "/var/lib/nginx/scgi",
            "/var/cache/turnpike/scgi",
            "/var/cache/turnpike-www-data/scgi",
            "/var/cache/turnpike-www-data/scgi",
            "/f/scgi_temp",
        ],
        [
            "acme_example",
            "/var/lib/nginx/acme_example",
            "/var/lib/turnpike/acme_example",
            "/var/lib/turnpike-www-data/acme_example",
            "/var/lib/turnpike-www-data/acme_example",
            "/f/acme_example",
        ],
    ];

    #[test]
    fn what_is_not_named_has_the_places_of_the_installation() {
        let folder = Places::Folder(PathBuf::from("/f"));
        for [path, nginx, package, other, unpackaged, unwritable] in PLACES {
            let below = format!("/p/{path}");
            for (places, user, expected) in [
                (&Places::Prefix, "www-data", below.as_str()),
                (&Places::Nginx, "www-data", nginx),
                (&Places::Package, "turnpike", package),
                (&Places::Package, "www-data", other),
                (&Places::Unpackaged, "www-data", unpackaged),
                (&folder, "www-data", unwritable),
            ] {
                let place = places.place(Path::new("/p"), path, user);
                assert_eq!(place, Path::new(expected), "{places:?} {path}");
            }
        }
    }
}

//! Where files are: nginx's rules for the prefix, the configuration file and the error log.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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

/// Where this program looks for what the command line does not name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The prefix.
    pub prefix: PathBuf,
    /// The configuration file.
    pub configuration: PathBuf,
    /// The error log until the configuration names one.
    pub error_log: PathBuf,
}

impl Layout {
    /// The layout of the running program.
    pub fn current() -> Layout {
        let program = std::env::current_exe().unwrap_or_default();
        let name = title::program();
        let name = Path::new(&name).file_name().unwrap_or_default();
        Layout::of(&program, name, &|path| path.exists())
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
            };
        };
        let settings = match root == Path::new("/usr") {
            true => PathBuf::from("/etc"),
            false => root.join("etc"),
        };
        let nginx = settings.join("nginx/nginx.conf");
        let name = match name == "nginx" && exists(&nginx) {
            true => "nginx",
            false => "turnpike",
        };
        let mut prefix = root.join("share").join(name).into_os_string();
        prefix.push("/");
        Layout {
            prefix: prefix.into(),
            configuration: settings.join(name).join("nginx.conf"),
            error_log: Path::new(LOGS_INSTALLED).join(name).join("error.log"),
        }
    }
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
    /// The error log until the configuration names one; `None`: standard error.
    pub error_log: Option<PathBuf>,
    /// The server's name, unless the configuration says otherwise.
    pub product: Product,
    /// The CPUs that the master could use at once: the lanes of `worker_processes auto`. The
    /// serving process cannot always see them from its sandbox.
    pub cpu_count: usize,
}

impl Paths {
    /// Finds the configuration: `-c`, else the prefix's own, else the built-in one. Whoever gives
    /// `-p` or `-c` means a file: if it is missing, opening it says so.
    pub fn of(options: &Options) -> Paths {
        let layout = match &options.prefix {
            None => Layout::current(),
            Some(prefix) => Layout {
                prefix: PathBuf::from(prefix),
                configuration: PathBuf::from(CONFIGURATION_DEFAULT),
                error_log: PathBuf::from(ERROR_LOG_DEFAULT),
            },
        };
        let prefix = layout.prefix;
        let (file, given) = match &options.configuration {
            Some(file) => (PathBuf::from(file), true),
            None => (layout.configuration, false),
        };
        let mut configuration = prefix.join(file);
        let embedded = !given && options.prefix.is_none() && !configuration.exists();
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
            error_log,
            product: Product::of_program(&title::program()),
            cpu_count: process::usable_cpu_count(),
        }
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
            let expected = Layout {
                prefix: prefix.into(),
                configuration: configuration.into(),
                error_log: error_log.into(),
            };
            assert_eq!(layout, expected, "{program} {name}");
            // Folders are compared as text with a slash at the end.
            assert!(layout.prefix.as_os_str().as_bytes().ends_with(b"/"));
        }
    }
}

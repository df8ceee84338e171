//! Where files are: nginx's rules for the prefix, the configuration file and the error log.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::cli::Options;

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

/// Where the relative paths of a configuration start.
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
}

impl Paths {
    /// Finds the configuration: `-c`, else the prefix's own, else the built-in one.
    pub fn of(options: &Options) -> Paths {
        let prefix = options
            .prefix
            .clone()
            .unwrap_or_else(|| OsString::from(PREFIX_DEFAULT));
        let prefix = PathBuf::from(prefix);
        let (file, given) = match &options.configuration {
            Some(file) => (file.clone(), true),
            None => (OsString::from(CONFIGURATION_DEFAULT), false),
        };
        let mut configuration = prefix.join(file);
        let embedded = !given && !configuration.exists();
        let mut error_log = match options.error_log.as_ref().map(|name| name.as_bytes()) {
            Some(b"stderr" | b"") => None,
            Some(name) => Some(prefix.join(OsStr::from_bytes(name))),
            None => Some(prefix.join(ERROR_LOG_DEFAULT)),
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
        let folder = self.prefix.join(LOG_FOLDER);
        if is_missing && path.parent() == Some(&folder) && fs::create_dir(&folder).is_ok() {
            return open(path);
        }
        opened
    }

    /// The configuration's path as messages show it.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.configuration.as_os_str().as_bytes()).into_owned()
    }
}

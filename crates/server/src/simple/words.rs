//! The words behind `serve`, `proxy` and `php`, and what they mean together.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use turnpike_plan::public_name;

/// The ports without `--listen`.
const PORT_PLAIN: u16 = 8080;
const PORT_SECURE: u16 = 8443;
pub(super) const PORT_HTTP: u16 = 80;
pub(super) const PORT_HTTPS: u16 = 443;

/// Where Debian and its like have the sockets of php-fpm.
const FPM_FOLDER: &str = "/run/php";

/// What `turnpike serve --help` says.
pub(crate) const SERVE_HELP: &str = "\
Usage: turnpike serve [OPTION...] [DIR]

Serves the files of a folder (the current one if none is named) on http://127.0.0.1:8080/ until
Ctrl+C. Files and folders whose name begins with a dot are hidden, except .well-known.

Options:
  --list           : show a list of the files where a folder has no index.html
  --listen ADDRESS : listen at this PORT, ADDRESS or ADDRESS:PORT, for example 0.0.0.0:80
  --https HOST     : serve HTTPS under this name: a public one with a certificate of Let's Encrypt
                     on ports 80 and 443 of all addresses; localhost and others with one of its own
  --print          : print the equivalent nginx.conf, and exit
";

/// What `turnpike proxy --help` says.
pub(crate) const PROXY_HELP: &str = "\
Usage: turnpike proxy [OPTION...] FROM TO...

Passes requests on to an application, or to several in turn, WebSockets included. FROM is where
clients come: a PORT of 127.0.0.1, ADDRESS:PORT, or the name of a host as for --https. TO is
PORT, HOST:PORT, http://HOST:PORT, https://HOST or unix:SOCKET.

Options:
  --https HOST     : serve HTTPS under this name: a public one with a certificate of Let's Encrypt
                     on ports 80 and 443 of all addresses; localhost and others with one of its own
  --print          : print the equivalent nginx.conf, and exit
";

/// What `turnpike php --help` says.
pub(crate) const PHP_HELP: &str = "\
Usage: turnpike php [OPTION...] DIR

Serves the PHP application of a folder through php-fpm on http://127.0.0.1:8080/ until Ctrl+C.
Paths without a file go to index.php. Names that begin with a dot are hidden, except .well-known.

Options:
  --fpm ADDRESS    : the socket of php-fpm, as HOST:PORT or PATH (default: the one in /run/php)
  --listen ADDRESS : listen at this PORT, ADDRESS or ADDRESS:PORT, for example 0.0.0.0:80
  --https HOST     : serve HTTPS under this name: a public one with a certificate of Let's Encrypt
                     on ports 80 and 443 of all addresses; localhost and others with one of its own
  --print          : print the equivalent nginx.conf, and exit
";

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteOptions {
    pub(super) kind: Kind,
    listen: Option<Listen>,
    /// The host of `--https`, checked: it can stand in a configuration.
    pub(super) https: Option<String>,
    pub(super) prints: bool,
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Serve { folder: PathBuf, lists: bool },
    Proxy { servers: Vec<Upstream> },
    Php { folder: PathBuf, fpm: String },
}

/// An application, as a configuration writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upstream {
    pub(super) is_secure: bool,
    /// `HOST:PORT` or `unix:PATH`.
    pub(super) server: String,
}

impl fmt::Display for Upstream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(out, "{scheme}://{}", self.server)
    }
}

/// Where clients come, as far as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listen {
    address: IpAddr,
    port: Option<u16>,
}

impl SiteOptions {
    /// The address of plain or secure clients; `None`: ports 80 and 443 of all addresses, or of the
    /// one that was named.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        if self.is_public() {
            return None;
        }
        let port = match self.https {
            Some(_) => PORT_SECURE,
            None => PORT_PLAIN,
        };
        Some(match self.listen {
            Some(listen) => (listen.address, listen.port.unwrap_or(port)).into(),
            None => (Ipv4Addr::LOCALHOST, port).into(),
        })
    }

    /// The one address whose ports 80 and 443 a public host uses, if one was named.
    pub(super) fn public_address(&self) -> Option<IpAddr> {
        self.listen.map(|listen| listen.address)
    }

    /// Whether the host of `--https` gets a certificate of a public authority.
    pub(super) fn is_public(&self) -> bool {
        let host = self.https.as_deref();
        host.is_some_and(|host| public_name::check(host).is_ok())
    }

    /// The host that needs a certificate of our own.
    pub(super) fn self_signed(&self) -> Option<&str> {
        self.https.as_deref().filter(|_| !self.is_public())
    }

    /// What a person opens.
    pub(super) fn url(&self) -> String {
        match (&self.https, self.address()) {
            (Some(host), None) => format!("https://{host}/"),
            (Some(host), Some(address)) => format!("https://{host}:{}/", address.port()),
            (None, Some(address)) => format!("http://{address}/"),
            (None, None) => String::new(),
        }
    }
}

/// The words, sorted.
#[derive(Default)]
struct Sorted {
    free: Vec<OsString>,
    listen: Option<Listen>,
    https: Option<String>,
    fpm: Option<String>,
    lists: bool,
    prints: bool,
}

/// The words behind `serve`.
///
/// # Errors
/// What is wrong with them.
pub(super) fn serve(arguments: &[OsString]) -> Result<SiteOptions, String> {
    let mut sorted = sort(arguments, &["--list", "--listen", "--https", "--print"])?;
    let folder = match sorted.free.len() {
        0 => PathBuf::from("."),
        1 => PathBuf::from(sorted.free.remove(0)),
        _ => return Err("one folder can be named".to_owned()),
    };
    let kind = Kind::Serve {
        folder: existing(&folder)?,
        lists: sorted.lists,
    };
    site(kind, sorted)
}

/// The words behind `php`.
///
/// # Errors
/// What is wrong with them.
pub(super) fn php(arguments: &[OsString]) -> Result<SiteOptions, String> {
    let mut sorted = sort(arguments, &["--fpm", "--listen", "--https", "--print"])?;
    if sorted.free.len() != 1 {
        return Err("name the folder of the application: turnpike php DIR".to_owned());
    }
    let folder = existing(Path::new(&sorted.free.remove(0)))?;
    let fpm = match sorted.fpm.take() {
        Some(text) if text.starts_with('/') => format!("unix:{text}"),
        Some(text) => text,
        None => installed_fpm(Path::new(FPM_FOLDER)).ok_or(
            "php-fpm was not found in /run/php: install and start it (Debian: apt install \
             php-fpm), or name its socket with --fpm",
        )?,
    };
    site(
        Kind::Php {
            folder,
            fpm: plain(&fpm)?,
        },
        sorted,
    )
}

/// The words behind `proxy`.
///
/// # Errors
/// What is wrong with them.
pub(super) fn proxy(arguments: &[OsString]) -> Result<SiteOptions, String> {
    let mut sorted = sort(arguments, &["--https", "--print"])?;
    if sorted.free.len() < 2 {
        return Err(
            "name the address for clients and the application: turnpike proxy FROM TO...".into(),
        );
    }
    let from = text(&sorted.free.remove(0))?;
    match listen(&from) {
        Ok(listen) => sorted.listen = Some(listen),
        Err(_) if sorted.https.is_none() => {
            let host = from.strip_prefix("https://").unwrap_or(&from);
            sorted.https = Some(host.trim_end_matches('/').to_owned());
        }
        Err(message) => return Err(message),
    }
    let servers = sorted.free.iter().map(|word| upstream(&text(word)?));
    let servers = servers.collect::<Result<Vec<Upstream>, String>>()?;
    if servers
        .iter()
        .any(|server| server.is_secure != servers[0].is_secure)
    {
        return Err("either all applications are reached by https://, or none".to_owned());
    }
    site(Kind::Proxy { servers }, sorted)
}

fn site(kind: Kind, sorted: Sorted) -> Result<SiteOptions, String> {
    let site = SiteOptions {
        kind,
        listen: sorted.listen,
        https: sorted.https.as_deref().map(host).transpose()?,
        prints: sorted.prints,
    };
    let has_port = site.listen.is_some_and(|listen| listen.port.is_some());
    if site.is_public() && has_port {
        Err(
            "a public name needs ports 80 and 443, where the authority checks it: leave the port \
             out"
            .to_owned(),
        )
    } else {
        Ok(site)
    }
}

/// Sorts options from other words.
fn sort(arguments: &[OsString], known: &[&str]) -> Result<Sorted, String> {
    let mut sorted = Sorted::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if !word.as_encoded_bytes().starts_with(b"-") {
            sorted.free.push(word.clone());
            continue;
        }
        let word = text(word)?;
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if !known.contains(&name) {
            let near = turnpike_conf::did_you_mean(name, known.iter().copied());
            return Err(format!(
                "unknown option \"{name}\"{}",
                near.unwrap_or_default()
            ));
        }
        let mut value = || match &attached {
            Some(value) => Ok(value.clone()),
            None => text(
                rest.next()
                    .ok_or(format!("option \"{name}\" needs a value"))?,
            ),
        };
        match name {
            "--listen" => sorted.listen = Some(listen(&value()?)?),
            "--https" => sorted.https = Some(value()?),
            "--fpm" => sorted.fpm = Some(value()?),
            _ if attached.is_some() => return Err(format!("option \"{name}\" takes no value")),
            "--list" => sorted.lists = true,
            _ => sorted.prints = true,
        }
    }
    Ok(sorted)
}

fn text(word: &OsStr) -> Result<String, String> {
    let text = word.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("\"{}\" is not UTF-8", word.to_string_lossy()))
}

/// Reads `PORT`, `ADDRESS`, `ADDRESS:PORT` or `:PORT`, which is of all addresses.
fn listen(word: &str) -> Result<Listen, String> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let named = word.replacen("localhost", "127.0.0.1", 1);
    let found = if let Some(port) = port(&named) {
        Some((Ipv4Addr::LOCALHOST.into(), Some(port)))
    } else if let Some(number) = named.strip_prefix(':') {
        port(number).map(|port| (Ipv4Addr::UNSPECIFIED.into(), Some(port)))
    } else if let Ok(address) = named.parse::<SocketAddr>() {
        (address.port() > 0).then(|| (address.ip(), Some(address.port())))
    } else {
        let bare = named.trim_start_matches('[').trim_end_matches(']');
        bare.parse().ok().map(|address| (address, None))
    };
    let (address, port) = found.ok_or_else(|| {
        format!("\"{word}\" is not an address: write PORT, ADDRESS or ADDRESS:PORT")
    })?;
    Ok(Listen { address, port })
}

/// Checks the host of `--https`.
fn host(word: &str) -> Result<String, String> {
    let is_address = word.parse::<IpAddr>().is_ok();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_name = !word.is_empty() && word.bytes().all(fits) && !word.starts_with(['-', '.']);
    if is_address || is_name {
        Ok(word.to_ascii_lowercase())
    } else {
        Err(format!("\"{word}\" is not the name of a host"))
    }
}

/// Reads where an application is.
fn upstream(word: &str) -> Result<Upstream, String> {
    let wrong = || {
        format!(
            "\"{word}\" is not an application: write PORT, HOST:PORT, http://HOST:PORT, \
             https://HOST or unix:SOCKET"
        )
    };
    if word.starts_with("unix:/") {
        let server = plain(word)?;
        return Ok(Upstream {
            is_secure: false,
            server,
        });
    }
    let (is_secure, rest) = match word.split_once("://") {
        Some(("http", rest)) => (false, rest),
        Some(("https", rest)) => (true, rest),
        Some(_) => return Err(wrong()),
        None => (false, word),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let server = match (rest.parse::<u16>(), rest.rsplit_once(':')) {
        (Ok(port), _) => format!("127.0.0.1:{port}"),
        (Err(_), Some((_, port))) if port.parse::<u16>().is_ok() => rest.to_owned(),
        // A port is left out only where the scheme says it.
        _ if !word.contains("://") => return Err(wrong()),
        _ => format!("{rest}:{}", if is_secure { PORT_HTTPS } else { PORT_HTTP }),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if server.bytes().all(fits) && !server.starts_with(':') {
        Ok(Upstream { is_secure, server })
    } else {
        Err(wrong())
    }
}

/// Text that can stand in a configuration as one word.
fn plain(word: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/[]@+".contains(&byte);
    if !word.is_empty() && word.bytes().all(fits) {
        Ok(word.to_owned())
    } else {
        Err(format!("\"{word}\" is no address"))
    }
}

/// The whole path of a folder that is there.
fn existing(folder: &Path) -> Result<PathBuf, String> {
    let shown = folder.display();
    let whole = fs::canonicalize(folder)
        .map_err(|error| format!("\"{shown}\": {}", turnpike_lane::log::Errno(&error)))?;
    if whole.is_dir() {
        Ok(whole)
    } else {
        Err(format!("\"{shown}\" is not a folder"))
    }
}

/// The socket of the newest php-fpm in a folder.
fn installed_fpm(folder: &Path) -> Option<String> {
    let names = fs::read_dir(folder).ok()?.flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let sockets = names.filter(|name| name.contains("fpm") && name.ends_with(".sock"));
    let newest = sockets.max()?;
    Some(format!("unix:{}", folder.join(newest).display()))
}

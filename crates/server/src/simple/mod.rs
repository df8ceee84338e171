//! `turnpike serve`, `turnpike proxy` and `turnpike php`: servers that need no file. Words of the
//! command line become the text of a configuration, which is read, checked and served as any file
//! is: `--print` shows it. Nothing here serves a request.

mod password;
mod self_signed;
mod state_folder;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use turnpike_lane::sys::process;
use turnpike_plan::product::Product;

use crate::master;
use crate::paths::{Given, Paths, Places};
use crate::standard_error::write_standard_error;
use crate::title;
use state_folder::StateFolder;
use words::{Kind, SiteOptions};

pub(crate) use password::{HELP as PASSWORD_HELP, run as password};
pub(crate) use words::{PHP_HELP, PROXY_HELP, SERVE_HELP};

/// Wrong usage.
const EXIT_USAGE: u8 = 1;

/// The name of the text in messages, in the folder of state.
const FILE_NAME: &str = "command-line.conf";

/// Files that the texts include; packages have them beside `nginx.conf`.
const INCLUDED: &[(&str, &str)] = &[
    (
        "mime.types",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../conf/mime.types"
        )),
    ),
    (
        "fastcgi.conf",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../contrib/etc/fastcgi.conf"
        )),
    ),
];

/// `turnpike serve [DIR]`.
pub(crate) fn serve(arguments: &[OsString]) -> ExitCode {
    run("serve", arguments, words::serve)
}

/// `turnpike proxy FROM TO...`.
pub(crate) fn proxy(arguments: &[OsString]) -> ExitCode {
    run("proxy", arguments, words::proxy)
}

/// `turnpike php DIR`.
pub(crate) fn php(arguments: &[OsString]) -> ExitCode {
    run("php", arguments, words::php)
}

type Read = fn(&[OsString]) -> Result<SiteOptions, String>;

fn run(name: &str, arguments: &[OsString], read: Read) -> ExitCode {
    let served = read(arguments).and_then(|site| carry_out(name, arguments, &site));
    served.unwrap_or_else(|message| {
        write_standard_error(&format!("turnpike {name}: {message}\n"));
        ExitCode::from(EXIT_USAGE)
    })
}

fn carry_out(name: &str, arguments: &[OsString], site: &SiteOptions) -> Result<ExitCode, String> {
    let state = StateFolder::of_user();
    let text = text::configuration(site, &state)?;
    if site.prints {
        // Who closes the pipe early has seen enough.
        let _ = std::io::stdout().write_all(text.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let mut line = vec![OsString::from(name)];
    line.extend(arguments.iter().cloned());
    let name = std::env::args_os().next().unwrap_or_default();
    title::take(&name, &line);
    state.prepare()?;
    if let Some(name) = site.self_signed() {
        state.prepare_certificate(name)?;
    }
    let globals = text::globals(site);
    let paths = paths(&state, text, greeting(site, &state));
    Ok(master::serve(&paths, &globals))
}

/// Where everything of such a server is.
fn paths(state: &StateFolder, text: String, greeting: String) -> Paths {
    let prefix = state.folder().to_path_buf();
    let configuration = prefix.join(FILE_NAME);
    let mut files: BTreeMap<_, _> = INCLUDED
        .iter()
        .map(|(name, text)| (prefix.join(name), text.as_bytes().to_vec()))
        .collect();
    files.insert(configuration.clone(), text.into_bytes());
    Paths {
        prefix,
        configuration,
        embedded: false,
        given: Some(Arc::new(Given {
            files,
            from: "the command line",
            greeting: Some(greeting),
        })),
        error_log: None,
        product: Product::of_program(&title::program()),
        cpu_count: process::usable_cpu_count(),
        places: Places::Prefix,
        user: None,
    }
}

/// What is said when clients can come.
fn greeting(site: &SiteOptions, state: &StateFolder) -> String {
    let what = match &site.kind {
        Kind::Serve { folder, .. } => format!("serving {}", folder.display()),
        Kind::Php { folder, .. } => format!("serving {} with PHP", folder.display()),
        Kind::Proxy { servers } => {
            let shown: Vec<String> = servers.iter().map(ToString::to_string).collect();
            format!("passing requests on to {}", shown.join(", "))
        }
    };
    let mut text = format!("turnpike: {what} on {} (Ctrl+C stops)\n", site.url());
    if let Some(name) = site.self_signed() {
        let file = state.certificate(name);
        text.push_str(&format!(
            "turnpike: the certificate is self-signed, so browsers warn once: curl --cacert {}\n",
            file.display()
        ));
    }
    if site.is_public() {
        text.push_str(
            "turnpike: the certificate is ordered from Let's Encrypt, whose terms you thereby \
             accept: https://letsencrypt.org/repository/\n",
        );
    }
    text
}

//! `turnpike serve`, `turnpike proxy` and `turnpike php`: servers that need no file. Words of the
//! command line become the text of a configuration, which is read, checked and served as any file
//! is: `--print` shows it. Nothing here serves a request.

mod password;
mod place;
mod self_signed;
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
use place::Place;
use words::{Kind, Wish};

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

type Read = fn(&[OsString]) -> Result<Wish, String>;

fn run(name: &str, arguments: &[OsString], read: Read) -> ExitCode {
    let served = read(arguments).and_then(|wish| carry_out(name, arguments, &wish));
    served.unwrap_or_else(|message| {
        write_standard_error(&format!("turnpike {name}: {message}\n"));
        ExitCode::from(EXIT_USAGE)
    })
}

fn carry_out(name: &str, arguments: &[OsString], wish: &Wish) -> Result<ExitCode, String> {
    let place = Place::of_user();
    let text = text::configuration(wish, &place)?;
    if wish.prints {
        // Who closes the pipe early has seen enough.
        let _ = std::io::stdout().write_all(text.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let mut line = vec![OsString::from(name)];
    line.extend(arguments.iter().cloned());
    let name = std::env::args_os().next().unwrap_or_default();
    title::take(&name, &line);
    place.prepare()?;
    if let Some(name) = wish.self_signed() {
        place.prepare_certificate(name)?;
    }
    let globals = text::globals(wish);
    let paths = paths(&place, text, greeting(wish, &place));
    Ok(master::serve(&paths, &globals))
}

/// Where everything of such a server is.
fn paths(place: &Place, text: String, greeting: String) -> Paths {
    let prefix = place.folder().to_path_buf();
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
fn greeting(wish: &Wish, place: &Place) -> String {
    let what = match &wish.kind {
        Kind::Serve { folder, .. } => format!("serving {}", folder.display()),
        Kind::Php { folder, .. } => format!("serving {} with PHP", folder.display()),
        Kind::Proxy { servers } => {
            let shown: Vec<String> = servers.iter().map(ToString::to_string).collect();
            format!("passing requests on to {}", shown.join(", "))
        }
    };
    let mut text = format!("turnpike: {what} on {} (Ctrl+C stops)\n", wish.url());
    if let Some(name) = wish.self_signed() {
        let file = place.certificate(name);
        text.push_str(&format!(
            "turnpike: the certificate is self-signed, so browsers warn once: curl --cacert {}\n",
            file.display()
        ));
    }
    if wish.is_public() {
        text.push_str(
            "turnpike: the certificate is ordered from Let's Encrypt, whose terms you accept by \
             this: https://letsencrypt.org/repository/\n",
        );
    }
    text
}

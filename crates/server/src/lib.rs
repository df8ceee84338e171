//! The binary `turnpike`: command line, the list of directive families, master and serving
//! process, reload, signals, privileges.
//!
//! What a request is, and how it is answered, is none of this crate's business: that is behind
//! [`lanes`].

mod adoption;
pub mod channel;
mod check;
pub mod checked;
pub mod cli;
pub mod configuration;
pub mod control;
pub mod embedded;
mod error_output;
pub mod families;
mod hints;
pub mod lanes;
mod manual;
pub mod master;
pub mod modules;
pub mod needs;
pub mod paths;
mod reference;
pub mod sandbox;
mod service;
pub mod serving;
pub mod settings;
mod simple;
mod standard_error;
pub mod subcommands;
mod title;
mod tools;
mod usage_text;
mod variable_names;
mod zone_memory;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::process::ExitCode;

use cli::Options;
use paths::{CONFIGURATION_DEFAULT, ERROR_LOG_DEFAULT, Layout, PREFIX_DEFAULT, STANDARD_INPUT};
use standard_error::write_standard_error;
use turnpike_conf::FILE_BYTES_MAX;
use turnpike_plan::product::{NGINX_VERSION, Product, TURNPIKE_VERSION};

/// The whole program. Descriptors 0 to 2 are open by now: the standard library opens what is
/// closed of them at `/dev/null` before `main`.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    if let Some(product) = title::serving_product() {
        return serving::process_main(product);
    }
    let arguments: Vec<OsString> = arguments.collect();
    let first = arguments.first().and_then(|first| first.to_str());
    if let Some(tool) = first.and_then(subcommands::find) {
        if let Some(help) = subcommands::help_of(tool.name, &arguments[1..]) {
            print!("{help}");
            return ExitCode::SUCCESS;
        }
        return (tool.run)(&arguments[1..]);
    }
    if let Some(code) = control::command_line::run(&arguments) {
        return code;
    }
    if first == Some("help") || arguments.iter().any(|argument| argument == "--help") {
        // Asked for like this it is what a person wants to page through.
        let help = Options {
            help: true,
            ..Options::default()
        };
        print!("{}", version_text(&help));
        return ExitCode::SUCCESS;
    }
    let product = Product::of_program(&title::program());
    let asks_version = arguments.iter().any(|argument| argument == "--version");
    let is_version = matches!(&arguments[..], [only] if only == "version");
    if (asks_version || is_version) && product == Product::Turnpike {
        let version = Options {
            version: true,
            ..Options::default()
        };
        print!("{}", version_text(&version));
        return ExitCode::SUCCESS;
    }
    let mut options = match cli::parse(&arguments) {
        Ok(options) => options,
        Err(message) => {
            write_standard_error(&format!("{}: {message}\n", product.name()));
            if let Some(hint) = message.hint() {
                write_standard_error(&format!("turnpike: {hint}\n"));
            } else if let Some(word) = cli::first_word(&arguments) {
                write_standard_error(&subcommands::hint(&word.to_string_lossy()));
            }
            return ExitCode::FAILURE;
        }
    };
    if options.version {
        write_standard_error(&version_text(&options));
        if !options.test {
            return ExitCode::SUCCESS;
        }
    }
    if !options.test && options.command.is_none() {
        title::take(&name, &arguments);
    }
    if options.configuration.as_deref() == Some(OsStr::new(STANDARD_INPUT)) {
        match standard_input() {
            Ok(text) => options.standard_input = Some(text),
            Err(error) => {
                write_standard_error(&format!("turnpike: -c -: {error}\n"));
                return ExitCode::FAILURE;
            }
        }
    }
    master::main(&options)
}

/// Reads standard input to its end, up to the size of the largest file of a configuration.
fn standard_input() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let input = io::stdin().lock();
    input.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(text)
    }
}

/// The OpenSSL whose directives and words are followed: tools decide by it what they may ask for.
const OPENSSL_INTERFACE: &str = ", configured as with OpenSSL 3.0.0";

/// What `-v`, `-V` and `-h` print. Tools of nginx's users read the first line and the last, under
/// the name `nginx`.
fn version_text(options: &Options) -> String {
    let nginx = format!("nginx version: nginx/{NGINX_VERSION}\n");
    let own = format!("turnpike version: turnpike/{TURNPIKE_VERSION}\n");
    let (mut text, other) = match Product::of_program(&title::program()) {
        Product::Turnpike => (own, nginx),
        Product::Nginx => (nginx, own),
    };
    if options.help {
        let layout = Layout::current();
        let own = cli::HELP
            .replace(PREFIX_DEFAULT, &layout.prefix.to_string_lossy())
            .replace(
                CONFIGURATION_DEFAULT,
                &layout.configuration.to_string_lossy(),
            )
            .replace(ERROR_LOG_DEFAULT, &layout.error_log.to_string_lossy());
        text.push_str(&own);
        text.push_str(&subcommands::help());
        text.push('\n');
    }
    if options.configure {
        text.push_str(&other);
        text.push_str("built with AWS-LC (rustls)");
        let product = Product::of_program(&title::program());
        if product == Product::Nginx {
            text.push_str(OPENSSL_INTERFACE);
        }
        text.push_str("\nTLS SNI support enabled\n");
        text.push_str(&format!(
            "configure arguments: --build={}{}{}\n",
            product.build(),
            Layout::current().configure_arguments(),
            modules::configure_arguments()
        ));
    }
    text
}

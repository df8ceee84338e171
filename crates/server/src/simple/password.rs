//! `turnpike password`: a line for the file of `auth_basic_user_file`, in a form that every nginx
//! on Linux reads. The password comes from the terminal, unseen, or from standard input; never from
//! the command line, which everybody on the machine can read.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use turnpike_lane::sys::crypt;

use crate::standard_error::write_standard_error;

/// What `turnpike password --help` says.
pub(crate) const HELP: &str = "\
Usage: turnpike password USER

Asks for a password without showing it, or reads it from standard input, and prints the line
USER:HASH for a file of auth_basic_user_file (SHA-512, as openssl passwd -6 writes it).

  turnpike password alice >> /etc/turnpike/users
";

/// The scheme that every C library on Linux has, and no file needs more than one line for.
const SCHEME: &str = "$6$";

/// The letters of a salt, and how many it has: 96 bits.
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SALT_BYTES: usize = 16;

/// Longest line that is read: crypt(3) takes no longer password.
const LINE_BYTES_MAX: u64 = 4096;

/// Runs the subcommand.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let printed = line(arguments).and_then(|line| {
        let mut out = io::stdout();
        let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| error.to_string())
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            write_standard_error(&format!("turnpike password: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

fn line(arguments: &[OsString]) -> Result<String, String> {
    let [user] = arguments else {
        return Err(match arguments.len() {
            0 => "name the user: turnpike password USER".to_owned(),
            _ => "it takes one word, the user; the password is asked for, or read from standard \
                  input: everybody can see the command line"
                .to_owned(),
        });
    };
    let user = user.to_str().ok_or("the user's name is not UTF-8")?;
    let is_broken = |letter: char| letter == ':' || letter.is_control();
    if user.is_empty() || user.starts_with(['#', '-']) || user.contains(is_broken) {
        return Err(format!("\"{user}\" cannot be a user in such a file"));
    }
    let password = if io::stdin().is_terminal() {
        asked()?
    } else {
        read_line(&mut io::stdin().lock())?
    };
    if password.is_empty() {
        return Err("an empty password lets everybody in".to_owned());
    }
    let salt = salt().map_err(|error| format!("no random numbers: {error}"))?;
    let hash = crypt::crypt(&password, format!("{SCHEME}{salt}$").as_bytes());
    let hash = hash.map_err(|_| "the password is too long, or has a NUL".to_owned())?;
    Ok(format!("{user}:{}\n", String::from_utf8_lossy(&hash)))
}

/// Asks twice, without echo.
fn asked() -> Result<Vec<u8>, String> {
    let first = unseen("Password: ")?;
    if unseen("Again: ")? == first {
        Ok(first)
    } else {
        Err("the two passwords differ".to_owned())
    }
}

fn unseen(prompt: &str) -> Result<Vec<u8>, String> {
    let input = io::stdin();
    let failed = |error: nix::Error| format!("the terminal cannot be set: {error}");
    let before = tcgetattr(&input).map_err(failed)?;
    let mut silent = before.clone();
    silent.local_flags.remove(LocalFlags::ECHO);
    write_standard_error(prompt);
    tcsetattr(&input, SetArg::TCSAFLUSH, &silent).map_err(failed)?;
    let read = read_line(&mut input.lock());
    let restored = tcsetattr(&input, SetArg::TCSANOW, &before).map_err(failed);
    write_standard_error("\n");
    restored.and(read)
}

fn read_line(input: &mut impl io::BufRead) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    let read = input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
    read.map_err(|error| format!("the password cannot be read: {error}"))?;
    while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        line.pop();
    }
    Ok(line)
}

/// Random letters of the kernel's.
fn salt() -> io::Result<String> {
    let mut bytes = [0; SALT_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let letters = bytes.iter().map(|byte| LETTERS[usize::from(byte % 64)]);
    Ok(letters.map(char::from).collect())
}

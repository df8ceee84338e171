//! nginx's command line, with its oddities: flags can be clustered, a value may follow its flag
//! at once or as the next argument, a repeated flag's last value wins, and there are no long
//! options. Only text to options is done here.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use turnpike_conf::nearest;

/// What `-s` asks of a running server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Stop at once.
    Stop,
    /// Stop when running requests are done.
    Quit,
    /// Open the log files anew.
    Reopen,
    /// Read the configuration anew.
    Reload,
}

/// What the command line asks for.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// `-?`, `-h`: print the help.
    pub help: bool,
    /// `-v` (and `-V`, `-h`): print the version.
    pub version: bool,
    /// `-V`: print the configure arguments.
    pub configure: bool,
    /// `-t`, `-T`: check the configuration and exit.
    pub test: bool,
    /// `-T`: print every configuration file.
    pub dump: bool,
    /// `-q`: say only what is wrong.
    pub quiet: bool,
    /// `-p`: the folder that relative paths start from.
    pub prefix: Option<OsString>,
    /// `-e`: the error log until the configuration names one.
    pub error_log: Option<OsString>,
    /// `-c`: the configuration file.
    pub configuration: Option<OsString>,
    /// What `-c -` stands for: the text of standard input, once it was read.
    pub standard_input: Option<Vec<u8>>,
    /// `-g`: directives of the main context.
    pub globals: Option<OsString>,
    /// `-l`: where the control API listens.
    pub api: Option<OsString>,
    /// `-s`: a command for the running server.
    pub command: Option<Command>,
}

/// Why the arguments cannot be understood. The messages are nginx's, to be printed after `nginx: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// The text is no option, or no value of it.
    Invalid(String),
    /// The text is no command of `-s`.
    Signal(String),
    /// The text is a long option. Only `--help` and `--version` exist.
    Long(String),
    /// The value of an option is missing: its flag, and what the value is called.
    NoValue(char, &'static str),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::Invalid(text) => write!(out, "invalid option: \"{text}\""),
            ArgumentError::Signal(text) => write!(out, "invalid option: \"-s {text}\""),
            ArgumentError::Long(_) => write!(out, "invalid option: \"-\""),
            ArgumentError::NoValue(flag, name) => {
                write!(out, "option \"-{flag}\" requires {name}")
            }
        }
    }
}

impl std::error::Error for ArgumentError {}

/// The commands of `-s`, and the long options that people try, with the short ones.
const SIGNALS: [&str; 4] = ["stop", "quit", "reopen", "reload"];
const LONG_OPTIONS: &[(&str, &str)] = &[
    ("config", "-c FILE"),
    ("conf", "-c FILE"),
    ("prefix", "-p FOLDER"),
    ("test", "-t"),
    ("signal", "-s SIGNAL"),
    ("quiet", "-q"),
    ("version", "-v"),
    ("help", "-h"),
    ("port", "turnpike serve --listen PORT"),
];

impl ArgumentError {
    /// What was probably meant, as a sentence; nginx's message comes first.
    pub fn hint(&self) -> Option<String> {
        match self {
            ArgumentError::Signal(text) => Some(match nearest(text, SIGNALS.into_iter()) {
                Some(meant) => format!("did you mean \"-s {meant}\"?"),
                None => format!("-s takes {}", SIGNALS.join(", ")),
            }),
            ArgumentError::Long(text) => {
                let name = text.trim_start_matches('-').split('=').next().unwrap_or("");
                let names = LONG_OPTIONS.iter().map(|(long, _)| *long);
                let meant = nearest(name, names);
                let row = LONG_OPTIONS.iter().find(|(long, _)| Some(*long) == meant);
                Some(match row {
                    Some((_, short)) => format!("there is no option \"{text}\": write {short}"),
                    None => format!("there is no option \"{text}\": -h lists the options"),
                })
            }
            ArgumentError::Invalid(text) if text.chars().count() == 1 => {
                Some("-h lists the options".to_owned())
            }
            ArgumentError::Invalid(_) | ArgumentError::NoValue(..) => None,
        }
    }
}

impl From<ArgumentError> for String {
    fn from(error: ArgumentError) -> String {
        error.to_string()
    }
}

/// The usage text, after the version line.
pub const HELP: &str = "\
Usage: turnpike [-?hvVtTq] [-s signal] [-p prefix]
                [-e filename] [-c filename] [-g directives] [-l address]
       turnpike SUBCOMMAND [ARGUMENT...]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: /usr/local/turnpike/)
  -e filename   : set error log file (default: logs/error.log)
  -c filename   : set configuration file, - for standard input (default: conf/nginx.conf;
                  without -p, -c and that file: a built-in page on 127.0.0.1:8080)
  -g directives : set global directives out of configuration file
  -l address    : enable the control API at unix:FILE, or at a port of 127.0.0.1

Subcommands:
";

/// Reads the arguments after the program's name.
///
/// # Errors
/// The first argument that cannot be understood.
pub fn parse(arguments: &[OsString]) -> Result<Options, ArgumentError> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(flags) = argument.as_bytes().strip_prefix(b"-") else {
            let text = argument.to_string_lossy();
            return Err(ArgumentError::Invalid(text.into_owned()));
        };
        for (index, flag) in flags.iter().enumerate() {
            if options.switch(*flag) {
                continue;
            }
            let Some(name) = value_name(*flag) else {
                if let (0, Some(b'-')) = (index, flags.first()) {
                    let text = argument.to_string_lossy();
                    return Err(ArgumentError::Long(text.into_owned()));
                }
                return Err(ArgumentError::Invalid(char::from(*flag).to_string()));
            };
            let attached = &flags[index + 1..];
            let value = if attached.is_empty() {
                rest.next().cloned()
            } else {
                Some(OsStr::from_bytes(attached).to_os_string())
            };
            let flag = char::from(*flag);
            let value = value.ok_or(ArgumentError::NoValue(flag, name))?;
            options.set(flag, value)?;
            break;
        }
    }
    Ok(options)
}

/// The first argument that is neither an option nor an option's value.
pub fn first_word(arguments: &[OsString]) -> Option<&OsStr> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_bytes().strip_prefix(b"-") {
            None => return Some(argument),
            Some(flags) if wants_next(flags) => {
                rest.next();
            }
            Some(_) => {}
        }
    }
    None
}

/// Whether the value of the last of these flags is the next argument.
pub(crate) fn wants_next(flags: &[u8]) -> bool {
    let taking = flags.iter().position(|flag| value_name(*flag).is_some());
    taking.is_some_and(|at| at + 1 == flags.len())
}

/// What the value of a flag is called in messages.
fn value_name(flag: u8) -> Option<&'static str> {
    match flag {
        b'p' => Some("directory name"),
        b'e' | b'c' => Some("file name"),
        b'g' | b's' => Some("parameter"),
        b'l' => Some("address"),
        _ => None,
    }
}

impl Options {
    fn switch(&mut self, flag: u8) -> bool {
        match flag {
            b'?' | b'h' => (self.help, self.version) = (true, true),
            b'v' => self.version = true,
            b'V' => (self.configure, self.version) = (true, true),
            b't' => self.test = true,
            b'T' => (self.dump, self.test) = (true, true),
            b'q' => self.quiet = true,
            _ => return false,
        }
        true
    }

    fn set(&mut self, flag: char, value: OsString) -> Result<(), ArgumentError> {
        match flag {
            'p' => self.prefix = Some(with_slash(value)),
            'e' => self.error_log = Some(value),
            'c' => self.configuration = Some(value),
            'g' => self.globals = Some(value),
            'l' => self.api = Some(value),
            _ => self.command = Some(command(&value)?),
        }
        Ok(())
    }
}

fn command(value: &OsStr) -> Result<Command, ArgumentError> {
    match value.as_bytes() {
        b"stop" => Ok(Command::Stop),
        b"quit" => Ok(Command::Quit),
        b"reopen" => Ok(Command::Reopen),
        b"reload" => Ok(Command::Reload),
        _ => Err(ArgumentError::Signal(value.to_string_lossy().into_owned())),
    }
}

fn with_slash(folder: OsString) -> OsString {
    let mut bytes = folder.into_vec();
    if !bytes.is_empty() && !bytes.ends_with(b"/") {
        bytes.push(b'/');
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(arguments: &[&str]) -> Result<Options, ArgumentError> {
        let owned: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        parse(&owned)
    }

    fn expect(cases: &[(&[&str], Options)]) {
        for (arguments, options) in cases {
            assert_eq!(read(arguments).as_ref(), Ok(options), "{arguments:?}");
        }
    }

    #[test]
    fn switches_can_be_clustered_and_repeated() {
        let none = Options::default;
        expect(&[
            (&[], none()),
            (&["-"], none()),
            (
                &["-tt"],
                Options {
                    test: true,
                    ..none()
                },
            ),
            (
                &["-tq", "-T"],
                Options {
                    test: true,
                    quiet: true,
                    dump: true,
                    ..none()
                },
            ),
            (
                &["-?"],
                Options {
                    help: true,
                    version: true,
                    ..none()
                },
            ),
            (
                &["-V"],
                Options {
                    configure: true,
                    version: true,
                    ..none()
                },
            ),
        ]);
    }

    #[test]
    fn values_follow_at_once_or_as_the_next_argument() {
        let none = Options::default;
        let clustered = Options {
            test: true,
            configuration: Some("x".into()),
            prefix: Some("/srv/".into()),
            ..none()
        };
        expect(&[
            (
                &["-c=x"],
                Options {
                    configuration: Some("=x".into()),
                    ..none()
                },
            ),
            (&["-tcx", "-p", "/srv"], clustered),
            (
                &["-g", "a;", "-gb;"],
                Options {
                    globals: Some("b;".into()),
                    ..none()
                },
            ),
            (
                &["-e", "-t"],
                Options {
                    error_log: Some("-t".into()),
                    ..none()
                },
            ),
            (
                &["-s", "quit"],
                Options {
                    command: Some(Command::Quit),
                    ..none()
                },
            ),
            (
                &["-l", "unix:x"],
                Options {
                    api: Some("unix:x".into()),
                    ..none()
                },
            ),
            (
                &["-sreload"],
                Options {
                    command: Some(Command::Reload),
                    ..none()
                },
            ),
        ]);
    }

    #[test]
    fn words_are_told_from_options_and_their_values() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&[], None),
            (&["status", "-p", "/srv"], Some("status")),
            (&["-p", "/srv", "-c", "x", "status"], Some("status")),
            (&["-p/srv", "-tcx", "status", "more"], Some("status")),
            (&["-tc", "x"], None),
            (&["-c"], None),
        ];
        for (arguments, expected) in cases {
            let owned: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(
                first_word(&owned),
                expected.map(OsStr::new),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn mistakes_are_named_in_nginx_words() {
        let cases: &[(&[&str], &str)] = &[
            (&["x"], "invalid option: \"x\""),
            (&[""], "invalid option: \"\""),
            (&["-x"], "invalid option: \"x\""),
            (&["--help"], "invalid option: \"-\""),
            (&["-c"], "option \"-c\" requires file name"),
            (&["-te"], "option \"-e\" requires file name"),
            (&["-p"], "option \"-p\" requires directory name"),
            (&["-g"], "option \"-g\" requires parameter"),
            (&["-l"], "option \"-l\" requires address"),
            (&["-s"], "option \"-s\" requires parameter"),
            (&["-s", "halt"], "invalid option: \"-s halt\""),
        ];
        for (arguments, message) in cases {
            assert_eq!(
                read(arguments).unwrap_err().to_string(),
                *message,
                "{arguments:?}"
            );
        }
    }
}

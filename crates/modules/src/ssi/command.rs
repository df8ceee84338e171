//! The commands, and which parameters they have.

use turnpike_http::Quoted;
use turnpike_wire::ssi::Command;

/// A command that can be carried out, with its parameters as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order<'a> {
    Include {
        /// Path and query, of `virtual` or `file`.
        target: &'a [u8],
        /// The variable that stores the part.
        set: Option<&'a [u8]>,
        /// The block that is shown where the part is empty or an error.
        stub: Option<&'a [u8]>,
    },
    Echo {
        variable: &'a [u8],
        default: Option<&'a [u8]>,
        encoding: Encoding,
    },
    Set {
        variable: &'a [u8],
        value: &'a [u8],
    },
    Config {
        error_message: Option<&'a [u8]>,
        time_format: Option<&'a [u8]>,
    },
    If(&'a [u8]),
    ElseIf(&'a [u8]),
    Else,
    EndIf,
    Block(&'a [u8]),
    EndBlock,
}

/// How `echo` writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    None,
    Url,
    Entity,
}

/// A command's name, the parameters that it may have, and how many of them, from the first on, it
/// must have.
type Known = (&'static str, &'static [&'static str], usize);

const COMMANDS: &[Known] = &[
    ("include", &["virtual", "file", "wait", "set", "stub"], 0),
    ("echo", &["var", "default", "encoding"], 1),
    ("set", &["var", "value"], 2),
    ("config", &["errmsg", "timefmt"], 0),
    ("if", &["expr"], 1),
    ("elif", &["expr"], 1),
    ("else", &[], 0),
    ("endif", &[], 0),
    ("block", &["name"], 1),
    ("endblock", &[], 0),
];

impl<'a> Order<'a> {
    /// Reads a command.
    ///
    /// # Errors
    /// nginx's words for what is wrong with it.
    pub(super) fn read(command: &'a Command) -> Result<Self, String> {
        check(command)?;
        let value = |name: &str| {
            let mut parameters = command.parameters();
            let found = parameters.find(|(own, _)| *own == name.as_bytes());
            found.map(|(_, value)| value)
        };
        let needed = |name: &str| value(name).unwrap_or_default();
        Ok(match command.name() {
            b"include" => include(&value)?,
            b"echo" => Self::Echo {
                variable: needed("var"),
                default: value("default"),
                encoding: encoding(value("encoding"))?,
            },
            b"set" => Self::Set {
                variable: needed("var"),
                value: needed("value"),
            },
            b"config" => Self::Config {
                error_message: value("errmsg"),
                time_format: value("timefmt"),
            },
            b"if" => Self::If(needed("expr")),
            b"elif" => Self::ElseIf(needed("expr")),
            b"else" => Self::Else,
            b"endif" => Self::EndIf,
            b"block" => Self::Block(needed("name")),
            _ => Self::EndBlock,
        })
    }
}

/// Whether there is such a command, with these parameters.
fn check(command: &Command) -> Result<(), String> {
    let shown = Quoted(command.name());
    let mut known = COMMANDS.iter();
    let known = known.find(|(name, ..)| command.name() == name.as_bytes());
    let Some((_, names, needed)) = known else {
        return Err(format!("invalid SSI command: \"{shown}\""));
    };
    for (at, (parameter, _)) in command.parameters().enumerate() {
        let name = Quoted(parameter);
        if !names.iter().any(|known| parameter == known.as_bytes()) {
            return Err(format!(
                "invalid parameter name: \"{name}\" in \"{shown}\" SSI command"
            ));
        }
        let mut before = command.parameters().take(at);
        if before.any(|(other, _)| other == parameter) {
            return Err(format!(
                "duplicate \"{name}\" parameter in \"{shown}\" SSI command"
            ));
        }
    }
    let has = |name: &&str| {
        let mut parameters = command.parameters();
        parameters.any(|(own, _)| own == name.as_bytes())
    };
    match names.iter().take(*needed).find(|name| !has(name)) {
        Some(name) => Err(format!(
            "mandatory \"{name}\" parameter is absent in \"{shown}\" SSI command"
        )),
        None => Ok(()),
    }
}

fn include<'a>(value: &impl Fn(&str) -> Option<&'a [u8]>) -> Result<Order<'a>, String> {
    let target = match (value("virtual"), value("file")) {
        (Some(path), Some(file)) => {
            let (path, file) = (Quoted(path), Quoted(file));
            return Err(format!(
                "inclusion may be either virtual=\"{path}\" or file=\"{file}\""
            ));
        }
        (None, None) => return Err("no parameter in \"include\" SSI command".to_owned()),
        (Some(target), None) | (None, Some(target)) => target,
    };
    let (set, stub) = (value("set"), value("stub"));
    if set.is_some() && stub.is_some() {
        return Err("\"set\" and \"stub\" cannot be used together in \"include\"".to_owned());
    }
    match value("wait") {
        None | Some(b"yes" | b"no") => Ok(Order::Include { target, set, stub }),
        Some(other) => {
            let other = Quoted(other);
            Err(format!(
                "invalid value \"{other}\" in the \"wait\" parameter"
            ))
        }
    }
}

fn encoding(text: Option<&[u8]>) -> Result<Encoding, String> {
    match text {
        None | Some(b"entity") => Ok(Encoding::Entity),
        Some(b"none") => Ok(Encoding::None),
        Some(b"url") => Ok(Encoding::Url),
        Some(other) => {
            let other = Quoted(other);
            Err(format!(
                "unknown encoding \"{other}\" in the \"echo\" command"
            ))
        }
    }
}

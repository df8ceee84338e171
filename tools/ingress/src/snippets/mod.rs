//! Which snippets are taken. Those of the ConfigMap are the administrator's and may do what their
//! place allows; those of annotations are a tenant's, and may use the directives of a list.
//!
//! A snippet is parsed as a whole, so it closes only what it opened. No file is opened, no name is
//! looked up, and no module is loaded for it.

mod directives;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use turnpike_conf::{Directive, Loader, Tree, Word, parse};

use crate::annotations::Annotations;

/// The name under which a snippet is parsed.
const NAME: &str = "snippet";

/// The most directives of a snippet: the longest ones that people publish have about 100.
const DIRECTIVES_MAX: usize = 10_000;

/// The variables by which a rendering chooses servers, or which logs and metrics trust.
const RESERVED: &[&str] = &[
    "$proxy_upstream_name",
    "$proxy_alternative_upstream_name",
    "$namespace",
    "$ingress_name",
    "$service_name",
    "$service_port",
    "$location_path",
    "$target",
    "$literal_dollar",
    "$proxy_host",
];

/// What the variables of a rendering begin with that are its own.
pub(crate) const OWN_PREFIX: &str = "$ingress_own_";

/// Where a snippet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Location,
    Server,
    Stream,
    StreamServer,
}

/// Checks the snippets of an Ingress.
///
/// # Errors
/// The snippet, the line, and the reason.
pub(crate) fn check(annotations: &Annotations, ports: &[u16]) -> Result<(), String> {
    for (name, text) in annotations.snippets() {
        let place = match name {
            "server-snippet" => Place::Server,
            "stream-snippet" => Place::Stream,
            _ => Place::Location,
        };
        check_one(text, place, ports).map_err(|error| format!("annotation {name}: {error}"))?;
    }
    Ok(())
}

/// Checks a tenant's snippet.
///
/// # Errors
/// The line and the reason.
pub(crate) fn check_one(text: &str, place: Place, ports: &[u16]) -> Result<(), String> {
    let tree = read(text)?;
    if tree.walk().count() > DIRECTIVES_MAX {
        return Err(format!("there are more than {DIRECTIVES_MAX} directives"));
    }
    check_block(&tree.directives, place, ports)
}

/// Checks that a snippet of the administrator's is whole.
///
/// # Errors
/// The line and the reason.
pub(crate) fn check_whole(text: &str) -> Result<(), String> {
    read(text).map(drop)
}

/// Whether a server-snippet has a location.
pub(crate) fn has_location(text: &str) -> bool {
    read(text).is_ok_and(|tree| {
        tree.walk()
            .any(|directive| directive.name.text == "location")
    })
}

fn read(text: &str) -> Result<Tree, String> {
    let loader = OneText(text);
    parse(&loader, Path::new(NAME), None).map_err(|errors| {
        let first = errors.0.first();
        first.map_or_else(|| "it cannot be parsed".to_owned(), ToString::to_string)
    })
}

fn check_block(directives: &[Directive], place: Place, ports: &[u16]) -> Result<(), String> {
    for directive in directives {
        check_directive(directive, place, ports)
            .map_err(|text| format!("line {}: {text}", directive.span.line))?;
        if let Some(inside) = &directive.block {
            let next = match (place, directive.name.text.as_str()) {
                (Place::Location, "if" | "limit_except") => Place::Location,
                (Place::Server, "if") => Place::Server,
                (Place::Server, "location") => Place::Location,
                (Place::Stream, "server") => Place::StreamServer,
                (_, name) => {
                    let line = directive.span.line;
                    return Err(format!("line {line}: \"{name}\" may not be opened here"));
                }
            };
            check_block(inside, next, ports)?;
        }
    }
    Ok(())
}

fn check_directive(directive: &Directive, place: Place, ports: &[u16]) -> Result<(), String> {
    let name = directive.name.text.as_str();
    if directive.name.quoted || !directives::is_allowed(name, place) {
        return Err(format!(
            "\"{}\" is not allowed in annotations",
            name.escape_debug()
        ));
    }
    let words: Vec<&str> = directive
        .arguments
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    match (name, words.as_slice()) {
        ("access_log", ["off"]) => Ok(()),
        ("access_log", _) => Err("\"access_log\" may only be off".to_owned()),
        ("listen", _) => check_listen(&directive.arguments, ports),
        ("proxy_pass" | "grpc_pass" | "fastcgi_pass" | "uwsgi_pass" | "scgi_pass", [target]) => {
            check_target(target)
        }
        (_, [variable, ..]) if directives::sets_variable(name) => check_variable(variable),
        _ => words.iter().try_for_each(|word| check_captures(word)),
    }
}

/// A named capture of a regular expression sets a variable too.
fn check_captures(word: &str) -> Result<(), String> {
    for opening in ["(?<", "(?P<", "(?'"] {
        for rest in word.split(opening).skip(1) {
            let name = rest.split(['>', '\'']).next().unwrap_or_default();
            check_variable(&format!("${name}"))?;
        }
    }
    Ok(())
}

/// A variable that a snippet sets must not be one that the rendering relies on.
fn check_variable(variable: &str) -> Result<(), String> {
    let bare = variable.replace(['{', '}'], "");
    if RESERVED.contains(&bare.as_str()) || bare.starts_with(OWN_PREFIX) {
        Err(format!("the variable {variable} belongs to the controller"))
    } else {
        Ok(())
    }
}

/// A tenant's pass goes to an address, which is neither the pod's own nor the link's. A name could
/// become such an address at any time.
fn check_target(target: &str) -> Result<(), String> {
    let shown = target.escape_debug();
    if target.contains('$') {
        return Err(format!("a pass to a variable is not allowed: \"{shown}\""));
    }
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let address = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match address.parse::<IpAddr>() {
        Ok(address) if is_near(address) => Err(format!(
            "a pass to the pod itself or its link is not allowed: \"{shown}\""
        )),
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "a pass must name an address, not \"{shown}\": use the Service of a rule instead"
        )),
    }
}

/// Whether an address is the pod's own, its link's, or nobody's.
pub(crate) fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let is_odd = address.is_unspecified() || address.is_broadcast();
            is_odd || address.is_loopback() || address.is_link_local() || address.is_multicast()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_near(IpAddr::V4(mapped)),
            None => {
                let is_link_local = address.segments()[0] & 0xffc0 == 0xfe80;
                let is_odd = address.is_unspecified() || address.is_multicast();
                is_odd || address.is_loopback() || is_link_local
            }
        },
    }
}

fn check_listen(arguments: &[Word], ports: &[u16]) -> Result<(), String> {
    let good = match arguments {
        [port] | [port, ..] => port.text.parse().is_ok_and(|port| ports.contains(&port)),
        [] => false,
    };
    let mut others = arguments.iter().skip(1);
    let are_others_good = others.all(|word| word.text == "udp");
    if good && are_others_good {
        Ok(())
    } else {
        Err("\"listen\" needs a port of --stream-snippet-ports".to_owned())
    }
}

/// A loader that has one text and refuses all files.
struct OneText<'a>(&'a str);

impl Loader for OneText<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new(NAME) {
            Ok(self.0.as_bytes().to_vec())
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "include is not allowed in a snippet",
            ))
        }
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(vec![pattern.to_path_buf()]) // is read next, and refused
    }

    /// None: a snippet must not read them.
    fn environment(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

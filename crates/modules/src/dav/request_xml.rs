//! Bodies of PROPFIND and LOCK requests (RFC 4918 section 14), read.
//!
//! A document type is refused, so that nothing can be defined that grows when it is read.

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

use crate::common::html;

/// The namespace of WebDAV's own names.
pub(super) const DAV: &[u8] = b"DAV:";

/// Properties that a request may ask for; there are a dozen that are known.
const PROPERTIES_MAX: usize = 64;

/// Longest namespace of a property in bytes: a URI. It is repeated for every file that has no such
/// property.
const NAMESPACE_BYTES_MAX: usize = 256;

/// Elements within one another: the deepest that is read is `owner/href`.
const DEPTH_MAX: usize = 16;

/// Longest owner of a lock in bytes: a name and an address.
const OWNER_BYTES_MAX: usize = 1024;

/// A body that is not what its request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A property's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) namespace: Vec<u8>,
    pub(super) local: Vec<u8>,
}

/// What a PROPFIND asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PropertySelection {
    All,
    Names,
    These(Vec<Name>),
}

/// What a LOCK asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockInfo {
    /// Whether it is to be an exclusive write lock.
    pub(super) is_exclusive: bool,
    /// The asker, as XML in the namespace `D`.
    pub(super) owner: Vec<u8>,
}

/// Reads the body of a PROPFIND; an empty one asks for all.
pub(super) fn propfind(text: &[u8]) -> Result<PropertySelection, Malformed> {
    if text.is_empty() {
        return Ok(PropertySelection::All);
    }
    let mut asked = None;
    walk(text, |path, event| {
        let Item::Element(name) = event else {
            return Ok(());
        };
        let outer: Vec<&[u8]> = path.iter().map(|name| name.dav()).collect();
        match (outer.as_slice(), name.dav()) {
            ([], b"propfind") => {}
            ([], _) => return Err(Malformed),
            ([b"propfind"], b"allprop") => asked = asked.take().or(Some(PropertySelection::All)),
            ([b"propfind"], b"propname") => asked = Some(PropertySelection::Names),
            ([b"propfind"], b"prop") => asked = Some(PropertySelection::These(Vec::new())),
            ([b"propfind", b"prop"], _) => {
                let Some(PropertySelection::These(names)) = &mut asked else {
                    return Err(Malformed);
                };
                if names.len() >= PROPERTIES_MAX || !name.is_writable() {
                    return Err(Malformed);
                }
                names.push(name.clone());
            }
            _ => {}
        }
        Ok(())
    })?;
    asked.ok_or(Malformed)
}

/// Reads the body of a LOCK that asks for a new lock.
pub(super) fn lock_info(text: &[u8]) -> Result<LockInfo, Malformed> {
    let mut info = LockInfo::default();
    let (mut is_write, mut is_exclusive, mut is_href) = (false, false, false);
    walk(text, |path, event| {
        let outer: Vec<&[u8]> = path.iter().map(|name| name.dav()).collect();
        match event {
            Item::Element(name) => match (outer.as_slice(), name.dav()) {
                ([], b"lockinfo") => {}
                ([], _) => return Err(Malformed),
                ([b"lockinfo", b"locktype"], b"write") => is_write = true,
                ([b"lockinfo", b"lockscope"], b"exclusive") => is_exclusive = true,
                ([b"lockinfo", b"owner"], b"href") => is_href = true,
                _ => {}
            },
            Item::Text(text) if outer.get(..2) == Some(&[b"lockinfo", b"owner"]) => {
                if info.owner.len() + text.len() > OWNER_BYTES_MAX {
                    return Err(Malformed);
                }
                html::escape(text.trim_ascii(), &mut info.owner);
            }
            Item::Text(_) => {}
        }
        Ok(())
    })?;
    info.is_exclusive = is_write && is_exclusive;
    if is_href {
        info.owner = [b"<D:href>", info.owner.as_slice(), b"</D:href>"].concat();
    }
    Ok(info)
}

impl Name {
    /// The name in WebDAV's namespace; empty for one of another.
    pub(super) fn dav(&self) -> &[u8] {
        if self.namespace == DAV {
            &self.local
        } else {
            b""
        }
    }

    /// Whether it can be written as it is: the reader takes more for a name than XML does.
    fn is_writable(&self) -> bool {
        let may_begin = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        let may_follow =
            |byte: u8| may_begin(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        self.local.first().is_some_and(|byte| may_begin(*byte))
            && self.local.iter().all(|byte| may_follow(*byte))
            && std::str::from_utf8(&self.local).is_ok()
            && self.namespace.len() <= NAMESPACE_BYTES_MAX
            && checked(&self.namespace).is_ok()
    }
}

enum Item<'a> {
    /// An element begins.
    Element(&'a Name),
    /// Text, unescaped.
    Text(&'a [u8]),
}

/// Reads a document; `visit` is told of every element and text, with the elements around it.
fn walk(
    text: &[u8],
    mut visit: impl FnMut(&[Name], Item<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut reader = NsReader::from_reader(text);
    let mut path: Vec<Name> = Vec::new();
    let mut is_begun = false;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|_| Malformed)?;
        match event {
            Event::Start(element) | Event::Empty(element) if path.is_empty() && is_begun => {
                drop(element);
                return Err(Malformed);
            }
            Event::Start(element) => {
                let name = name_of(&namespace, &element)?;
                visit(&path, Item::Element(&name))?;
                path.push(name);
                is_begun = true;
                if path.len() > DEPTH_MAX {
                    return Err(Malformed);
                }
            }
            Event::Empty(element) => {
                let name = name_of(&namespace, &element)?;
                visit(&path, Item::Element(&name))?;
                is_begun = true;
            }
            Event::End(_) => {
                path.pop();
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|_| Malformed)?;
                visit(&path, Item::Text(checked(text.as_bytes())?))?;
            }
            Event::CData(text) => visit(&path, Item::Text(checked(&text)?))?,
            Event::DocType(_) | Event::PI(_) => return Err(Malformed),
            Event::Eof if path.is_empty() && is_begun => return Ok(()),
            Event::Eof => return Err(Malformed),
            // Entities stand in no text that is read here but names of people.
            Event::GeneralRef(_) | Event::Comment(_) | Event::Decl(_) => {}
        }
    }
}

/// The text, if XML can have it: the reader takes any bytes, and they are written into answers.
fn checked(text: &[u8]) -> Result<&[u8], Malformed> {
    let is_allowed = |letter: char| match letter {
        '\t' | '\n' | '\r' => true,
        letter => letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
    };
    let whole = std::str::from_utf8(text).map_err(|_| Malformed)?;
    whole
        .chars()
        .all(is_allowed)
        .then_some(text)
        .ok_or(Malformed)
}

fn name_of(namespace: &ResolveResult<'_>, element: &BytesStart<'_>) -> Result<Name, Malformed> {
    let namespace = match namespace {
        ResolveResult::Bound(namespace) => namespace.as_ref().to_vec(),
        ResolveResult::Unbound => Vec::new(),
        ResolveResult::Unknown(_) => return Err(Malformed),
    };
    Ok(Name {
        namespace,
        local: element.local_name().as_ref().to_vec(),
    })
}

//! DNS messages (RFC 1035, RFC 2782, RFC 3596, RFC 6891): writes one question, reads one answer.
//!
//! The module has only the parts that a stub resolver needs: addresses and services of a name. An
//! answer may come from anyone on the network: lengths are checked, pointers may only lead
//! backwards, and records that were not asked for are ignored.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// Longest name with its dots (RFC 1035 section 2.3.4, without the length bytes of the first label
/// and the root).
pub const NAME_BYTES_MAX: usize = 253;

/// Longest label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Bytes of a message's header.
const HEADER_BYTES: usize = 12;

/// Most labels and pointers in one name: the longest name has 127 labels.
const STEPS_MAX: usize = 128;

/// Largest answer over UDP that an extended question allows. It fits into one packet on every usual
/// path, so it is not fragmented. RFC 6891 section 6.2.5 leaves the number open; this is the number
/// of DNS flag day 2020.
pub const DATAGRAM_BYTES_MAX: u16 = 1232;

/// Most aliases in a chain within one answer.
const ALIASES_MAX: usize = 16;

/// Whether a question carries the EDNS record (RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// With the record: answers over UDP may have [`DATAGRAM_BYTES_MAX`] bytes.
    Edns0,
    /// Without it, for servers that refuse such questions: answers over UDP have 512 bytes.
    None,
}

/// The type of the records that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Hosts and ports of a service.
    Srv,
}

/// The name cannot be asked for by DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameError;

/// Why an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The message belongs to another question. It is ignored, since anyone may have sent it.
    Unrelated,
    /// The message is malformed.
    Malformed,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The response code (RFC 1035 section 4.1.1): 0 is success, 3 means that the name does not
    /// exist.
    pub code: u8,
    /// The answer is truncated: the question must be repeated over TCP.
    pub truncated: bool,
    pub addresses: Vec<IpAddr>,
    pub services: Vec<Service>,
    /// The target of the last alias, if the answer has no records for it.
    pub alias: Option<String>,
    /// The lifetime: the smallest of its records' lifetimes, in seconds.
    pub ttl_seconds: u32,
}

/// A host of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// A lower priority is used first.
    pub priority: u16,
    /// The share among hosts of one priority.
    pub weight: u16,
    pub port: u16,
    /// The name.
    pub host: String,
}

impl Question {
    fn number(self) -> u16 {
        match self {
            Question::A => 1,
            Question::Aaaa => 28,
            Question::Srv => 33,
        }
    }
}

/// Number of alias records.
const CNAME: u16 = 5;

/// Number of the record that carries extensions.
const OPT: u16 = 41;

/// The internet class.
const INTERNET: u16 = 1;

/// Appends a question for `name` (a dot at its end does not matter); it asks for recursion.
///
/// # Errors
/// When the name is empty, too long, or has an empty or too long label.
pub fn write_question(
    id: u16,
    name: &str,
    question: Question,
    extension: Extension,
    out: &mut Vec<u8>,
) -> Result<(), NameError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return Err(NameError);
    }
    out.extend_from_slice(&id.to_be_bytes());
    // Recursion desired; one question, no answers, and the record for extensions, if any.
    let additional = u8::from(extension == Extension::Edns0);
    out.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, additional]);
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    out.extend_from_slice(&question.number().to_be_bytes());
    out.extend_from_slice(&INTERNET.to_be_bytes());
    if extension == Extension::Edns0 {
        write_extension(out);
    }
    Ok(())
}

/// Appends an OPT record (RFC 6891 section 6.1.2): it belongs to the root, and its class holds the
/// size; version 0, no flags, no options.
fn write_extension(out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&OPT.to_be_bytes());
    out.extend_from_slice(&DATAGRAM_BYTES_MAX.to_be_bytes());
    out.extend_from_slice(&[0; 6]);
}

/// Reads the answer to a question.
///
/// # Errors
/// See [`AnswerError`].
pub fn parse_answer(
    message: &[u8],
    id: u16,
    name: &str,
    question: Question,
) -> Result<Answer, AnswerError> {
    let mut reader = Reader { message, at: 0 };
    let unrelated = |_| AnswerError::Unrelated;
    let own = reader.number().map_err(unrelated)? == id;
    let flags = reader.number().map_err(unrelated)?;
    let questions = reader.number().map_err(unrelated)?;
    let records = reader.number().map_err(unrelated)?;
    if !own || flags & 0x8000 == 0 {
        return Err(AnswerError::Unrelated);
    }
    let mut answer = Answer {
        code: (flags & 15) as u8,
        truncated: flags & 0x0200 != 0,
        ttl_seconds: u32::MAX,
        ..Answer::default()
    };
    if questions != 1 {
        // A server that could not read the question leaves it out of the error.
        return match answer.code {
            0 => Err(AnswerError::Malformed),
            _ => Ok(answer),
        };
    }
    reader.at = HEADER_BYTES;
    let asked = reader.name()?;
    let asked_number = reader.number()?;
    let class = reader.number()?;
    let name = name.strip_suffix('.').unwrap_or(name);
    let same = asked.eq_ignore_ascii_case(name);
    if !same || asked_number != question.number() || class != INTERNET {
        return Err(AnswerError::Unrelated);
    }
    if answer.truncated || answer.code != 0 {
        return Ok(answer);
    }
    let records = (0..records)
        .map(|_| reader.record())
        .collect::<Result<Vec<_>, _>>()?;
    collect(&mut answer, asked, &records, question);
    Ok(answer)
}

/// Follows the aliases and takes the records that were asked for.
fn collect(answer: &mut Answer, asked: String, records: &[Record], question: Question) {
    let mut name = asked;
    for _ in 0..ALIASES_MAX {
        let of_name = |record: &&Record| record.owner.eq_ignore_ascii_case(&name);
        let alias = records.iter().filter(of_name).find_map(|record| {
            let Data::Alias(target) = &record.data else {
                return None;
            };
            answer.ttl_seconds = answer.ttl_seconds.min(record.ttl_seconds);
            Some(target.clone())
        });
        match alias {
            None => break,
            Some(target) => {
                answer.alias = Some(target.clone());
                name = target;
            }
        }
    }
    for record in records {
        if !record.owner.eq_ignore_ascii_case(&name) {
            continue;
        }
        match (&record.data, question) {
            (Data::Address(address @ IpAddr::V4(_)), Question::A)
            | (Data::Address(address @ IpAddr::V6(_)), Question::Aaaa) => {
                answer.addresses.push(*address);
            }
            (Data::Service(service), Question::Srv) => answer.services.push(service.clone()),
            _ => continue,
        }
        answer.ttl_seconds = answer.ttl_seconds.min(record.ttl_seconds);
    }
    if !answer.addresses.is_empty() || !answer.services.is_empty() {
        answer.alias = None;
    }
    if answer.ttl_seconds == u32::MAX {
        answer.ttl_seconds = 0;
    }
}

struct Record {
    owner: String,
    ttl_seconds: u32,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(String),
    Service(Service),
    Other,
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], AnswerError> {
        let end = self.at + N;
        let bytes = self.message.get(self.at..end);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        self.at = end;
        bytes.ok_or(AnswerError::Malformed)
    }

    fn number(&mut self) -> Result<u16, AnswerError> {
        self.bytes().map(u16::from_be_bytes)
    }

    /// A name, its labels joined by dots. Bytes outside of ASCII are read as Latin-1: names only
    /// have to compare equal.
    fn name(&mut self) -> Result<String, AnswerError> {
        let mut name = String::new();
        let mut at = self.at;
        let mut end = None;
        for _ in 0..STEPS_MAX {
            let length = *self.message.get(at).ok_or(AnswerError::Malformed)?;
            match length {
                0 => {
                    self.at = end.unwrap_or(at + 1);
                    return Ok(name);
                }
                0xc0..=0xff => {
                    let low = *self.message.get(at + 1).ok_or(AnswerError::Malformed)?;
                    end.get_or_insert(at + 2);
                    let target = usize::from(length & 0x3f) << 8 | usize::from(low);
                    if target >= at {
                        return Err(AnswerError::Malformed);
                    }
                    at = target;
                }
                1..=0x3f => {
                    let label = at + 1..at + 1 + usize::from(length);
                    let label = self.message.get(label).ok_or(AnswerError::Malformed)?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.extend(label.iter().map(|byte| char::from(*byte)));
                    if name.len() > 2 * NAME_BYTES_MAX {
                        return Err(AnswerError::Malformed);
                    }
                    at += 1 + usize::from(length);
                }
                _ => return Err(AnswerError::Malformed),
            }
        }
        Err(AnswerError::Malformed)
    }

    fn record(&mut self) -> Result<Record, AnswerError> {
        let owner = self.name()?;
        let kind = self.number()?;
        let class = self.number()?;
        let ttl_seconds = u32::from_be_bytes(self.bytes()?);
        let length = usize::from(self.number()?);
        let end = self.at + length;
        if end > self.message.len() {
            return Err(AnswerError::Malformed);
        }
        let data = match (class, kind, length) {
            (INTERNET, 1, 4) => Data::Address(IpAddr::V4(Ipv4Addr::from(self.bytes::<4>()?))),
            (INTERNET, 28, 16) => Data::Address(IpAddr::V6(Ipv6Addr::from(self.bytes::<16>()?))),
            (INTERNET, 1 | 28, _) => return Err(AnswerError::Malformed),
            (INTERNET, CNAME, _) => Data::Alias(self.name()?),
            (INTERNET, 33, _) => Data::Service(Service {
                priority: self.number()?,
                weight: self.number()?,
                port: self.number()?,
                host: self.name()?,
            }),
            _ => Data::Other,
        };
        if !matches!(data, Data::Other) && self.at != end {
            return Err(AnswerError::Malformed);
        }
        self.at = end;
        // A lifetime with the highest bit set counts as 0 (RFC 2181 section 8).
        let ttl_seconds = if ttl_seconds >> 31 == 1 {
            0
        } else {
            ttl_seconds
        };
        Ok(Record {
            owner,
            ttl_seconds,
            data,
        })
    }
}

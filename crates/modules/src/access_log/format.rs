//! A log format, compiled to operations.

use turnpike_conf::{Complaint, Word};
use turnpike_plan::variables::{self, Subject, VariableId, VariableTable};

use super::escape::Escape;

/// What the predefined format says.
const COMBINED: &[u8] = b"$remote_addr - $remote_user [$time_local] \"$request\" \
    $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// The format for programs that read logs: an object a line, with times in seconds.
const JSON: &[u8] = b"{\"time\":\"$time_iso8601\",\"client\":\"$remote_addr\",\
    \"user\":\"$remote_user\",\"method\":\"$request_method\",\"host\":\"$host\",\
    \"uri\":\"$request_uri\",\"protocol\":\"$server_protocol\",\"status\":$status,\
    \"body_bytes\":$body_bytes_sent,\"seconds\":$request_time,\"referer\":\"$http_referer\",\
    \"agent\":\"$http_user_agent\",\"upstream\":\"$upstream_addr\",\
    \"upstream_status\":\"$upstream_status\",\
    \"upstream_seconds\":\"$upstream_response_time\",\
    \"cache\":\"$upstream_cache_status\",\"id\":\"$request_id\"}";

/// A compiled format.
#[derive(Debug)]
pub(super) struct Format {
    operations: Vec<Operation>,
    escape: Escape,
}

#[derive(Debug)]
enum Operation {
    Text(Box<[u8]>),
    Variable(VariableId),
}

impl Format {
    /// The predefined format `combined`.
    pub(super) fn combined<S>(variables: &mut VariableTable<S>) -> Result<Format, Complaint> {
        let mut format = Format::empty(Escape::Default);
        format.push(COMBINED, variables)?;
        Ok(format)
    }

    /// The predefined format `json`.
    pub(super) fn json<S>(variables: &mut VariableTable<S>) -> Result<Format, Complaint> {
        let mut format = Format::empty(Escape::Json);
        format.push(JSON, variables)?;
        Ok(format)
    }

    /// Compiles the words of a `log_format` after its name.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn compile<S>(
        words: &[Word],
        variables: &mut VariableTable<S>,
    ) -> Result<Format, Complaint> {
        let escape = words
            .first()
            .and_then(|word| word.text.strip_prefix("escape="));
        let mut format = Format::empty(match escape {
            None | Some("default") => Escape::Default,
            Some("json") => Escape::Json,
            Some("none") => Escape::None,
            Some(other) => return Err(format!("unknown log format escaping \"{other}\"").into()),
        });
        for word in &words[usize::from(escape.is_some())..] {
            format.push(&word.bytes(), variables)?;
        }
        Ok(format)
    }

    /// Appends the line for a subject, without a line feed.
    pub(super) fn write<S: Subject>(&self, subject: &S, line: &mut Vec<u8>, spare: &mut Vec<u8>) {
        for operation in &self.operations {
            match operation {
                Operation::Text(text) => line.extend_from_slice(text),
                Operation::Variable(id) => {
                    let start = line.len();
                    let found = variables::append(subject, *id, line);
                    if found {
                        self.escape.apply(line, start, spare);
                    } else {
                        line.truncate(start);
                        if self.escape == Escape::Default {
                            line.push(b'-');
                        }
                    }
                }
            }
        }
    }

    fn empty(escape: Escape) -> Format {
        Format {
            operations: Vec::new(),
            escape,
        }
    }

    fn push<S>(&mut self, text: &[u8], variables: &mut VariableTable<S>) -> Result<(), Complaint> {
        let mut rest = text;
        while !rest.is_empty() {
            let literal = rest.iter().position(|byte| *byte == b'$');
            let (before, after) = rest.split_at(literal.unwrap_or(rest.len()));
            if !before.is_empty() {
                self.operations.push(Operation::Text(before.into()));
            }
            if after.is_empty() {
                break;
            }
            let (name, used) = name_after_dollar(after)?;
            let name = String::from_utf8_lossy(name);
            let id = variables.reference(&name);
            self.operations.push(Operation::Variable(id));
            rest = &after[used..];
        }
        Ok(())
    }
}

/// The name behind the dollar sign that `text` begins with, and the bytes it takes in all.
fn name_after_dollar(text: &[u8]) -> Result<(&[u8], usize), Complaint> {
    let invalid = || {
        let text = String::from_utf8_lossy(text);
        format!("invalid parameter \"{text}\"")
    };
    let braced = text.get(1) == Some(&b'{');
    let start = if braced { 2 } else { 1 };
    let name = text
        .get(start..)
        .filter(|name| !name.is_empty())
        .ok_or_else(invalid)?;
    let length = name
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
        .unwrap_or(name.len());
    let name = &name[..length];
    if braced && text.get(start + length) != Some(&b'}') {
        let name = String::from_utf8_lossy(name);
        return Err(format!("the closing bracket in \"{name}\" variable is missing").into());
    }
    if name.is_empty() {
        return Err(invalid().into());
    }
    Ok((name, start + length + usize::from(braced)))
}

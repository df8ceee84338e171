//! What the protocols of applications have in common: requests of parameters, answers of CGI.

use super::parts::{ParsedRequest, breaks_head, content_of, fields};
use crate::answer::{Answer, Disorder};

/// The parameters of a request, in order.
pub(super) type Params = Vec<(String, String)>;

/// A field that no reader may accept.
const WRONG_FIELD: &str = "X-Wrong: \0\r\n";

/// A text: head and body.
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(super) head_bytes: usize,
    /// The position of the first wrong byte.
    pub(super) broken_at: Option<usize>,
}

/// The request with these parameters and this body.
pub(super) fn asked(
    params: &Params,
    body: Vec<u8>,
    length: usize,
) -> Result<ParsedRequest, String> {
    let value = |name: &str| {
        let mut found = params.iter().filter(|param| param.0 == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Ok(value.as_str()),
            (None, _) => Err(format!("the parameter {name} is missing")),
            (Some(_), Some(_)) => Err(format!("the parameter {name} came twice")),
        }
    };
    let number = value("HTTP_X_NUMBER")?.parse();
    let said = value("CONTENT_LENGTH")?;
    // A body whose length is not known yet may be announced without one.
    if !said.is_empty() && said != body.len().to_string() {
        let come = body.len();
        return Err(format!("CONTENT_LENGTH is {said:?}, {come} bytes came"));
    }
    Ok(ParsedRequest {
        number: number.map_err(|_| "HTTP_X_NUMBER is no number")?,
        path: value("DOCUMENT_URI")?.to_owned(),
        is_head: value("REQUEST_METHOD")? == "HEAD",
        body,
        length,
        keeps: true,
    })
}

/// The request with these parameters and the body that follows them at `from`; `None` if the body
/// is incomplete.
pub(super) fn with_body(
    params: &Params,
    input: &[u8],
    from: usize,
) -> Result<Option<ParsedRequest>, String> {
    let said = params.iter().find(|(name, _)| name == "CONTENT_LENGTH");
    let length = match said.map(|(_, value)| value.as_str()) {
        None | Some("") => 0,
        Some(value) => value.parse().map_err(|_| "CONTENT_LENGTH is no number")?,
    };
    let Some(body) = input.get(from..from + length) else {
        return Ok(None);
    };
    asked(params, body.to_vec(), from + length).map(Some)
}

/// An answer of CGI. `breaks_field`: a wrong part stands in its head.
pub(super) fn text(
    answer: &Answer,
    content: u64,
    asked: &ParsedRequest,
    breaks_field: bool,
) -> Text {
    let mut head = match answer.status {
        200 => String::new(),
        status => format!("Status: {status} Fault\r\n"),
    };
    head.push_str(&fields(answer, content));
    let mut broken_at = breaks_head(answer).then_some(0);
    if breaks_field {
        broken_at = Some(head.len());
        head.push_str(WRONG_FIELD);
    }
    if answer.disorder != Some(Disorder::EndlessHead) {
        head.push_str("\r\n");
    }
    let head_bytes = head.len();
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&content_of(answer, content, asked));
    Text {
        bytes,
        head_bytes,
        broken_at,
    }
}

//! A request of a scripted client, and the known facts about its answer.

use crate::protocol::Protocol;

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A text of the configuration, `/text/N`.
    Text(usize),
    /// A file, `/files/N`.
    File(usize),
    /// A file that is sent slowly, `/slow/N`.
    Slow(usize),
    /// An answer of an origin that speaks this protocol, `/proxy/NUMBER` for HTTP/1.
    Passed(Protocol),
    /// The same, if another origin's answer allows it, `/guarded/NUMBER`.
    Guarded,
    /// The same, with a copy for another origin, `/mirrored/NUMBER`.
    Mirrored,
    /// A page that includes an origin's answer and a text, `/pages/NUMBER`.
    Page,
    /// A connection through to an origin, `/tunnel/NUMBER`: bytes go both ways once the origin has
    /// switched protocols. The last target of its client, which then sends so many bytes.
    Tunnel(usize),
    /// A stored answer of an origin, `/cache/N`.
    Cached(u64),
    /// A missing file, `/files/none`.
    Missing,
    /// A malformed request line.
    Malformed,
}

/// Body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) length: usize,
    pub(crate) is_chunked: bool,
    pub(crate) expects_continue: bool,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Unique in its run.
    pub(crate) number: u64,
    pub(crate) method: &'static str,
    pub(crate) target: Target,
    pub(crate) is_version_10: bool,
    pub(crate) says_close: bool,
    pub(crate) upload: Option<Upload>,
    /// The end of its bytes among those of its client.
    pub(crate) end: usize,
    /// The body's length in bytes.
    pub(crate) length: usize,
}

impl Request {
    /// Whether its answer has no body.
    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Whether its answer depends on those of origins.
    pub(crate) fn waits_for_origins(&self) -> bool {
        match self.target {
            Target::Passed(_)
            | Target::Guarded
            | Target::Mirrored
            | Target::Page
            | Target::Tunnel(_)
            | Target::Cached(_) => true,
            Target::Text(_)
            | Target::File(_)
            | Target::Slow(_)
            | Target::Missing
            | Target::Malformed => false,
        }
    }

    /// Whether it has a body, which may be sent once only.
    pub(crate) fn has_body(&self) -> bool {
        self.upload.is_some()
    }

    /// The target in the request line.
    pub(crate) fn path(&self) -> String {
        match self.target {
            Target::Text(number) => format!("/text/{number}"),
            Target::File(number) => format!("/files/{number}"),
            Target::Slow(number) => format!("/slow/{number}"),
            Target::Passed(protocol) => format!("/{}/{}", protocol.name(), self.number),
            Target::Guarded => format!("/guarded/{}", self.number),
            Target::Mirrored => format!("/mirrored/{}", self.number),
            Target::Page => format!("/pages/{}", self.number),
            Target::Tunnel(_) => format!("/tunnel/{}", self.number),
            Target::Cached(path) => format!("/cache/{path}"),
            Target::Missing => "/files/none".to_owned(),
            Target::Malformed => "malformed".to_owned(),
        }
    }

    /// The bytes of the request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let version = if self.is_version_10 { "1.0" } else { "1.1" };
        let mut head = format!(
            "{} {} HTTP/{version}\r\nHost: simulated\r\nX-Number: {}\r\n",
            self.method,
            self.path(),
            self.number
        );
        if let Target::Tunnel(_) = self.target {
            head.push_str("Connection: upgrade\r\nUpgrade: simulated\r\n");
        }
        if self.says_close {
            head.push_str("Connection: close\r\n");
        }
        let Some(upload) = self.upload else {
            head.push_str("\r\n");
            return head.into_bytes();
        };
        if upload.expects_continue {
            head.push_str("Expect: 100-continue\r\n");
        }
        let body = crate::content::body(self.number, upload.length);
        let body = if upload.is_chunked {
            head.push_str("Transfer-Encoding: chunked\r\n\r\n");
            crate::content::chunked(&body, 1000)
        } else {
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            body
        };
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }
}

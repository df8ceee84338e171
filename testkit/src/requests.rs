//! Requests for tests that answer each of them in two ways and compare: valid and odd ones, changed
//! bytes, cut and divided ones, several at once. The seed decides everything.

use crate::random::Random;

/// What is sent on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Why it is in the corpus.
    pub kind: &'static str,
    /// The pieces that are sent one after the other.
    pub pieces: Vec<Vec<u8>>,
}

impl Request {
    fn whole(kind: &'static str, text: Vec<u8>) -> Request {
        Request {
            kind,
            pieces: vec![text],
        }
    }

    /// All pieces together.
    pub fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

/// Fields that change nothing for most servers.
const PLAIN_FIELDS: &[&str] = &[
    "User-Agent: a/1.0 (b; c)",
    "Accept: */*",
    "Accept-Language: en, de;q=0.5",
    "X-Empty:",
    "X-Long: 0123456789012345678901234567890123456789012345678901234567890123456789",
    "A-Name-That-Is-Longer-Than-Any-In-A-Table: 1",
    "Referer: http://x/",
    "DNT: 1",
    "x: y",
];

/// Fields on which an answer, or what comes behind it, may depend.
const WEIGHTY_FIELDS: &[&str] = &[
    "Accept-Encoding: gzip",
    "accept-encoding: identity",
    "Range: bytes=0-1",
    "Range: bytes=1-0, 3-",
    "If-Range: \"a\"",
    "If-None-Match: *",
    "If-Match: \"a\"",
    "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
    "If-Modified-Since: Tue, 19 Jan 2038 03:14:07 GMT",
    "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
    "Cookie: a=b",
    "Authorization: Basic YTpi",
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: +1",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip",
    "Expect: 100-continue",
    "Expect: nothing",
    "TE: trailers",
    "Trailer: a",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "Connection: keep-alive",
    "Connection: close, te",
    "Connection: upgrade",
    "connection: CLOSE",
    "Proxy-Connection: close",
    "Host: y",
    "Host:",
    "Host: x, y",
    "Host: x ",
    "Host: [::1]",
    "Host: a/b",
];

/// Lines that are not fields as one writes them.
const ODD_LINES: &[&str] = &[
    "Name : value",
    " folded",
    "\tfolded",
    "no colon",
    ": no name",
    "a_b: underscore",
    "a b: space",
    "a: tab\tin it",
    "a: \u{e9}",
    "a: \u{1}",
    "a: b\rc",
    "a: b\nc: d",
    "a:",
    "a:  b  ",
    "\u{e9}: b",
];

/// Beginnings of requests; `%` stands for a target.
const ODD_STARTS: &[&str] = &[
    "get % HTTP/1.1",
    "GET  % HTTP/1.1",
    "GET % HTTP/1.1 ",
    "GET % HTTP/1.2",
    "GET % HTTP/2.0",
    "GET % http/1.1",
    "GET % HTTP/1.10",
    "GET %",
    "GET\t%\tHTTP/1.1",
    "GET http://x% HTTP/1.1",
    "GET //x% HTTP/1.1",
    "GET /.% HTTP/1.1",
    "GET /none/..% HTTP/1.1",
    "GET %/ HTTP/1.1",
    "GET %#b HTTP/1.1",
    "GET %\\b HTTP/1.1",
    "GET %%00 HTTP/1.1",
    "GET %? HTTP/1.1",
    "GET %?a=b&c HTTP/1.1",
    "GET %;a HTTP/1.1",
    "GET * HTTP/1.1",
    "POST % HTTP/1.1",
    "PUT % HTTP/1.0",
    "OPTIONS * HTTP/1.1",
    "DELETE % HTTP/1.1",
    "CONNECT x:80 HTTP/1.1",
    "TRACE % HTTP/1.1",
    "\r\nGET % HTTP/1.1",
    "\nGET % HTTP/1.0",
    " GET % HTTP/1.1",
    "PRI * HTTP/2.0",
];

/// Kinds of requests, which take turns; a valid one comes more often.
const KINDS: &[fn(&mut Maker<'_>) -> Request] = &[
    |maker| Request::whole("valid", maker.valid()),
    |maker| Request::whole("valid", maker.valid()),
    |maker| Request::whole("with weighty fields", maker.weighty()),
    |maker| Request::whole("odd", maker.odd()),
    |maker| Request::whole("changed", maker.changed()),
    |maker| Request::whole("cut", maker.cut()),
    |maker| maker.divided(),
    |maker| Request::whole("several", maker.several()),
];

/// So many requests for these targets; one in eight is a valid one that is divided, and those are
/// divided at every byte in turn.
pub fn requests<'a>(
    seed: u64,
    count: usize,
    targets: &'a [&'a str],
) -> impl Iterator<Item = Request> + 'a {
    let mut divided_at = 0;
    (0..count).map(move |number| {
        let mut maker = Maker {
            random: Random::of_case(seed, number as u64),
            targets,
            divided_at,
        };
        let request = KINDS[number % KINDS.len()](&mut maker);
        divided_at = maker.divided_at;
        request
    })
}

struct Maker<'a> {
    random: Random,
    targets: &'a [&'a str],
    divided_at: usize,
}

impl Maker<'_> {
    /// A request that ends its connection and has nothing unusual.
    fn valid(&mut self) -> Vec<u8> {
        let method = self.random.pick(&["GET", "GET", "GET", "HEAD"]);
        let target = self.random.pick(self.targets);
        let version = self.random.pick(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]);
        let mut lines = vec!["Host: x", "Connection: close"];
        if self.random.percent(10) {
            lines.pop();
        }
        for _ in 0..self.random.index(4) {
            let place = self.random.index(lines.len() + 1);
            lines.insert(place, self.random.pick(PLAIN_FIELDS));
        }
        text(&format!("{method} {target} {version}"), &lines)
    }

    fn weighty(&mut self) -> Vec<u8> {
        let target = self.random.pick(self.targets);
        let field = self.random.pick(WEIGHTY_FIELDS);
        let mut lines = vec!["Host: x", "Connection: close"];
        let place = self.random.index(lines.len() + 1);
        lines.insert(place, field);
        let mut bytes = text(&format!("GET {target} HTTP/1.1"), &lines);
        if field.ends_with(": 5") {
            bytes.extend_from_slice(b"12345");
        }
        if field.ends_with("chunked") {
            bytes.extend_from_slice(b"1\r\na\r\n0\r\n\r\n");
        }
        bytes
    }

    fn odd(&mut self) -> Vec<u8> {
        let target = self.random.pick(self.targets);
        let mut lines = vec!["Host: x", "Connection: close"];
        if self.random.percent(50) {
            let place = self.random.index(lines.len() + 1);
            lines.insert(place, self.random.pick(ODD_LINES));
            return text(&format!("GET {target} HTTP/1.1"), &lines);
        }
        let start = self.random.pick(ODD_STARTS);
        text(&start.replacen('%', target, 1), &lines)
    }

    /// A valid one of which some bytes are others.
    fn changed(&mut self) -> Vec<u8> {
        let mut bytes = self.valid();
        for _ in 0..=self.random.index(3) {
            let place = self.random.index(bytes.len());
            match self.random.index(3) {
                0 => bytes[place] = self.random.below(256) as u8,
                1 => bytes.insert(place, self.random.pick(b"\r\n \t:/aA0%\0")),
                _ => drop(bytes.remove(place)),
            }
        }
        bytes
    }

    fn cut(&mut self) -> Vec<u8> {
        let mut bytes = self.valid();
        bytes.truncate(self.random.index(bytes.len()).max(1));
        bytes
    }

    /// A short one in two pieces.
    fn divided(&mut self) -> Request {
        let target = self.targets[0];
        let start = format!("GET {target} HTTP/1.1");
        let bytes = text(&start, &["Host: x", "Connection: close"]);
        let place = 1 + self.divided_at % (bytes.len() - 1);
        self.divided_at += 1;
        let (first, second) = bytes.split_at(place);
        Request {
            kind: "divided",
            pieces: vec![first.to_vec(), second.to_vec()],
        }
    }

    /// Two or three at once.
    fn several(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..=self.random.index(2) {
            let target = self.random.pick(self.targets);
            bytes.extend(text(&format!("GET {target} HTTP/1.1"), &["Host: x"]));
        }
        bytes.extend(self.valid());
        bytes
    }
}

/// A head.
fn text(start: &str, lines: &[&str]) -> Vec<u8> {
    let mut text = format!("{start}\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_requests_and_another_one_others() {
        let of_seed = |seed| requests(seed, 80, &["/a", "/b"]).collect::<Vec<_>>();
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
    }

    #[test]
    fn a_valid_request_is_divided_at_every_byte() {
        let divided = |request: &Request| request.kind == "divided";
        let all = requests(1, 800, &["/a"]).filter(divided);
        let first: std::collections::BTreeSet<usize> =
            all.map(|request| request.pieces[0].len()).collect();
        let whole = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".len();
        assert_eq!(first, (1..whole).collect());
    }
}

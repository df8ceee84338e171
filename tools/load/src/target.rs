//! Where requests go and what their bytes are.
//!
//! URLs, files of URLs with weights and inject's page files become endpoints (an address to
//! connect to) and targets (ready request bytes for one endpoint). Everything is resolved and
//! written out once, before the run.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::SockAddr;

use crate::mix::Random;
use crate::multiplexed::{FieldRequest, Protocol};
use crate::template::Filler;

/// Most targets of one run: each holds its request's bytes.
const TARGETS_MAX: usize = 1_000_000;
/// Time one address of a name with several is given to accept a trial connection.
const PROBE_TIME: Duration = Duration::from_millis(500);

/// An address to connect to.
pub(crate) struct Endpoint {
    /// What connect(2) takes.
    pub(crate) address: SockAddr,
    /// `host:port` as printed.
    pub(crate) label: String,
    /// The host name for SNI and certificate checks.
    pub(crate) host: String,
    /// Whether the connection begins with a TLS handshake.
    pub(crate) tls: bool,
    /// Whether the address is on this machine for certain: the handshake then ends in connect(2).
    pub(crate) local: bool,
    /// Whether it is TCP (not a unix socket).
    pub(crate) tcp: bool,
}

/// A request, ready to send.
pub(crate) struct Target {
    /// Index of its endpoint.
    pub(crate) endpoint: usize,
    /// The request's bytes, repeated as often as requests are pipelined.
    pub(crate) bytes: Vec<u8>,
    /// Length of one request in `bytes`.
    pub(crate) length: usize,
    /// Pause after the answer, in nanoseconds (inject's think time).
    pub(crate) think_ns: u64,
    /// Whether the answer has no body whatever its head says (HEAD).
    pub(crate) head_only: bool,
    /// The request for a connection with streams, where it has some.
    pub(crate) fields: Option<FieldRequest>,
}

/// All endpoints and targets, and the order in which they are taken.
pub(crate) struct Targets {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) targets: Vec<Target>,
    /// One after the other (inject's pages) instead of drawn by weight.
    pub(crate) in_order: bool,
    has_think_time: bool,
    /// Running sum of the weights of all targets.
    sums: Vec<f64>,
    /// Per endpoint: its targets and the running sum of their weights.
    by_endpoint: Vec<(Vec<u32>, Vec<f64>)>,
}

/// What every request has beside its URL.
#[derive(Debug, Clone)]
pub(crate) struct RequestShape {
    pub(crate) method: String,
    /// `Name: value` lines.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
    /// `user:password`.
    pub(crate) credentials: Option<String>,
    pub(crate) keep_alive: bool,
    pub(crate) pipeline: usize,
    pub(crate) protocol: Protocol,
    /// Connect to this socket file, whatever the URL's host is.
    pub(crate) unix: Option<PathBuf>,
    /// How many variants of each request are filled in, and by which seed.
    pub(crate) variants: Option<(u64, u64)>,
}

/// One request as the command line or a file named it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedRequest {
    pub(crate) url: Url,
    pub(crate) weight: f64,
    /// The method, where the file names one.
    pub(crate) method: Option<String>,
    pub(crate) think: Duration,
}

/// The parts of a URL that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As written, for the Host field.
    pub(crate) authority: String,
    /// Path and query, at least `/`.
    pub(crate) target: String,
    pub(crate) unix: Option<PathBuf>,
}

/// Why there is nothing to drive.
#[derive(Debug)]
pub(crate) enum TargetError {
    /// Not a URL this tool understands.
    Url(String),
    /// A URL whose port is none: the URL, and the port.
    Port(String, String),
    /// A name cannot be resolved, or the file behind a socket cannot be named.
    Resolve(String, io::Error),
    /// A file cannot be read.
    File(PathBuf, io::Error),
    /// A line of a file makes no sense.
    Line(PathBuf, usize),
    /// No URL at all.
    Nothing,
    /// More than [`TARGETS_MAX`].
    TooMany,
    /// A template that cannot be filled in.
    Template(String),
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TargetError::Url(url) => write!(
                formatter,
                "invalid URL: {url} (it must be http://HOST/, https://HOST/ or unix:/SOCKET:/)"
            ),
            TargetError::Port(url, port) => write!(
                formatter,
                "invalid URL: {url} (\"{port}\" is not a port: 1 to 65535)"
            ),
            TargetError::Resolve(name, error) => {
                write!(formatter, "unable to connect to {name} {error}")
            }
            TargetError::File(path, error) => {
                write!(formatter, "cannot read {}: {error}", path.display())
            }
            TargetError::Line(path, line) => {
                write!(
                    formatter,
                    "cannot understand line {line} of {}",
                    path.display()
                )
            }
            TargetError::Nothing => formatter.write_str("no URL given"),
            TargetError::TooMany => write!(formatter, "more than {TARGETS_MAX} targets"),
            TargetError::Template(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for TargetError {}

impl Targets {
    /// Resolves names and writes the requests out.
    ///
    /// # Errors
    /// When there is nothing to drive or a name cannot be resolved.
    pub(crate) fn build(
        wishes: &[NamedRequest],
        shape: &RequestShape,
        in_order: bool,
    ) -> Result<Targets, TargetError> {
        if wishes.is_empty() {
            return Err(TargetError::Nothing);
        }
        let variants = shape.variants.map_or(1, |(count, _)| count);
        if wishes.len() as u64 > TARGETS_MAX as u64 / variants.max(1) {
            return Err(TargetError::TooMany);
        }
        let mut built = Targets {
            endpoints: Vec::new(),
            targets: Vec::new(),
            in_order,
            has_think_time: wishes.iter().any(|wish| !wish.think.is_zero()),
            sums: Vec::new(),
            by_endpoint: Vec::new(),
        };
        for wish in wishes {
            built.add(wish, shape)?;
        }
        Ok(built)
    }

    /// Draws the target of a new connection.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        if self.targets.len() == 1 {
            0
        } else {
            draw_sum(&self.sums, random)
        }
    }

    /// Draws the next target of a connection that is open to `endpoint`.
    #[inline]
    pub(crate) fn draw_at(&self, endpoint: usize, random: &mut Random) -> usize {
        if self.targets.len() == 1 {
            return 0;
        }
        let Some((targets, sums)) = self.by_endpoint.get(endpoint) else {
            return 0;
        };
        targets
            .get(draw_sum(sums, random))
            .map_or(0, |target| *target as usize)
    }

    /// Whether any target has a pause after its answer.
    pub(crate) fn has_think_time(&self) -> bool {
        self.has_think_time
    }

    fn add(&mut self, wish: &NamedRequest, shape: &RequestShape) -> Result<(), TargetError> {
        let unix = wish.url.unix.as_ref().or(shape.unix.as_ref());
        let label = match unix {
            Some(path) => format!("unix:{}", path.display()),
            None => format!("{}:{}", wish.url.host, wish.url.port),
        };
        let same = |known: &Endpoint| {
            known.label == label && known.tls == wish.url.tls && known.host == wish.url.host
        };
        let endpoint = match self.endpoints.iter().position(same) {
            Some(index) => index,
            None => {
                self.endpoints
                    .push(resolve(&wish.url, unix.map(PathBuf::as_path), label)?);
                self.by_endpoint.push((Vec::new(), Vec::new()));
                self.endpoints.len() - 1
            }
        };
        let requests = requests(wish, shape)?;
        let weight = wish.weight / requests.len().max(1) as f64;
        for one in requests {
            let index = u32::try_from(self.targets.len()).map_err(|_| TargetError::TooMany)?;
            self.targets.push(Target {
                endpoint,
                length: one.bytes.len(),
                bytes: one.bytes.repeat(shape.pipeline.max(1)),
                fields: one.fields,
                think_ns: u64::try_from(wish.think.as_nanos()).unwrap_or(u64::MAX),
                head_only: wish.method.as_ref().unwrap_or(&shape.method) == "HEAD",
            });
            self.sums
                .push(self.sums.last().copied().unwrap_or(0.0) + weight);
            if let Some((targets, sums)) = self.by_endpoint.get_mut(endpoint) {
                targets.push(index);
                sums.push(sums.last().copied().unwrap_or(0.0) + weight);
            }
        }
        Ok(())
    }
}

impl Url {
    /// Reads `http://host[:port]/path`, `https://...` or `unix:/socket/file:/path`. What names a
    /// host and no scheme is meant with `http://`, as curl has it.
    ///
    /// # Errors
    /// When the text is none of these.
    pub(crate) fn parse(text: &str) -> Result<Url, TargetError> {
        let bad = || TargetError::Url(text.to_owned());
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(bad());
        }
        if let Some(rest) = text
            .strip_prefix("unix:")
            .or(text.strip_prefix("http://unix:"))
        {
            return Ok(Url::unix(rest));
        }
        let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let parts = text.split_once("://");
        let (tls, rest) = match parts.filter(|(scheme, _)| is_scheme(scheme)) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            None if names_host(text) => (false, text),
            _ => return Err(bad()),
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, port) = split_authority(authority).ok_or_else(bad)?;
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(port) => match port.parse() {
                Ok(number @ 1..) => number,
                _ => return Err(TargetError::Port(text.to_owned(), port.to_owned())),
            },
        };
        let target = match target.as_bytes().first() {
            None => "/".to_owned(),
            Some(b'/') => target.to_owned(),
            Some(_) => format!("/{target}"),
        };
        Ok(Url {
            tls,
            host,
            port,
            authority: authority.to_owned(),
            target,
            unix: None,
        })
    }

    fn unix(rest: &str) -> Url {
        let (path, target) = rest.split_once(':').unwrap_or((rest, "/"));
        Url {
            tls: false,
            host: "localhost".to_owned(),
            port: 80,
            authority: "localhost".to_owned(),
            target: if target.is_empty() {
                "/".to_owned()
            } else {
                target.to_owned()
            },
            unix: Some(PathBuf::from(path)),
        }
    }
}

/// Reads a file of URLs: `URL [WEIGHT]` a line, `#` begins a comment.
///
/// # Errors
/// When the file cannot be read or a line makes no sense.
pub(crate) fn read_urls(path: &Path) -> Result<Vec<NamedRequest>, TargetError> {
    let mut wishes = Vec::new();
    for (number, line) in read_lines(path)? {
        let mut words = line.split_whitespace();
        let Some(url) = words.next() else { continue };
        let weight = words.next().map_or(Ok(1.0), str::parse::<f64>);
        let weight = weight
            .ok()
            .filter(|weight| *weight > 0.0 && weight.is_finite());
        let (Some(weight), None) = (weight, words.next()) else {
            return Err(TargetError::Line(path.to_owned(), number));
        };
        wishes.push(NamedRequest {
            url: Url::parse(url)?,
            weight,
            method: None,
            think: Duration::ZERO,
        });
    }
    Ok(wishes)
}

/// Reads inject's page file: `new NAME THINK_MS` begins a page, `get|head|post HOST:PORT URI`
/// is an object of it; several words may share a line, and `-` repeats the host before.
///
/// # Errors
/// When the file cannot be read or a word makes no sense.
pub(crate) fn read_pages(path: &Path) -> Result<Vec<NamedRequest>, TargetError> {
    let mut wishes: Vec<NamedRequest> = Vec::new();
    let mut think = Duration::ZERO;
    let mut host = String::new();
    for (number, line) in read_lines(path)? {
        let bad = || TargetError::Line(path.to_owned(), number);
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            let (first, second) = (words.next().ok_or_else(bad)?, words.next().ok_or_else(bad)?);
            if word.eq_ignore_ascii_case("new") {
                end_page(&mut wishes, think);
                think = Duration::from_millis(second.parse().map_err(|_| bad())?);
                continue;
            }
            if !["get", "head", "post"]
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
            {
                return Err(bad());
            }
            if first != "-" {
                first.clone_into(&mut host);
            }
            let url = Url::parse(&format!("http://{host}{second}"))?;
            let method = Some(word.to_ascii_uppercase());
            wishes.push(NamedRequest {
                url,
                weight: 1.0,
                method,
                think: Duration::ZERO,
            });
        }
    }
    end_page(&mut wishes, think);
    Ok(wishes)
}

/// The think time of a page follows its last object.
fn end_page(wishes: &mut [NamedRequest], think: Duration) {
    if let Some(last) = wishes.last_mut() {
        last.think = think;
    }
}

fn read_lines(path: &Path) -> Result<Vec<(usize, String)>, TargetError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| TargetError::File(path.to_owned(), error))?;
    let lines = text.lines().enumerate();
    let kept = lines.filter(|(_, line)| !line.trim_start().starts_with('#'));
    Ok(kept
        .map(|(index, line)| (index + 1, line.to_owned()))
        .collect())
}

/// Whether a text without a scheme begins with what can only be a host: this machine's name, an
/// address, or a name with a port.
fn names_host(text: &str) -> bool {
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let authority = text.get(..end).unwrap_or_default();
    let Some((host, port)) = split_authority(authority) else {
        return false;
    };
    let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty();
    host == "localhost" || host.parse::<IpAddr>().is_ok() || port.is_some_and(is_number)
}

fn split_authority(authority: &str) -> Option<(String, Option<&str>)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        (host, after.strip_prefix(':'))
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn resolve(url: &Url, unix: Option<&Path>, label: String) -> Result<Endpoint, TargetError> {
    let failed = |error| TargetError::Resolve(label.clone(), error);
    let (address, local) = match unix {
        Some(path) => (SockAddr::unix(path).map_err(failed)?, true),
        None => {
            let name = (url.host.as_str(), url.port);
            let found: Vec<SocketAddr> = name.to_socket_addrs().map_err(failed)?.collect();
            let address = choose(&found).ok_or_else(|| {
                failed(io::Error::new(
                    io::ErrorKind::NotFound,
                    "name has no address",
                ))
            })?;
            (SockAddr::from(address), address.ip().is_loopback())
        }
    };
    Ok(Endpoint {
        address,
        host: url.host.clone(),
        tls: url.tls,
        local,
        tcp: unix.is_none(),
        label,
    })
}

/// The first address that accepts a connection, or the first at all. A name with one address is
/// not tried, so that the server sees nothing but the run.
fn choose(found: &[SocketAddr]) -> Option<SocketAddr> {
    let answers =
        |address: &&SocketAddr| std::net::TcpStream::connect_timeout(address, PROBE_TIME).is_ok();
    if found.len() < 2 {
        return found.first().copied();
    }
    found.iter().find(answers).or(found.first()).copied()
}

/// A request for the protocol that is spoken.
struct Written {
    /// Of HTTP/1.
    bytes: Vec<u8>,
    fields: Option<FieldRequest>,
}

impl Written {
    fn of(wish: &NamedRequest, shape: &RequestShape) -> Written {
        if shape.protocol.has_streams() {
            Written {
                bytes: Vec::new(),
                fields: Some(field_request(wish, shape)),
            }
        } else {
            Written {
                bytes: write_request(wish, shape),
                fields: None,
            }
        }
    }
}

/// The request, once or for each variant.
fn requests(wish: &NamedRequest, shape: &RequestShape) -> Result<Vec<Written>, TargetError> {
    let Some((count, seed)) = shape.variants else {
        return Ok(vec![Written::of(wish, shape)]);
    };
    let not_text = || TargetError::Template("a body with templates must be UTF-8".to_owned());
    let body = str::from_utf8(&shape.body).map_err(|_| not_text())?;
    let mut filler = Filler::new(seed);
    let mut written = Vec::new();
    for _ in 0..count {
        let mut fill = |text: &str| filler.fill(text).map_err(TargetError::Template);
        let (mut wish, mut shape) = (wish.clone(), shape.clone());
        wish.url.target = fill(&wish.url.target)?;
        shape.headers = shape
            .headers
            .iter()
            .map(|line| fill(line))
            .collect::<Result<_, _>>()?;
        shape.body = fill(body)?.into_bytes();
        written.push(Written::of(&wish, &shape));
        filler.next();
    }
    Ok(written)
}

fn write_request(wish: &NamedRequest, shape: &RequestShape) -> Vec<u8> {
    let method = wish.method.as_deref().unwrap_or(&shape.method);
    let mut text = format!("{method} {} HTTP/1.1\r\n", wish.url.target);
    let given = |name: &str| {
        shape.headers.iter().any(|line| {
            line.split_once(':')
                .is_some_and(|(field, _)| field.trim().eq_ignore_ascii_case(name))
        })
    };
    if !given("host") {
        text.push_str(&format!("Host: {}\r\n", wish.url.authority));
    }
    for line in &shape.headers {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        text.push_str(&format!("{}: {}\r\n", name.trim(), value.trim()));
    }
    if let Some(credentials) = shape
        .credentials
        .as_ref()
        .filter(|_| !given("authorization"))
    {
        text.push_str(&format!("Authorization: {}\r\n", basic(credentials)));
    }
    if !shape.keep_alive && !given("connection") {
        text.push_str("Connection: close\r\n");
    }
    if !shape.body.is_empty() && !given("content-length") {
        text.push_str(&format!("Content-Length: {}\r\n", shape.body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&shape.body);
    bytes
}

/// The request's fields and body for HTTP/2 and HTTP/3 (RFC 9113 section 8.3.1, RFC 9114 section
/// 4.3.1).
fn field_request(wish: &NamedRequest, shape: &RequestShape) -> FieldRequest {
    let method = wish.method.as_deref().unwrap_or(&shape.method);
    let scheme = if wish.url.tls { "https" } else { "http" };
    let given = |name: &str| {
        let lines = shape.headers.iter().filter_map(|line| line.split_once(':'));
        let mut lines = lines.filter(|(field, _)| field.trim().eq_ignore_ascii_case(name));
        lines.next().map(|(_, value)| value.trim())
    };
    let authority = given("host").unwrap_or(&wish.url.authority);
    let mut fields = vec![
        (":method".to_owned(), method.to_owned()),
        (":scheme".to_owned(), scheme.to_owned()),
        (":authority".to_owned(), authority.to_owned()),
        (":path".to_owned(), wish.url.target.clone()),
    ];
    for line in &shape.headers {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let name = name.trim().to_ascii_lowercase();
        // These belong to connections of HTTP/1 (RFC 9113 section 8.2.2); the host stands above.
        if !matches!(name.as_str(), "host" | "connection" | "keep-alive") {
            fields.push((name, value.trim().to_owned()));
        }
    }
    if let (Some(credentials), None) = (&shape.credentials, given("authorization")) {
        fields.push(("authorization".to_owned(), basic(credentials)));
    }
    if !shape.body.is_empty() && given("content-length").is_none() {
        let length = shape.body.len().to_string();
        fields.push(("content-length".to_owned(), length));
    }
    FieldRequest {
        fields: fields
            .into_iter()
            .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
            .collect(),
        body: shape.body.clone(),
    }
}

fn basic(credentials: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
    format!("Basic {encoded}")
}

fn draw_sum(sums: &[f64], random: &mut Random) -> usize {
    let total = sums.last().copied().unwrap_or(0.0);
    let point = random.unit() * total;
    sums.partition_point(|sum| *sum <= point)
        .min(sums.len().saturating_sub(1))
}

#[cfg(test)]
mod tests;

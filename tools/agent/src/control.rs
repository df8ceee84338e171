//! The server's control socket: a line of JSON for a request, and one for its answer.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take: the server itself has 10 minutes for commands of groups, and a
/// reload of a large configuration takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest answer: a list of all servers of 5,000 groups has some megabytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A connection to a server's control socket.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    requests: u64,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum ControlError {
    /// The socket, and the system's error.
    Socket(PathBuf, io::Error),
    /// The server's own words, with its code.
    Answer { code: String, message: String },
    /// The answer is not what the server promises.
    Odd(PathBuf, &'static str),
}

impl fmt::Display for ControlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::Socket(path, error) => {
                write!(formatter, "control socket {}: {error}", path.display())
            }
            ControlError::Answer { code, message } => write!(formatter, "{message} ({code})"),
            ControlError::Odd(path, text) => {
                write!(formatter, "control socket {}: {text}", path.display())
            }
        }
    }
}

impl std::error::Error for ControlError {}

impl Control {
    /// Connects to a server.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(path: &Path) -> Result<Control, ControlError> {
        let failed = |error| ControlError::Socket(path.to_path_buf(), error);
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .map_err(failed)?;
        stream
            .set_write_timeout(Some(ANSWER_TIMEOUT))
            .map_err(failed)?;
        Ok(Control {
            path: path.to_path_buf(),
            stream: BufReader::new(stream),
            requests: 0,
        })
    }

    /// Asks for a verb with its arguments, and returns the result.
    ///
    /// # Errors
    /// The connection fails, or the server's answer is an error.
    pub fn ask(&mut self, verb: &str, mut arguments: Value) -> Result<Value, ControlError> {
        let failed = |error| ControlError::Socket(self.path.clone(), error);
        self.requests += 1;
        arguments["verb"] = verb.into();
        arguments["id"] = self.requests.into();
        let line = format!("{arguments}\n");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .map_err(failed)?;
        let mut answer = String::new();
        let mut limited = io::Read::take(&mut self.stream, ANSWER_BYTES_MAX);
        limited.read_line(&mut answer).map_err(failed)?;
        let odd = |text| ControlError::Odd(self.path.clone(), text);
        let mut answer: Value =
            serde_json::from_str(&answer).map_err(|_| odd("the answer is not a line of JSON"))?;
        if answer["id"] != json!(self.requests) {
            return Err(odd("the answer is to another request"));
        }
        let error = &answer["error"];
        if error.is_object() {
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            return Err(ControlError::Answer {
                code: text("code"),
                message: text("message"),
            });
        }
        Ok(answer["result"].take())
    }
}

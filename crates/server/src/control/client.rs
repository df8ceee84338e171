//! The asking end: one connection, one request after another.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;
use turnpike_plan::control::Arguments;

use super::{Request, RequestError};

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The server cannot be reached, or has gone away.
    Connection(io::Error),
    /// The server refused.
    Refused(RequestError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Connection(error) => {
                write!(formatter, "{}", turnpike_lane::log::Errno(error))
            }
            Trouble::Refused(failure) => formatter.write_str(&failure.message),
        }
    }
}

impl std::error::Error for Trouble {}

/// A connection to a control socket.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    asked: u64,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Those of `connect(2)`.
    pub fn connect(path: &Path) -> io::Result<Client> {
        let reader = BufReader::new(UnixStream::connect(path)?);
        Ok(Client { reader, asked: 0 })
    }

    /// Asks, and waits for the answer as long as it takes: the server has its own limits.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn ask(&mut self, verb: &str, arguments: Arguments) -> Result<Value, Trouble> {
        self.asked += 1;
        let request = Request {
            id: self.asked.into(),
            verb: verb.to_owned(),
            arguments,
        };
        let line = request.line() + "\n";
        let sent = self.reader.get_mut().write_all(line.as_bytes());
        sent.map_err(Trouble::Connection)?;
        loop {
            let mut line = String::new();
            let count = self.reader.read_line(&mut line);
            if count.map_err(Trouble::Connection)? == 0 {
                return Err(Trouble::Connection(io::ErrorKind::UnexpectedEof.into()));
            }
            let answer: Value = serde_json::from_str(&line)
                .map_err(|error| Trouble::Connection(io::Error::other(error)))?;
            if answer["id"] != request.id && !answer["id"].is_null() {
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(Trouble::Refused(RequestError::from_value(error))),
                None => Ok(answer["result"].clone()),
            };
        }
    }
}

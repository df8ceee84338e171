//! The clients that are commands: curl and OpenSSL's `s_client`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::matrix::Found;
use super::serving::pattern;
use super::{Asked, LARGE_BYTES, POST_BYTES, Protocol};
use crate::outcome::Outcome;

/// Seconds that a transfer may take on a busy machine.
const DEADLINE_SECONDS: &str = "120";

/// A client's requests, by the names of the cells.
type Requests<'a> = &'a [(&'a str, &'a dyn Fn() -> Outcome)];

/// Asks by curl.
pub(super) fn curl(asked: &Asked, protocol: Protocol) -> Vec<Found> {
    let curl = Curl { asked, protocol };
    ask(&[
        ("page", &|| curl.page()),
        ("post", &|| curl.post()),
        ("large", &|| {
            let got = curl.bytes(&[&asked.open("/large")])?;
            same(&got, &pattern(LARGE_BYTES))
        }),
        ("certificate", &|| curl.certificate()),
        ("resumed", &|| curl.resumed()),
    ])
}

/// Asks by `s_client`.
pub(super) fn openssl(asked: &Asked) -> Vec<Found> {
    let request = "GET /facts HTTP/1.0\r\n\r\n";
    let first = s_client(asked, request, &["-sess_out", "session"])
        .and_then(|said| expect(&said, "[early= reused=.]"));
    ask(&[
        ("resumed", &|| {
            first.clone()?;
            let said = s_client(
                asked,
                request,
                &["-sess_in", "session", "-sess_out", "second"],
            )?;
            expect(&said, "[early= reused=r]")
        }),
        ("early", &|| {
            let written = std::fs::write(asked.keys.path().join("early"), request);
            written.map_err(|error| error.to_string())?;
            let early = ["-sess_in", "second", "-early_data", "early"];
            let said = s_client(asked, "", &early)?;
            expect(&said, "Early data was accepted")?;
            // A busy server may read the end of the handshake with the request: then it is not 1.
            expect(&said, "reused=r]")
        }),
    ])
}

fn ask(requests: Requests) -> Vec<Found> {
    let found = requests
        .iter()
        .map(|(cell, request)| ((*cell).to_owned(), request()));
    found.collect()
}

struct Curl<'a> {
    asked: &'a Asked,
    protocol: Protocol,
}

impl Curl<'_> {
    fn page(&self) -> Outcome {
        let got = self.text(&[&self.asked.open("/page")])?;
        expect(&got, &format!("a page over {}", self.protocol.name()))
    }

    fn post(&self) -> Outcome {
        let body = pattern(POST_BYTES);
        let file = self.asked.keys.path().join("body");
        std::fs::write(&file, &body).map_err(|error| error.to_string())?;
        let data = format!("@{}", file.display());
        same(
            &self.bytes(&["--data-binary", &data, &self.asked.open("/post")])?,
            &body,
        )
    }

    /// A client without a certificate is refused, one with it is known.
    fn certificate(&self) -> Outcome {
        let url = self.asked.known();
        let got = self.text(&["--write-out", "status %{http_code}", &url])?;
        expect(&got, "status 400")?;
        let got = self.text(&["--cert", "client.pem", "--key", "client.key", &url])?;
        expect(&got, "verify=SUCCESS CN=client")
    }

    /// The second transfer begins a connection, as it is bound to an address. Where the server ends
    /// a connection of HTTP/2 instead, curl 7.88 has no session for the next, nginx's either.
    fn resumed(&self) -> Outcome {
        let url = self.asked.open("/facts");
        let bound = ["--next", "--silent", "--cacert", "root.pem"];
        let bound = [
            &bound[..],
            &["--interface", "127.0.0.1", self.option(), &url],
        ]
        .concat();
        let got = self.text(&[&[url.as_str()], &bound[..]].concat())?;
        expect(&got, "[early= reused=.][early= reused=r]")
    }

    fn text(&self, arguments: &[&str]) -> Result<String, String> {
        Ok(String::from_utf8_lossy(&self.bytes(arguments)?).into_owned())
    }

    fn option(&self) -> &'static str {
        match self.protocol {
            Protocol::One => "--http1.1",
            Protocol::Two => "--http2",
        }
    }

    fn bytes(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new("curl")
            .current_dir(self.asked.keys.path())
            .args(["--silent", "--show-error", "--cacert", "root.pem"])
            .args(["--max-time", DEADLINE_SECONDS, self.option()])
            .args(arguments)
            .output()
            .map_err(|error| format!("curl: {error}"))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

/// What `s_client` says until the server closes the connection.
fn s_client(asked: &Asked, request: &str, arguments: &[&str]) -> Result<String, String> {
    let address = format!("localhost:{}", asked.server.port_named("ONCE"));
    let mut child = Command::new("openssl")
        .current_dir(asked.keys.path())
        .args(["s_client", "-connect", &address, "-CAfile", "root.pem"])
        .args(["-servername", "localhost", "-verify_return_error"])
        .args(["-tls1_3", "-ign_eof"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("openssl: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A client that has ended already says why in its output.
        let _ = input.write_all(request.as_bytes());
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| format!("openssl: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn expect(got: &str, wanted: &str) -> Outcome {
    if got.contains(wanted) {
        Ok(())
    } else {
        Err(format!("no \"{wanted}\" in {got:?}"))
    }
}

fn same(got: &[u8], wanted: &[u8]) -> Outcome {
    if got == wanted {
        Ok(())
    } else {
        Err(format!("{} other bytes came", got.len()))
    }
}

//! WebSockets through our server, judged by programs that share no code with ours: conversations
//! with an echo must be the same directly and through the proxy, over TLS, by HTTP/1.1 and on
//! streams of HTTP/2.

use std::process::Command;

use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::{Companion, Environment};
use crate::workspace::must;

const PROGRAM: &str = include_str!("judge.py");

const ENVIRONMENT: Environment = Environment {
    folder: "websockets",
    imports: "h2.connection, websockets.asyncio.server",
    packages: &["websockets==16.1.1", "h2==4.4.1"],
};

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    server {
        listen 127.0.0.1:%PORT% ssl;
        http2 on;
        ssl_certificate %KEYS%/server.pem;
        ssl_certificate_key %KEYS%/server.key;
        location /socket {
            proxy_pass http://127.0.0.1:%ECHO%;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
        }
    }
}
";

/// Has the conversations, and compares them.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let python = ENVIRONMENT.python()?;
    let program = ENVIRONMENT.program("judge.py", PROGRAM)?;
    let keys = Certificates::create(&[("server", Kind::Rsa)])?;
    let echo = Companion::start(Command::new(&python).arg(&program).arg("echo"))?;
    let [echo_port] = echo.ports;
    let configuration = CONFIGURATION
        .replace("%KEYS%", &keys.path().display().to_string())
        .replace("%ECHO%", &echo_port.to_string());
    let server = ours.start(&configuration)?;
    let judged = must(
        Command::new(&python)
            .arg(&program)
            .arg("judge")
            .args([echo_port.to_string(), server.port().to_string()]),
    );
    judged.map_err(|error| format!("{error}\n{}", server.log("error.log")))
}

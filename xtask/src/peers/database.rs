//! PostgreSQL through TCP, used by psql and pgbench, with TLS and without: large tables copied out
//! and in, a transaction over a reload, and many short connections while reloads go on.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::{Folder, Server, Signal, ports, process};

use super::with_reloads;
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::outcome::Outcome;

/// The longest wait for PostgreSQL to start.
const DEADLINE: Duration = Duration::from_secs(60);

/// Rows of the copied table: some twenty megabytes, more than all buffers on the way.
const ROWS: usize = 400_000;

/// Bytes between two reloads while the table is copied.
const BYTES_PER_RELOAD: usize = 2 * 1024 * 1024;

const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
stream {
    log_format line '$status $bytes_received $bytes_sent';
    access_log %FOLDER%/access.log line;
    # The request for TLS, which is answered by S or N.
    match postgres { send "\x00\x00\x00\x08\x04\xd2\x16\x2f"; expect ~ "^[SN]"; }
    upstream database { server 127.0.0.1:%DATABASE%; }
    server {
        listen 127.0.0.1:%PORT%;
        proxy_pass database;
        health_check interval=100ms match=postgres;
    }
}
"#;

/// Uses a PostgreSQL of its own through our server.
pub(super) fn run(ours: &Contender) -> Outcome {
    let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
    let database = Database::start(&keys)?;
    let text = CONFIGURATION.replace("%DATABASE%", &database.port.to_string());
    let mut server = ours.start(&text)?;
    let plain = format!("port={} sslmode=disable", server.port());
    let root = keys.path().join("root.pem").display().to_string();
    let secure = format!(
        "port={} sslmode=verify-full sslrootcert={root}",
        server.port()
    );
    let direct = format!("port={} sslmode=disable", database.port);
    let uses_tls = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    expect("TLS", &database.ask(&secure, uses_tls)?, "t\n")?;
    expect("no TLS", &database.ask(&plain, uses_tls)?, "f\n")?;
    let made = format!(
        "CREATE TABLE lines AS SELECT id, md5(id::text) AS line \
         FROM generate_series(1, {ROWS}) AS id"
    );
    database.ask(&direct, &made)?;
    let whole = database.copied_out(&direct, None)?;
    for (name, at) in [("plain", &plain), ("TLS", &secure)] {
        let copied = database.copied_out(at, Some(&server))?;
        if copied != whole {
            let (copied, whole) = (copied.len(), whole.len());
            return Err(format!("{name}: {copied} bytes were copied out of {whole}"));
        }
        database.ask(
            at,
            "DROP TABLE IF EXISTS others; CREATE TABLE others (LIKE lines)",
        )?;
        database.copy_in(at, &whole, &server)?;
        let differing = "SELECT count(*) FROM others FULL JOIN lines USING (id, line) \
                         WHERE others.id IS NULL OR lines.id IS NULL";
        expect(
            "rows that differ",
            &database.ask(&direct, differing)?,
            "0\n",
        )?;
        println!(
            "peers: {} bytes copied out of PostgreSQL and in, {name}",
            whole.len()
        );
    }
    database.transaction(&secure, &mut server)?;
    let (counted, reloads) = with_reloads(&server, || database.bench(&plain));
    let transactions = counted.map_err(|error| format!("{error}\n{}", server.log("error.log")))?;
    println!("peers: pgbench made {transactions} connections, {reloads} reloads meanwhile");
    if server.log("error.log").contains("unhealthy") {
        Err(format!("a check failed:\n{}", server.log("error.log")))
    } else {
        Ok(())
    }
}

fn expect(what: &str, found: &str, expected: &str) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}"))
    }
}

/// A running PostgreSQL with data of its own.
struct Database {
    port: u16,
    programs: PathBuf,
    child: Child,
    _folder: Folder,
}

impl Database {
    fn start(keys: &Certificates) -> Result<Database, String> {
        let programs = programs()?;
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let port = ports::reserve().ok_or("no free port")?;
        let data = folder.path().join("data");
        furnish(&data, keys).map_err(|error| format!("{}: {error}", data.display()))?;
        let mut make = as_owner(&programs.join("initdb"));
        make.args([
            "--auth=trust",
            "--username=tester",
            "--no-sync",
            "--locale=C.UTF-8",
        ]);
        make.arg("-D").arg(data.join("base"));
        let made = make.stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let made = made.map_err(|error| format!("initdb: {error}"))?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let mut serve = as_owner(&programs.join("postgres"));
        serve.arg("-D").arg(data.join("base"));
        let port_text = port.to_string();
        let (certificate, key) = (data.join("server.pem"), data.join("server.key"));
        for (name, value) in [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port_text),
            ("unix_socket_directories", ""),
            ("fsync", "off"),
            ("ssl", "on"),
            ("ssl_cert_file", &certificate.display().to_string()),
            ("ssl_key_file", &key.display().to_string()),
        ] {
            serve.arg("-c").arg(format!("{name}={value}"));
        }
        let child = serve.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("postgres: {error}"))?;
        let mut database = Database {
            port,
            programs,
            child,
            _folder: folder,
        };
        database.wait()?;
        Ok(database)
    }

    fn wait(&mut self) -> Outcome {
        let start = Instant::now();
        let at = format!("port={} sslmode=disable", self.port);
        while let Err(error) = self.ask(&at, "SELECT 1") {
            if start.elapsed() > DEADLINE || !matches!(self.child.try_wait(), Ok(None)) {
                return Err(format!("PostgreSQL did not start: {error}"));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// A client of the database at an address.
    fn psql(&self, at: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command.arg(format!(
            "host=localhost hostaddr=127.0.0.1 dbname=postgres user=tester {at}"
        ));
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        command.args(["--set", "ON_ERROR_STOP=1"]);
        command
    }

    /// What a statement answers.
    fn ask(&self, at: &str, statement: &str) -> Result<String, String> {
        let output = self.psql(at).args(["--command", statement]).output();
        let output = output.map_err(|error| format!("psql: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// The table as text; with a server, which is reloaded while it comes.
    fn copied_out(&self, at: &str, server: Option<&Server>) -> Result<Vec<u8>, String> {
        let statement = "COPY (SELECT * FROM lines ORDER BY id) TO STDOUT";
        let mut client = self.psql(at);
        client.args(["--command", statement]).stdout(Stdio::piped());
        let mut client = client.spawn().map_err(|error| format!("psql: {error}"))?;
        let mut output = client.stdout.take().ok_or("psql has no output")?;
        let (mut text, mut piece, mut reloaded) = (Vec::new(), vec![0; 64 * 1024], 0);
        loop {
            let count = output.read(&mut piece).map_err(|error| error.to_string())?;
            if count == 0 {
                break;
            }
            text.extend_from_slice(&piece[..count]);
            if let Some(server) = server.filter(|_| text.len() - reloaded >= BYTES_PER_RELOAD) {
                server.signal(Signal::SIGHUP);
                reloaded = text.len();
            }
        }
        let status = client.wait().map_err(|error| error.to_string())?;
        if status.success() {
            Ok(text)
        } else {
            Err(format!("psql: {status}"))
        }
    }

    /// Fills the other table with text; the server is reloaded meanwhile.
    fn copy_in(&self, at: &str, text: &[u8], server: &Server) -> Outcome {
        let mut client = self.psql(at);
        client.args(["--command", "COPY others FROM STDIN"]);
        client.stdin(Stdio::piped());
        let mut client = client.spawn().map_err(|error| format!("psql: {error}"))?;
        let mut input = client.stdin.take().ok_or("psql has no input")?;
        for piece in text.chunks(BYTES_PER_RELOAD) {
            input.write_all(piece).map_err(|error| error.to_string())?;
            server.signal(Signal::SIGHUP);
        }
        drop(input);
        let status = client.wait().map_err(|error| error.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("psql: {status}"))
        }
    }

    /// A transaction that begins before a reload with fewer lanes, and ends after it.
    fn transaction(&self, at: &str, server: &mut Server) -> Outcome {
        let text = CONFIGURATION.replace("%DATABASE%", &self.port.to_string());
        let mut client = self.psql(at);
        client.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = client.spawn().map_err(|error| format!("psql: {error}"))?;
        let (input, output) = (client.stdin.take(), client.stdout.take());
        let (mut input, mut output) = input.zip(output).ok_or("psql has no input")?;
        let mut say = |text: &str| {
            let said = input.write_all(text.as_bytes());
            said.and_then(|()| input.flush())
                .map_err(|error| error.to_string())
        };
        say("BEGIN; CREATE TABLE kept (id int); INSERT INTO kept VALUES (1); SELECT 'begun';\n")?;
        let mut begun = [0; 6];
        output
            .read_exact(&mut begun)
            .map_err(|error| error.to_string())?;
        server.write_configuration(&text.replace("worker_processes 2", "worker_processes 1"));
        server.signal(Signal::SIGHUP);
        server.wait_for_log("error.log", "lanes 1 (before 2)");
        say("INSERT INTO kept VALUES (2); COMMIT; SELECT sum(id) FROM kept;\n")?;
        drop(input);
        let mut rest = String::new();
        output
            .read_to_string(&mut rest)
            .map_err(|error| error.to_string())?;
        client.wait().map_err(|error| error.to_string())?;
        expect("the transaction", rest.trim(), "3")
    }

    /// Many short connections; returns their number.
    fn bench(&self, at: &str) -> Result<String, String> {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(self.programs.join("pgbench"));
            command.env("PGSSLMODE", "disable").args(arguments);
            let port = at.split(['=', ' ']).nth(1).unwrap_or_default();
            command.args(["-h", "127.0.0.1", "-p", port, "-U", "tester", "postgres"]);
            let output = command
                .output()
                .map_err(|error| format!("pgbench: {error}"))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                Ok(text)
            } else {
                Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
            }
        };
        run(&["--initialize", "--quiet"])?;
        let text = run(&[
            "--client=4",
            "--jobs=2",
            "--connect",
            "--select-only",
            "--time=5",
        ])?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|line| line.trim().to_owned())
        };
        let failed = value("number of failed transactions:").unwrap_or_default();
        expect("failed transactions", &failed, "0 (0.000%)")?;
        let made = value("number of transactions actually processed:");
        made.ok_or_else(|| format!("pgbench counts nothing: {text}"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Open sessions are ended.
        process::signal(self.child.id(), Signal::SIGINT);
        let _ = self.child.wait();
    }
}

/// The folder of the newest PostgreSQL of Debian.
fn programs() -> Result<PathBuf, String> {
    let missing = "no PostgreSQL; please run: cargo xtask setup peers";
    let versions = std::fs::read_dir("/usr/lib/postgresql").map_err(|_| missing)?;
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    let found = folders
        .filter(|folder| folder.join("initdb").exists())
        .max();
    found.ok_or_else(|| missing.to_owned())
}

/// A program as the user who owns the data: PostgreSQL refuses root.
fn as_owner(program: &Path) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

/// Makes the folder of the data, with a certificate that its owner alone can read.
fn furnish(data: &Path, keys: &Certificates) -> std::io::Result<()> {
    std::fs::create_dir(data)?;
    for name in ["server.pem", "server.key"] {
        std::fs::copy(keys.path().join(name), data.join(name))?;
    }
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(data.join("server.key"), mode)?;
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let user = nix::unistd::User::from_name("postgres")?;
    let user = user.ok_or_else(|| std::io::Error::other("no user \"postgres\""))?;
    let (uid, gid) = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    for path in [
        data.to_path_buf(),
        data.join("server.pem"),
        data.join("server.key"),
    ] {
        chown(path, uid, gid)?;
    }
    Ok(())
}

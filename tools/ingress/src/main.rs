//! `turnpike-ingress`: a configuration of Turnpike from Kubernetes' objects, without a cluster.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use turnpike_ingress::{
    Cluster, Finding, GatewayServices, Level, Objects, Options, Rendering, judge, settle,
};

const USAGE: &str = "\
turnpike-ingress render FOLDER [FLAG...]   print the configuration for the manifests of a folder
turnpike-ingress check FOLDER [FLAG...]    show which of the manifests work
turnpike-ingress run [FLAG...]             watch a cluster and keep a server in step with it

Certificates and files of users are written to the folder of --files (turnpike-ingress.d).
--server PROGRAM names the server that checks the configuration; without it, the one beside this
program or on the PATH is used. The other flags are those of ingress-nginx.
";

/// The exit status if nothing could be done.
const FAILED: u8 = 2;

/// What the command line says.
struct Arguments {
    command: String,
    folder: PathBuf,
    server: Option<PathBuf>,
    options: Options,
    notes: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if words.iter().any(|word| word == "--version") {
        println!("turnpike-ingress {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match arguments(&words).and_then(|arguments| run(&arguments)) {
        Ok(code) => code,
        Err(text) => {
            eprintln!("turnpike-ingress: {text}");
            ExitCode::from(FAILED)
        }
    }
}

fn arguments(words: &[String]) -> Result<Arguments, String> {
    let mut options = Options {
        resolvers: resolvers(Path::new("/etc/resolv.conf")),
        has_ipv6: Path::new("/proc/net/if_inet6").exists(),
        ..Options::default()
    };
    let mut places = Vec::new();
    let mut notes = Vec::new();
    let mut server = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let next = words.get(at).map(String::as_str);
        if word == "--server" {
            server = Some(PathBuf::from(next.ok_or("--server needs a program")?));
            at += 1;
        } else if word.starts_with('-') {
            let is_next_taken = options.take(word, next, &mut notes);
            at += usize::from(is_next_taken.map_err(|error| error.to_string())?);
        } else {
            places.push(word.clone());
        }
    }
    // The server would look for other paths from its own folder.
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| error.to_string());
    options.files = absolute(&options.files)?;
    options.temporary = absolute(&options.temporary)?;
    if places == ["run"] {
        places.push(String::new());
    }
    let [command, folder] = <[String; 2]>::try_from(places)
        .map_err(|_| format!("a command and a folder are needed\n\n{USAGE}"))?;
    Ok(Arguments {
        command,
        folder: PathBuf::from(folder),
        server: server.or_else(beside),
        options,
        notes,
    })
}

/// The server beside this program, or on the PATH.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let own = own.and_then(|own| own.parent().map(|folder| folder.join("turnpike")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).map(|folder| folder.join("turnpike"));
    let others: Vec<PathBuf> = others.collect();
    own.into_iter()
        .chain(others)
        .find(|program| program.is_file())
}

/// The DNS servers of this machine.
fn resolvers(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver"));
    let addresses = lines.filter_map(|rest| rest.trim().parse::<std::net::IpAddr>().ok());
    addresses
        .map(|address| {
            if address.is_ipv6() {
                format!("[{address}]")
            } else {
                address.to_string()
            }
        })
        .collect()
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    if !matches!(arguments.command.as_str(), "render" | "check" | "run") {
        return Err(format!(
            "there is no command {}\n\n{USAGE}",
            arguments.command
        ));
    }
    for note in &arguments.notes {
        eprintln!("note: {note}");
    }
    if arguments.command == "run" {
        turnpike_ingress::run(cluster(arguments)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let objects = Objects::read_folder(&arguments.folder).map_err(|error| error.to_string())?;
    let rendering = checked(arguments, &objects)?;
    if arguments.command == "check" {
        return Ok(report(&objects, &rendering.findings));
    }
    rendering.write_files()?;
    print!("{}", rendering.configuration);
    for finding in &rendering.findings {
        eprintln!("{finding}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What `run` needs. A pod knows itself by the variables that its manifest gives it.
fn cluster(arguments: &Arguments) -> Result<Cluster, String> {
    let program = arguments.server.clone();
    let program = program.ok_or("no server is found: give --server")?;
    let variable = |name: &str, default: &str| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .unwrap_or(default.to_owned())
    };
    let mut options = arguments.options.clone();
    let given = options.cluster.clone();
    let own = variable("POD_NAMESPACE", "default");
    if options
        .namespace
        .as_ref()
        .is_some_and(|watched| *watched != own)
    {
        eprintln!(
            "note: Gateways are not served: namespace {own} with their Services is not watched"
        );
    }
    options.gateway_services = Some(GatewayServices {
        namespace: own.clone(),
        ..given.gateway_services
    });
    Ok(Cluster {
        api_server: given.api_server,
        kubeconfig: given.kubeconfig,
        program,
        folder: given.folder,
        health_address: format!("{}:{}", given.health_host, given.health_port),
        lease: (!given.is_election_off).then_some(given.lease),
        lease_s: given.lease_s,
        namespace: own,
        identity: variable(
            "POD_NAME",
            &format!("turnpike-ingress-{}", std::process::id()),
        ),
        status_addresses: given.status_addresses,
        status_service: given.status_service,
        writes_status: !given.is_status_off,
        writes_events: !given.are_events_off,
        options,
    })
}

/// The configuration as far as the server takes it.
fn checked(arguments: &Arguments, objects: &Objects) -> Result<Rendering, String> {
    let Some(server) = &arguments.server else {
        eprintln!("note: no server is found to check the configuration: give --server");
        return turnpike_ingress::render(objects, &arguments.options);
    };
    let draft = arguments.options.files.join("draft.conf");
    let rendering = settle(objects, &arguments.options, |rendering| {
        rendering.write_files()?;
        std::fs::write(&draft, &rendering.configuration)
            .map_err(|error| format!("{}: {error}", draft.display()))?;
        judge(server, &draft)
    });
    let _ = std::fs::remove_file(&draft);
    rendering
}

/// Prints what does not work, sorted by object, and what does.
fn report(objects: &Objects, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    let (notes, left_out) = (count(Level::Note), count(Level::LeftOut));
    let closed = count(Level::Closed);
    let touched = objects.ingresses.keys().filter(|(namespace, name)| {
        findings.iter().any(|finding| {
            let subject = &finding.subject;
            subject.namespace == *namespace && subject.name == *name && finding.level > Level::Note
        })
    });
    let (all, touched) = (objects.ingresses.len(), touched.count());
    println!(
        "{} of {all} Ingresses work as they are; {left_out} left out, {closed} closed, \
         {notes} notes",
        all - touched
    );
    match left_out + closed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}

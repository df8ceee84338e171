//! Gateway API's own conformance suite against the controller.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::balancer::Balancer;
use super::cluster::Cluster;
use super::node::Node;
use crate::go_program;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// The folder of the suite with the programs that its tests run, and the packages.
const SOURCE: &str = "kubernetes/conformance";
const SUITE: &str = "sigs.k8s.io/gateway-api/conformance";
const ECHO: &str = "sigs.k8s.io/gateway-api/conformance/echo-basic";

/// The folder and the package of the DNS server that tests of UDP ask.
const DNS_SOURCE: &str = "kubernetes/coredns";
const DNS: &str = "github.com/coredns/coredns";

/// The module with the definitions of the kinds, as the suite wants them.
const DEFINITIONS: &str = "sigs.k8s.io/gateway-api@v1.6.1/config/crd/standard";

/// The GatewayClass of the tests.
const MANIFEST: &str = include_str!("../../../contrib/kubernetes/gateway-class.yaml");
const CLASS: &str = "turnpike";

/// The profiles whose core tests must pass.
const PROFILES: &str = "GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP";

/// How long the suite may take: its tests wait for a minute or more where something is missing.
const SUITE_TIMEOUT: &str = "40m";

/// The time between two looks at pods and Services.
const TURN: Duration = Duration::from_millis(100);

/// The programs.
pub(super) struct Programs {
    suite: PathBuf,
    echo: PathBuf,
    dns: PathBuf,
}

/// Builds them, where that was not done.
///
/// # Errors
/// Those of Go.
pub(super) fn build() -> Result<Programs, String> {
    Ok(Programs {
        suite: go_program::build_test(SOURCE, SUITE)?,
        echo: go_program::build(SOURCE, ECHO)?,
        dns: go_program::build(DNS_SOURCE, DNS)?,
    })
}

/// Defines Gateway API's kinds, with the class of the tests.
///
/// # Errors
/// A definition cannot be read, or the API server does not take it.
pub(super) fn install(cluster: &Cluster) -> Outcome {
    let folder = go_program::modules(SOURCE).join(DEFINITIONS);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        for document in text.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(document)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            if object["kind"] == "CustomResourceDefinition" {
                cluster.apply(&object, false)?;
            }
        }
    }
    let class: Value = serde_saphyr::from_str(MANIFEST).map_err(|error| error.to_string())?;
    super::came("the kinds of Gateway API", || {
        cluster.apply(&class, false).ok()
    })
}

/// Runs the suite, with pods and addresses, and writes its report.
///
/// # Errors
/// A test fails.
pub(super) fn run(cluster: &mut Cluster, programs: &Programs, one_test: Option<&str>) -> Outcome {
    let pods = vec![
        ("echo-basic", programs.echo.clone()),
        ("coredns", programs.dns.clone()),
    ];
    let mut node = Node::join(cluster, pods)?;
    let mut balancer = Balancer::default();
    let class = format!("/apis/gateway.networking.k8s.io/v1/gatewayclasses/{CLASS}");
    super::came("what the class supports", || {
        let features = &cluster.read(&class).ok()?["status"]["supportedFeatures"];
        features.is_array().then_some(())
    })?;
    let report = workspace::target().join("kubernetes/conformance-report.yaml");
    let mut suite = Command::new(&programs.suite)
        .current_dir(cluster.folder())
        .arg(format!("-test.timeout={SUITE_TIMEOUT}"))
        .args(["-test.v", "-test.run=^TestConformance$"])
        .arg(format!("-gateway-class={CLASS}"))
        .arg(format!("-conformance-profiles={PROFILES}"))
        .args(arguments(&report))
        .args(one_test.map(|name| format!("-run-test={name}")))
        .env("KUBECONFIG", cluster.folder().join("administrator.yaml"))
        .stdin(Stdio::null())
        .stdout(cluster.create_log("suite")?)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("the suite does not start: {error}"))?;
    let ended = loop {
        let turned = node.turn(cluster).and_then(|()| balancer.turn(cluster));
        if let Err(error) = turned {
            let _ = suite.kill(); // it may have ended
            let _ = suite.wait();
            return Err(error);
        }
        match suite.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(TURN),
            Err(error) => return Err(format!("the suite: {error}")),
        }
    };
    let log = cluster.log("suite");
    let count = |mark: &str| log.lines().filter(|line| line.starts_with(mark)).count();
    println!(
        "kubernetes: of Gateway API's tests {} pass, {} fail, {} are not for us",
        count("    --- PASS"),
        count("    --- FAIL"),
        count("    --- SKIP"),
    );
    if ended.success() {
        return Ok(());
    }
    let copy = workspace::target().join("kubernetes/conformance.log");
    must(
        Command::new("cp")
            .arg(cluster.folder().join("suite.log"))
            .arg(&copy),
    )?;
    for line in log
        .lines()
        .filter(|line| line.trim_start().starts_with("--- FAIL"))
    {
        eprintln!("{line}");
    }
    Err(format!("the suite ended with {ended}: {}", copy.display()))
}

/// What the report says about us.
fn arguments(report: &Path) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    vec![
        format!("-report-output={}", report.display()),
        "-organization=turnpike".to_owned(),
        "-project=turnpike".to_owned(),
        "-url=https://turnpike.example".to_owned(),
        format!("-version=v{version}"),
        "-contact=@turnpike".to_owned(),
    ]
}

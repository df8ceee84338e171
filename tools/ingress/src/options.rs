//! The options that shape a configuration, and the command-line flags of ingress-nginx: each is
//! used, changes nothing (with the reason), or is refused by its name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use turnpike_conf::did_you_mean;

use crate::values::flag;

/// What an administrator says about the cluster and the server; only `run` uses it.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    pub api_server: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    /// The folder of what the server is given: its main file, its control socket, groups' states.
    pub folder: PathBuf,
    pub health_host: String,
    pub health_port: u16,
    /// The name of the Lease.
    pub lease: String,
    pub lease_s: u32,
    /// Whether every controller writes status.
    pub is_election_off: bool,
    pub status_addresses: Vec<String>,
    pub status_service: Option<String>,
    pub is_status_off: bool,
    pub are_events_off: bool,
    /// Where the admission webhook listens; none: there is no webhook.
    pub webhook_address: Option<String>,
    /// The files of its certificate and key; none: the controller makes its own.
    pub webhook_certificate: Option<PathBuf>,
    pub webhook_key: Option<PathBuf>,
    /// The name of its Service, its Secret and its ValidatingWebhookConfiguration.
    pub webhook_name: String,
    pub gateway_services: GatewayServices,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            api_server: None,
            kubeconfig: None,
            folder: PathBuf::from("/var/lib/turnpike-ingress"),
            health_host: "0.0.0.0".to_owned(),
            health_port: 10254,
            lease: "ingress-controller-leader".to_owned(),
            lease_s: 30,
            is_election_off: false,
            status_addresses: Vec::new(),
            status_service: None,
            is_status_off: false,
            are_events_off: false,
            webhook_address: None,
            webhook_certificate: None,
            webhook_key: None,
            webhook_name: "turnpike-ingress-admission".to_owned(),
            gateway_services: GatewayServices::default(),
        }
    }
}

/// What the Services of Gateways are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayServices {
    /// The controller's own namespace, where they are made.
    pub namespace: String,
    /// The labels of the controller's pods.
    pub selector: BTreeMap<String, String>,
    /// The ports of the container that Gateways are given: the first and the last of each range.
    pub ports: Vec<(u16, u16)>,
    /// The type of the Services.
    pub kind: String,
}

impl Default for GatewayServices {
    fn default() -> GatewayServices {
        let label = ("app.kubernetes.io/name", "turnpike-ingress");
        let selector = [label].map(|(name, value)| (name.to_owned(), value.to_owned()));
        GatewayServices {
            namespace: String::new(),
            selector: selector.into(),
            ports: vec![(20000, 20999)],
            kind: "LoadBalancer".to_owned(),
        }
    }
}

/// What an administrator says on the command line.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: ClusterOptions,
    /// The prefix of annotations.
    pub annotations_prefix: String,
    /// Names of Ingress classes that are ours.
    pub class: String,
    /// The `controller` of IngressClasses that are ours.
    pub controller: String,
    /// The `controllerName` of GatewayClasses that are ours.
    pub gateway_controller: String,
    /// How each Gateway gets a Service of its own; none: each listens on the ports that it names.
    pub gateway_services: Option<GatewayServices>,
    /// Whether a class is ours by its name alone.
    pub is_class_by_name: bool,
    /// Whether Ingresses without a class are ours.
    pub without_class: bool,
    /// `namespace/name` of the ConfigMap.
    pub config_map: Option<String>,
    /// `namespace/name` of the Service for what no rule matches.
    pub default_backend: Option<String>,
    /// `namespace/name` of the Secret for servers without one.
    pub default_certificate: Option<String>,
    /// `namespace/name` of the ConfigMaps of TCP and UDP services.
    pub tcp_services: Option<String>,
    pub udp_services: Option<String>,
    /// The namespace to look at; all if none.
    pub namespace: Option<String>,
    pub http_port: u16,
    pub https_port: u16,
    /// The port of 127.0.0.1 for the pod's probes and the server's state.
    pub status_port: u16,
    /// The port of 127.0.0.1 behind `ssl-passthrough`.
    pub passthrough_port: u16,
    pub health_path: String,
    pub has_passthrough: bool,
    pub is_catch_all_off: bool,
    pub is_external_name_off: bool,
    /// The zone of this pod's node, if endpoints are chosen by it.
    pub zone: Option<String>,
    /// The folder of certificates, keys and files of users.
    pub files: PathBuf,
    /// The folder in which groups keep their servers; none writes them into the configuration.
    pub state: Option<PathBuf>,
    /// The folder of the control socket and the pid file; none leaves both to the server.
    pub control: Option<PathBuf>,
    /// The folder of temporary files of requests and answers.
    pub temporary: PathBuf,
    /// The addresses of DNS servers.
    pub resolvers: Vec<String>,
    /// The ports on which a tenant's stream-snippet may listen.
    pub stream_ports: Vec<u16>,
    /// Whether servers listen on addresses of IPv6 too.
    pub has_ipv6: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cluster: ClusterOptions::default(),
            annotations_prefix: "nginx.ingress.kubernetes.io".to_owned(),
            class: "nginx".to_owned(),
            controller: "k8s.io/ingress-nginx".to_owned(),
            gateway_controller: "turnpike/gateway".to_owned(),
            gateway_services: None,
            is_class_by_name: false,
            without_class: false,
            config_map: None,
            default_backend: None,
            default_certificate: None,
            tcp_services: None,
            udp_services: None,
            namespace: None,
            http_port: 80,
            https_port: 443,
            status_port: 10246,
            passthrough_port: 442,
            health_path: "/healthz".to_owned(),
            has_passthrough: false,
            is_catch_all_off: false,
            is_external_name_off: false,
            zone: None,
            files: PathBuf::from("turnpike-ingress.d"),
            state: None,
            control: None,
            temporary: PathBuf::from("/tmp"),
            resolvers: Vec::new(),
            stream_ports: Vec::new(),
            has_ipv6: false,
        }
    }
}

/// What becomes of a flag.
#[derive(Clone, Copy)]
pub enum FlagUse {
    /// Sets an option; an error says what its value should be.
    Sets(fn(&mut Options, &str) -> Result<(), &'static str>),
    /// As [`FlagUse::Sets`], for a flag that may stand without a value.
    Switches(fn(&mut Options, bool)),
    /// Taken, and changes nothing, and why.
    WithoutEffect(&'static str),
    /// Refused, and what to do.
    Refused(&'static str),
}

impl fmt::Debug for FlagUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FlagUse::Sets(_) => "Sets",
            FlagUse::Switches(_) => "Switches",
            FlagUse::WithoutEffect(_) => "WithoutEffect",
            FlagUse::Refused(_) => "Refused",
        })
    }
}

/// A command-line flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name behind `--`.
    pub name: &'static str,
    pub used: FlagUse,
}

/// Why a command line is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// The flag, and what its value should be.
    Value(String, &'static str),
    /// The flag, and the reason.
    Refused(String, &'static str),
    /// The flag, with a hint.
    Unknown(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Value(name, expected) => {
                write!(formatter, "--{name}: the value is not {expected}")
            }
            OptionError::Refused(name, reason) => {
                write!(formatter, "--{name} is refused: {reason}")
            }
            OptionError::Unknown(text) => write!(formatter, "there is no flag --{text}"),
        }
    }
}

impl std::error::Error for OptionError {}

impl Options {
    /// Takes one flag, which starts with one or two hyphens. The next argument is its value if it
    /// needs one and has no `=`; returns whether that argument was taken. Notes come back as texts.
    ///
    /// # Errors
    /// The flag is unknown or refused, or its value is not good.
    pub fn take(
        &mut self,
        argument: &str,
        next: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<bool, OptionError> {
        let written = argument.trim_start_matches('-');
        let (name, value) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (written, None),
        };
        let Some(row) = flags().find(|row| row.name == name) else {
            let names = flags().map(|row| row.name);
            let hint = did_you_mean(name, names).unwrap_or_default();
            return Err(OptionError::Unknown(format!("{name}{hint}")));
        };
        let bad = |expected| OptionError::Value(name.to_owned(), expected);
        match row.used {
            FlagUse::Switches(set) => {
                let value = value.map_or(Some(true), flag);
                set(self, value.ok_or_else(|| bad("true or false"))?);
                Ok(false)
            }
            FlagUse::Sets(set) => {
                let (value, is_next) = match value {
                    Some(value) => (value, false),
                    None => (next.ok_or_else(|| bad("there"))?, true),
                };
                set(self, value).map_err(bad)?;
                Ok(is_next)
            }
            FlagUse::WithoutEffect(reason) => {
                notes.push(format!("--{name} changes nothing: {reason}"));
                Ok(false) // a value stands behind `=`: a switch may stand before the folder
            }
            FlagUse::Refused(reason) => Err(OptionError::Refused(name.to_owned(), reason)),
        }
    }
}

/// Every flag, those of ingress-nginx and our own.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter()
}

const NO_DOWNLOAD: &str =
    "databases are not downloaded: mount them, and name them by geoip2 in http-snippet";
const NO_BUCKETS: &str = "the server's own metrics have the times and sizes of requests";
const NO_GRACE: &str = "the server finishes its requests, for at most worker-shutdown-timeout";

const fn sets(name: &'static str, set: fn(&mut Options, &str) -> Result<(), &'static str>) -> Flag {
    let used = FlagUse::Sets(set);
    Flag { name, used }
}

const fn switches(name: &'static str, set: fn(&mut Options, bool)) -> Flag {
    let used = FlagUse::Switches(set);
    Flag { name, used }
}

const fn without_effect(name: &'static str, reason: &'static str) -> Flag {
    let used = FlagUse::WithoutEffect(reason);
    Flag { name, used }
}

const fn refused(name: &'static str, reason: &'static str) -> Flag {
    let used = FlagUse::Refused(reason);
    Flag { name, used }
}

fn some(field: &mut Option<String>, value: &str) -> Result<(), &'static str> {
    match value.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            *field = Some(value.to_owned());
            Ok(())
        }
        _ => Err("NAMESPACE/NAME"),
    }
}

fn port(field: &mut u16, value: &str) -> Result<(), &'static str> {
    *field = value.parse().map_err(|_| "a port")?;
    Ok(())
}

fn text(field: &mut String, value: &str) -> Result<(), &'static str> {
    value.clone_into(field);
    Ok(())
}

static FLAGS: &[Flag] = &[
    sets("annotations-prefix", |options, value| {
        text(&mut options.annotations_prefix, value)
    }),
    sets("configmap", |options, value| {
        some(&mut options.config_map, value)
    }),
    sets("controller-class", |options, value| {
        text(&mut options.controller, value)
    }),
    sets("default-backend-service", |options, value| {
        some(&mut options.default_backend, value)
    }),
    sets("default-ssl-certificate", |options, value| {
        some(&mut options.default_certificate, value)
    }),
    sets("files", |options, value| {
        options.files = PathBuf::from(value);
        Ok(())
    }),
    sets("gateway-controller-class", |options, value| {
        text(&mut options.gateway_controller, value)
    }),
    sets("gateway-ports", |options, value| {
        let ranges = value.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (0 < first && first <= last).then_some((first, last))
        });
        let ranges: Option<Vec<(u16, u16)>> = ranges.collect();
        options.cluster.gateway_services.ports = ranges.ok_or("FIRST-LAST[,FIRST-LAST...]")?;
        Ok(())
    }),
    sets("gateway-service-selector", |options, value| {
        let pairs = value.split(',').map(|pair| pair.split_once('='));
        let pairs = pairs.map(|pair| pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let selector: Option<BTreeMap<_, _>> = pairs.collect();
        options.cluster.gateway_services.selector = selector.ok_or("NAME=VALUE[,NAME=VALUE...]")?;
        Ok(())
    }),
    sets("gateway-service-type", |options, value| {
        if !matches!(value, "LoadBalancer" | "NodePort" | "ClusterIP") {
            return Err("LoadBalancer, NodePort or ClusterIP");
        }
        text(&mut options.cluster.gateway_services.kind, value)
    }),
    sets("health-check-path", |options, value| {
        text(&mut options.health_path, value)
    }),
    sets("http-port", |options, value| {
        port(&mut options.http_port, value)
    }),
    sets("https-port", |options, value| {
        port(&mut options.https_port, value)
    }),
    sets("ingress-class", |options, value| {
        text(&mut options.class, value)
    }),
    sets("resolver", |options, value| {
        options.resolvers.push(value.to_owned());
        Ok(())
    }),
    sets("ssl-passthrough-proxy-port", |options, value| {
        port(&mut options.passthrough_port, value)
    }),
    sets("status-port", |options, value| {
        port(&mut options.status_port, value)
    }),
    sets("stream-snippet-ports", |options, value| {
        let ports: Result<_, _> = value.split(',').map(str::parse).collect();
        options.stream_ports = ports.map_err(|_| "a list of ports")?;
        Ok(())
    }),
    sets("temporary", |options, value| {
        options.temporary = PathBuf::from(value);
        Ok(())
    }),
    sets("tcp-services-configmap", |options, value| {
        some(&mut options.tcp_services, value)
    }),
    sets("udp-services-configmap", |options, value| {
        some(&mut options.udp_services, value)
    }),
    sets("watch-namespace", |options, value| {
        options.namespace = Some(value.to_owned());
        Ok(())
    }),
    sets("zone", |options, value| {
        options.zone = Some(value.to_owned());
        Ok(())
    }),
    sets("apiserver-host", |options, value| {
        options.cluster.api_server = Some(value.to_owned());
        Ok(())
    }),
    sets("election-id", |options, value| {
        text(&mut options.cluster.lease, value)
    }),
    sets("election-ttl", |options, value| {
        let seconds = turnpike_conf::value::seconds(value).and_then(|value| value.try_into().ok());
        options.cluster.lease_s = seconds.ok_or("a time")?;
        Ok(())
    }),
    sets("folder", |options, value| {
        options.cluster.folder = PathBuf::from(value);
        Ok(())
    }),
    sets("healthz-host", |options, value| {
        text(&mut options.cluster.health_host, value)
    }),
    sets("healthz-port", |options, value| {
        port(&mut options.cluster.health_port, value)
    }),
    sets("kubeconfig", |options, value| {
        options.cluster.kubeconfig = Some(PathBuf::from(value));
        Ok(())
    }),
    sets("publish-service", |options, value| {
        some(&mut options.cluster.status_service, value)
    }),
    sets("validating-webhook", |options, value| {
        let port = value.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        let Some(Ok(_)) = port else {
            return Err("[ADDRESS]:PORT");
        };
        let all = if value.starts_with(':') {
            "0.0.0.0"
        } else {
            ""
        };
        options.cluster.webhook_address = Some(format!("{all}{value}"));
        Ok(())
    }),
    sets("validating-webhook-certificate", |options, value| {
        options.cluster.webhook_certificate = Some(PathBuf::from(value));
        Ok(())
    }),
    sets("validating-webhook-key", |options, value| {
        options.cluster.webhook_key = Some(PathBuf::from(value));
        Ok(())
    }),
    sets("validating-webhook-name", |options, value| {
        text(&mut options.cluster.webhook_name, value)
    }),
    sets("publish-status-address", |options, value| {
        let addresses = crate::values::split(value).map(str::to_owned);
        options.cluster.status_addresses = addresses.collect();
        Ok(())
    }),
    switches("disable-leader-election", |options, on| {
        options.cluster.is_election_off = on;
    }),
    switches("disable-sync-events", |options, on| {
        options.cluster.are_events_off = on;
    }),
    switches("update-status", |options, on| {
        options.cluster.is_status_off = !on;
    }),
    switches("disable-catch-all", |options, on| {
        options.is_catch_all_off = on;
    }),
    switches("disable-svc-external-name", |options, on| {
        options.is_external_name_off = on;
    }),
    switches("enable-ssl-passthrough", |options, on| {
        options.has_passthrough = on;
    }),
    switches("ingress-class-by-name", |options, on| {
        options.is_class_by_name = on;
    }),
    switches("watch-ingress-without-class", |options, on| {
        options.without_class = on;
    }),
    without_effect("deep-inspect", "every object is always inspected"),
    without_effect(
        "default-server-port",
        "the catch-all server needs no port of its own",
    ),
    without_effect(
        "enable-annotation-validation",
        "annotations are always checked",
    ),
    refused(
        "enable-ssl-chain-completion",
        "certificates are sent as they are in the Secret: put the intermediate ones there",
    ),
    refused(
        "enable-topology-aware-routing",
        "give the zone of this node by --zone instead",
    ),
    without_effect("internal-logger-address", "logs need no second logger"),
    refused("maxmind-edition-ids", NO_DOWNLOAD),
    refused("maxmind-license-key", NO_DOWNLOAD),
    refused("maxmind-mirror", NO_DOWNLOAD),
    refused("maxmind-retries-count", NO_DOWNLOAD),
    refused("maxmind-retries-timeout", NO_DOWNLOAD),
    without_effect("profiler-port", "there is no Go profiler"),
    without_effect("profiling", "there is no Go profiler"),
    without_effect("stream-port", "nothing here runs Lua"),
    without_effect("bucket-factor", NO_BUCKETS),
    refused(
        "certificate-authority",
        "name it in the file of --kubeconfig",
    ),
    without_effect(
        "disable-full-test",
        "the server checks every configuration as a whole",
    ),
    without_effect(
        "dynamic-configuration-retries",
        "changes are retried until they take effect",
    ),
    without_effect(
        "enable-metrics",
        "metrics of the controller are always served",
    ),
    without_effect("exclude-socket-metrics", NO_BUCKETS),
    without_effect(
        "health-check-timeout",
        "the server answers its probes itself",
    ),
    without_effect("length-buckets", NO_BUCKETS),
    without_effect("max-buckets", NO_BUCKETS),
    without_effect("metrics-per-host", NO_BUCKETS),
    without_effect("metrics-per-undefined-host", NO_BUCKETS),
    without_effect("monitor-max-batch-size", NO_BUCKETS),
    without_effect("post-shutdown-grace-period", NO_GRACE),
    refused(
        "report-node-internal-ip-address",
        "give --publish-status-address",
    ),
    without_effect("report-status-classes", NO_BUCKETS),
    without_effect("shutdown-grace-period", NO_GRACE),
    without_effect("size-buckets", NO_BUCKETS),
    without_effect(
        "status-update-interval",
        "status is written when it changes",
    ),
    without_effect("sync-period", "watches report every change"),
    without_effect(
        "sync-rate-limit",
        "changes are collected for at most half a second",
    ),
    without_effect("time-buckets", NO_BUCKETS),
    without_effect(
        "update-status-on-shutdown",
        "the status stays: another pod serves",
    ),
    refused("watch-namespace-selector", "give --watch-namespace"),
    without_effect("v", "messages have no levels"),
];

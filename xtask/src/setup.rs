//! Installs the Debian packages that a chore needs, and lists them. It starts no service and
//! upgrades no installed package.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use turnpike_testkit::process::find_program;

use crate::outcome::Outcome;
use crate::workspace::must;

struct Package {
    name: &'static str,
    /// A file or command that proves it on a machine without dpkg.
    proof: &'static str,
}

const fn package(name: &'static str, proof: &'static str) -> Package {
    Package { name, proof }
}

struct Set {
    name: &'static str,
    purpose: &'static str,
    packages: &'static [Package],
}

const SETS: &[Set] = &[
    Set {
        name: "build",
        purpose: "to build the server",
        packages: &[
            package("gcc", "cc"),
            package("make", "make"),
            package("pkg-config", "pkg-config"),
            package("libelf-dev", "/usr/include/libelf.h"),
            package("zlib1g-dev", "/usr/include/zlib.h"),
            package("libcrypt-dev", "/usr/include/crypt.h"),
        ],
    },
    Set {
        name: "test",
        purpose: "to test and measure it with foreign clients beside nginx",
        packages: &[
            package("g++", "c++"), // libFuzzer, which the fuzz targets are linked with
            package("nginx-light", "nginx"),
            package("wrk", "wrk"),
            package("apache2-utils", "ab"),
            package("curl", "curl"),
            package("ca-certificates", "/etc/ssl/certs/ca-certificates.crt"),
            package("openssl", "openssl"), // makes the certificates of tests
            package("strace", "strace"),
            package("procps", "ps"),
            package("netcat-openbsd", "nc"),
            package("php-fpm", "php-fpm8.2"), // an application for FastCGI
            package("uwsgi-core", "uwsgi"),
            package(
                "uwsgi-plugin-python3",
                "/usr/lib/uwsgi/plugins/python3_plugin.so",
            ),
            package("memcached", "memcached"),
            package("redis-server", "redis-server"), // behind stream, with redis-tools' clients
            package("dnsmasq-base", "dnsmasq"),
            package("bind9-dnsutils", "dig"),
            package("chromium", "chromium"), // looks at the lab's reports
            package("iproute2", "ip"),
            package("ethtool", "ethtool"), // switches NAPI of a veth pair
            package("groff", "groff"),     // reads the manual pages
            package("prometheus", "promtool"), // reads the metrics, alert rules and queries
            package(
                "python3-prometheus-client",
                "/usr/lib/python3/dist-packages/prometheus_client",
            ),
            package("golang-go", "go"),      // builds h2spec
            package("clang-16", "clang-16"), // compiles the programs in the kernel again
            package("llvm-16", "llvm-strip-16"),
            package(
                "libclang-rt-16-dev", // sanitizers, and the fuzzer of its parser
                "/usr/lib/llvm-16/lib/clang/16/lib/linux",
            ),
            package("libbpf-dev", "/usr/include/bpf/bpf_helpers.h"),
        ],
    },
    Set {
        name: "package",
        purpose: "to build the packages and to test them in a fresh Debian",
        packages: &[
            package("binutils", "objcopy"),
            package("ca-certificates", "/etc/ssl/certs/ca-certificates.crt"),
            package("debootstrap", "debootstrap"),
            package("rpm", "rpmbuild"),
            package("buildah", "buildah"),
            package("iproute2", "ip"),
            package("systemd", "systemd-analyze"),
            package("lintian", "lintian"),
            package("zsh", "zsh"),
            package("fish", "fish"),
        ],
    },
    Set {
        name: "cross",
        purpose: "to build the package for arm64",
        packages: &[
            package("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
            package("g++-aarch64-linux-gnu", "aarch64-linux-gnu-g++"),
            // The libraries that the server is linked with, for that machine.
            package("libelf-dev:arm64", "/usr/lib/aarch64-linux-gnu/libelf.so"),
            package("zlib1g-dev:arm64", "/usr/lib/aarch64-linux-gnu/libz.so"),
            package(
                "libcrypt-dev:arm64",
                "/usr/lib/aarch64-linux-gnu/libcrypt.so",
            ),
        ],
    },
    Set {
        name: "applications",
        purpose: "to serve Debian's own applications",
        packages: &[
            package("dokuwiki", "/usr/share/dokuwiki"),
            package("php-fpm", "php-fpm8.2"),
            package("nginx-light", "/etc/nginx/fastcgi_params"),
            package("curl", "curl"),
            package("python3-venv", "/usr/lib/python3.11/ensurepip"),
        ],
    },
    Set {
        name: "tls",
        purpose: "to have foreign programs judge and use our TLS",
        packages: &[
            package("testssl.sh", "testssl"),
            package("openssl", "openssl"),
            package("curl", "curl"),
            package("chromium", "chromium"),
            package("golang-go", "go"),
            package("python3-venv", "/usr/lib/python3.11/ensurepip"),
        ],
    },
    Set {
        name: "peers",
        purpose: "to use foreign servers through ours",
        packages: &[
            package("postgresql", "/usr/lib/postgresql"),
            package("nginx-light", "/etc/nginx/uwsgi_params"),
            package("openssl", "openssl"),
            package("gcc", "cc"), // builds uWSGI
            package("python3-dev", "/usr/include/python3.11/Python.h"),
            package("python3-venv", "/usr/lib/python3.11/ensurepip"),
        ],
    },
    Set {
        name: "http2",
        purpose: "to load our HTTP/2 by foreign clients",
        packages: &[
            package("curl", "curl"),
            package("chromium", "chromium"),
            package("nghttp2-client", "h2load"),
            package("nodejs", "node"),
            package("golang-go", "go"),
            package("default-jdk-headless", "javac"),
            package("maven", "mvn"),
            package("python3-venv", "/usr/lib/python3.11/ensurepip"),
        ],
    },
    Set {
        name: "accessibility",
        purpose: "to judge pages by axe-core",
        packages: &[package("chromium", "chromium"), package("npm", "npm")],
    },
    Set {
        name: "kubernetes",
        purpose: "to run the controller in a cluster of Kubernetes' own API server",
        packages: &[
            package("golang-go", "go"), // builds the API server
            package("etcd-server", "etcd"),
            package("nftables", "nft"),
            package("curl", "curl"),
            package("iproute2", "ip"),
            package("openssl", "openssl"),
        ],
    },
    Set {
        name: "instructions",
        purpose: "to count the instructions of a request",
        packages: &[
            package("valgrind", "valgrind"),
            package("binutils", "objdump"),
        ],
    },
    Set {
        name: "bench",
        purpose: "to run the lab's studies with every contender",
        packages: &[
            package("nginx-light", "nginx"),
            package(
                "libnginx-mod-stream",
                "/usr/lib/nginx/modules/ngx_stream_module.so",
            ),
            package("haproxy", "haproxy"),
            package("varnish", "varnishd"),
            package("caddy", "caddy"),
            package("php-fpm", "php-fpm8.2"), // an application for FastCGI
            package("wrk", "wrk"),
            package("apache2-utils", "ab"),
            package("nghttp2-client", "h2load"),
            package("iproute2", "ip"),
            package("ethtool", "ethtool"),
        ],
    },
];

/// While this file answers 101, Debian's maintainer scripts start no service.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// The names of a set's packages; none if no set is called so.
pub(crate) fn packages(name: &str) -> Vec<&'static str> {
    let set = SETS.iter().find(|set| set.name == name);
    set.into_iter()
        .flat_map(|set| set.packages)
        .map(|package| package.name)
        .collect()
}

/// Installs the missing packages of the named sets.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut missing: Vec<&str> = Vec::new();
    let names: Vec<&str> = match arguments {
        [] => SETS.iter().map(|set| set.name).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let debian = find_program("dpkg-query").is_some();
    for name in names {
        let known = || {
            SETS.iter()
                .map(|set| set.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let set = SETS
            .iter()
            .find(|set| set.name == name)
            .ok_or_else(|| format!("no set is called \"{name}\"; there are {}", known()))?;
        let absent: Vec<&Package> = set
            .packages
            .iter()
            .filter(|package| !is_present(package, debian))
            .collect();
        report(set, &absent);
        missing.extend(absent.iter().map(|package| package.name));
    }
    match (missing.is_empty(), debian) {
        (true, _) => Ok(()),
        (false, true) => install(&missing),
        (false, false) => Err(format!(
            "this is not Debian: please install what gives {} there, then run this again",
            missing.join(" ")
        )),
    }
}

fn report(set: &Set, absent: &[&Package]) {
    let names = |packages: &mut dyn Iterator<Item = &Package>| {
        packages
            .map(|package| package.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let needed = names(&mut set.packages.iter());
    let state = match absent {
        [] => "all present".to_owned(),
        some => format!("missing: {}", names(&mut some.iter().copied())),
    };
    println!("setup: {} needs {needed} ({state})", set.purpose);
}

fn is_present(package: &Package, debian: bool) -> bool {
    if debian && is_installed(package.name) {
        return true;
    }
    // Another package may give the same thing, as nginx does for nginx-light.
    if package.proof.starts_with('/') {
        Path::new(package.proof).exists()
    } else {
        find_program(package.proof).is_some()
    }
}

fn is_installed(name: &str) -> bool {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${db:Status-Status}", name])
        .stderr(Stdio::null())
        .output();
    output.is_ok_and(|output| output.stdout == b"installed")
}

fn install(missing: &[&str]) -> Outcome {
    let by_hand = || {
        format!(
            "may not install packages; please run: sudo apt-get install -y {}",
            missing.join(" ")
        )
    };
    let prefix: &[&str] = match is_root() {
        true => &[],
        false if may_sudo() => &["sudo", "-n"],
        false => return Err(by_hand()),
    };
    add_architectures(prefix, missing)?;
    let closed = ServicePolicy::close(prefix);
    // Lists may be absent in a fresh container; if they cannot be downloaded, cached ones may
    // suffice.
    if apt(prefix, &["update", "--quiet", "--quiet"]).is_err() {
        eprintln!("setup: apt-get update failed; trying with the lists that are there");
    }
    let mut arguments = vec![
        "install",
        "--quiet",
        "--quiet",
        "--yes",
        "--no-install-recommends",
    ];
    arguments.extend(missing);
    let result = apt(prefix, &arguments).map_err(|error| format!("{error}; {}", by_hand()));
    drop(closed);
    result
}

/// Has dpkg know the other machines that packages are for, such as `libelf-dev:arm64`.
fn add_architectures(prefix: &[&str], packages: &[&str]) -> Outcome {
    let names = packages.iter().filter_map(|name| name.split_once(':'));
    let mut architectures: Vec<&str> = names.map(|(_, architecture)| architecture).collect();
    architectures.dedup();
    for architecture in architectures {
        let line = [prefix, &["dpkg", "--add-architecture", architecture]].concat();
        println!("setup: {}", line.join(" "));
        must(Command::new(line[0]).args(&line[1..]))?;
    }
    Ok(())
}

fn apt(prefix: &[&str], arguments: &[&str]) -> Outcome {
    let line = [
        prefix,
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"],
        arguments,
    ]
    .concat();
    println!("setup: {}", line.join(" "));
    must(Command::new(line[0]).args(&line[1..]).stdin(Stdio::null()))
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn may_sudo() -> bool {
    find_program("sudo").is_some()
        && Command::new("sudo")
            .args(["-n", "true"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

/// Keeps maintainer scripts from starting services for as long as it lives; a policy that the
/// machine has already is left as it is.
struct ServicePolicy {
    prefix: Vec<String>,
}

impl ServicePolicy {
    fn close(prefix: &[&str]) -> Option<ServicePolicy> {
        if Path::new(SERVICE_POLICY).exists() {
            return None;
        }
        let script = format!("printf '#!/bin/sh\\nexit 101\\n' >{SERVICE_POLICY}");
        let policy = ServicePolicy {
            prefix: prefix.iter().map(ToString::to_string).collect(),
        };
        let written = policy.shell(&format!("{script} && chmod 755 {SERVICE_POLICY}"));
        written.is_ok_and(|success| success).then_some(policy)
    }

    fn shell(&self, script: &str) -> io::Result<bool> {
        let mut line = self.prefix.clone();
        line.extend(["sh", "-c", script].map(str::to_owned));
        Ok(Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::null())
            .status()?
            .success())
    }
}

impl Drop for ServicePolicy {
    fn drop(&mut self) {
        if !self
            .shell(&format!("rm -f {SERVICE_POLICY}"))
            .is_ok_and(|success| success)
        {
            eprintln!("setup: please remove {SERVICE_POLICY}");
        }
    }
}

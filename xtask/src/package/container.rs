//! The container image: the installed files, the libraries that the programs are linked with, and
//! no base image. buildah builds it without a service, and without root's help beyond files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::files::{self, PROGRAMS, Places};
use super::{Build, make, output, tree};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Where the image's own settings and accounts come from, and go.
const OWN_FILES: &[(&str, &str)] = &[
    ("contrib/container/nginx.conf", "etc/turnpike/nginx.conf"),
    (
        "contrib/container/default.conf",
        "etc/turnpike/conf.d/default.conf",
    ),
    ("contrib/container/passwd", "etc/passwd"),
    ("contrib/container/group", "etc/group"),
];

/// The certificates of public authorities, by which the server trusts others: those of ACME, and
/// upstream servers. They come from this machine's package ca-certificates.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What an installation has and a container has no use for.
const LEFT_OUT: &[&str] = &[
    "lib/systemd",
    "etc/logrotate.d",
    "usr/lib/sysusers.d",
    "usr/lib/tmpfiles.d",
    "usr/share/doc/turnpike/docs",
    "usr/share/man",
    "usr/share/bash-completion",
    "usr/share/zsh",
    "usr/share/fish",
];

/// Folders that the server writes to, as its own user.
const STATE: &[&str] = &[
    "run/turnpike",
    "var/cache/turnpike",
    "var/lib/turnpike",
    "var/log/turnpike",
    "tmp",
];

/// Folders that a container runtime mounts something on.
const MOUNTED: &[&str] = &["dev", "proc", "sys"];

/// Serves a page, answers health checks and ends, as a container runtime would have it. The first
/// argument is the folder of the unpacked image, the second its user, the third the folder of the
/// compose file.
const STEPS: &str = r#"
set -eu
cd "$1"
# The shell ignores QUIT for what it runs in the background, and the server undoes that.
turnpike() {
    exec chroot --userspec="$user:$user" . /usr/sbin/turnpike "$@"
}
user=$2
ip link set lo up
mount -t proc proc /proc
mount -t proc proc proc
mount --rbind /dev dev
# A container runtime gives the standard streams to the image's user.
: >../container.log
chown "$user" ../container.log
turnpike -g 'daemon off;' >>../container.log 2>&1 &
server=$!
curl -sS --retry 30 --retry-connrefused --retry-delay 1 http://127.0.0.1:8080/ |
    grep -q '<h1>Turnpike is running</h1>'
# The control socket is placed a moment after the server listens.
tries=100
until (turnpike status 2>/dev/null) | grep -q '^turnpike .*, running'; do
    tries=$((tries - 1))
    test "$tries" -gt 0
    sleep 0.1
done
test "$(ps -o user= -C turnpike-serve | sort -u | tr -d ' ')" = "$user"
health() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/healthz; }
test "$(health)" = 200
(turnpike status --ready >/dev/null)
kill -QUIT "$server"
wait "$server"
grep -q 'GET / HTTP/1.1' ../container.log

# The health check fails while a download keeps the drain from ending.
turnpike -g 'daemon off; shutdown_delay 5s;' >>../container.log 2>&1 &
server=$!
curl -sS -o /dev/null --retry 30 --retry-connrefused --retry-delay 1 http://127.0.0.1:8080/
kill -QUIT "$server"
tries=20
until test "$(health)" = 503; do
    tries=$((tries - 1))
    test "$tries" -gt 0
    sleep 0.05
done
if (turnpike status --ready >/dev/null 2>&1); then exit 1; fi
wait "$server"

# The configurations of the compose file, with their volumes. No name server is asked by -t.
mkdir -p var/www/html
for service in proxy php; do
    mount --bind "$3/$service" etc/turnpike/conf.d
    (turnpike -t -q) >>../container.log 2>&1 || { tail -n 5 ../container.log; exit 1; }
    umount etc/turnpike/conf.d
done
"#;

/// `cargo xtask container`: builds the image.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--programs", "--out"], &["--debug"])?;
    let build = Build::of(&options)?;
    let archive = image(&build)?;
    let bytes = fs::metadata(&archive).map_or(0, |metadata| metadata.len());
    println!(
        "container: {} {:.1} MB",
        archive.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

/// Builds the image; returns the archive, which `docker load` and `podman load` read.
pub(super) fn image(build: &Build) -> Result<PathBuf, String> {
    let context = build.staging("container")?;
    fill(build, &context.join("tree"))?;
    for folder in STATE {
        let folder = context.join("state").join(folder);
        make(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let name = format!("turnpike:{}", build.version);
    let archive = build
        .out
        .join(format!("turnpike-{}-container.tar", build.version));
    let _ = fs::remove_file(&archive); // buildah does not write over one
    must(
        buildah(build)
            .args([
                "build",
                "--quiet",
                "--isolation",
                "chroot",
                "--format",
                "docker",
            ])
            .args(["--timestamp", &build.time_s, "--tag", &name, "--file"])
            .arg(workspace::root().join("contrib/container/Containerfile"))
            .arg(&context),
    )?;
    must(
        buildah(build)
            .args(["push", "--quiet", &name])
            .arg(format!("docker-archive:{}:{name}", archive.display())),
    )?;
    Ok(archive)
}

/// The image's files: those of an installation, its own settings, and the libraries.
fn fill(build: &Build, tree: &Path) -> Outcome {
    build.write_files(tree, &Places::below(Path::new("/usr")))?;
    for path in LEFT_OUT {
        let path = tree.join(path);
        fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for (from, to) in OWN_FILES {
        let bytes = fs::read(workspace::root().join(from));
        let bytes = bytes.map_err(|error| format!("{from}: {error}"))?;
        files::put(tree, &Path::new("/").join(to), &bytes, 0o644)?;
    }
    let bytes = fs::read(AUTHORITIES).map_err(|error| format!("{AUTHORITIES}: {error}"))?;
    files::put(tree, Path::new(AUTHORITIES), &bytes, 0o644)?;
    for program in PROGRAMS {
        for library in libraries(&build.programs.join(program))? {
            let bytes = fs::read(&library);
            let bytes = bytes.map_err(|error| format!("{}: {error}", library.display()))?;
            files::put(tree, &library, &bytes, 0o755)?;
        }
    }
    for folder in MOUNTED {
        make(&tree.join(folder))?;
    }
    Ok(())
}

/// buildah with storage below target/, which needs no kernel module.
fn buildah(build: &Build) -> Command {
    let mut command = Command::new("buildah");
    let storage = build.out.join("containers");
    command.args(["--storage-driver", "vfs", "--root"]);
    command
        .arg(storage.join("root"))
        .arg("--runroot")
        .arg(storage.join("run"));
    command
}

/// The shared libraries of a program, and the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let list = output(Command::new("ldd").arg(program))?;
    let path = |line: &str| {
        line.split_whitespace()
            .find(|word| word.starts_with('/'))
            .map(PathBuf::from)
    };
    Ok(list.lines().filter_map(path).collect())
}

/// Unpacks the image and runs it as a container runtime does: with its own user, in namespaces of
/// its own, on a file system that holds nothing else.
pub(super) fn test(build: &Build) -> Outcome {
    let archive = image(build)?;
    let folder = build.staging("container-test")?;
    let root = folder.join("root");
    make(&root)?;
    must(
        Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(&folder),
    )?;
    let read = |name: &str| -> Result<Value, String> {
        let text = fs::read_to_string(folder.join(name));
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
    };
    let manifest = &read("manifest.json")?[0];
    let config = &read(manifest["Config"].as_str().unwrap_or_default())?["config"];
    if config["Healthcheck"]["Test"][1] != "/usr/sbin/turnpike" || config["StopSignal"] != "SIGQUIT"
    {
        return Err(format!("the image has another configuration: {config:#}"));
    }
    for layer in manifest["Layers"].as_array().into_iter().flatten() {
        let layer = folder.join(layer.as_str().unwrap_or_default());
        must(
            Command::new("tar")
                .arg("-xpf")
                .arg(layer)
                .arg("-C")
                .arg(&root),
        )?;
    }
    let user = config["User"]
        .as_str()
        .and_then(|user| user.split(':').next());
    let user = user.ok_or("the image has no user")?;
    must(
        Command::new("unshare")
            .args(tree::NAMESPACES)
            .args(["sh", "-c", STEPS, "sh"])
            .arg(&root)
            .arg(user)
            .arg(workspace::root().join("contrib/container/compose")),
    )?;
    println!("package-test: the container serves a page and ends cleanly");
    Ok(())
}

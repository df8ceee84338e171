//! The package `turnpike-nginx` over Debian's nginx: the switch and the switch back under load,
//! with sites, uploads, caches, log rotation, modules and certbot's plugin on either side; upgrades
//! of both, refusals, and nginx that is installed afterwards.
//!
//! The tree has no systemd. Debian's own init script does what the unit would do; what systemd
//! makes of a main process that changes follows from its documentation of `PIDFile=` alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::tree::{fresh, inside, remove};
use crate::outcome::Outcome;
use crate::workspace::must;

/// Debian's packages over which the package is installed. They are fetched once, and installed by
/// the steps, where there is no network.
const PACKAGES: &str = "nginx nginx-core libnginx-mod-http-echo python3-certbot-nginx";

/// What these need and the steps use, installed in the tree once: Python compiles certbot for
/// minutes.
const INSTALLED: &str = "python3-certbot openssl iproute2";

/// What both scripts begin with.
const COMMON: &str = r#"
set -eu
step() { echo "package-test: $*"; }
add() { apt-get install --yes --quiet=2 --no-download --no-install-recommends "$@" >/dev/null; }
ask() { curl -sS --max-time 10 --resolve site.example:443:127.0.0.1 "$@"; }
# No init system runs here: invoke-rc.d does nothing unless a policy permits it.
printf '#!/bin/sh\nexit 0\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
serves() { test "$(readlink "/proc/$(cat /run/nginx.pid)/exe")" = "$1"; }
"#;

/// The switch there and back.
const STEPS: &str = r#"
# What a server does for its users, through the compiled-in places.
works() {
    test "$(ask -o /dev/null -w %{http_code} http://127.0.0.1/)" = 200
    head -c 300000 /dev/zero >/tmp/body
    test "$(ask --data-binary @/tmp/body http://127.0.0.1/upload)" = uploaded
    stored=$(ask -o /dev/null -D - "http://127.0.0.1/cached?$1" "http://127.0.0.1/cached?$1" |
        tr -d '\r' | sed -n 's/^X-Cache: //p' | tr '\n' ' ')
    test "$stored" = 'MISS HIT '
    test "$(ask -k https://site.example/who)" = secure
    # As logrotate, monitoring and admins find it.
    pgrep -x nginx >/dev/null
    start-stop-daemon --status --pidfile /run/nginx.pid --name nginx
    invoke-rc.d nginx status >/dev/null
    invoke-rc.d nginx reload >/dev/null
    logrotate -f /etc/logrotate.d/nginx
    sleep 1
    ask http://127.0.0.1/rotated -o /dev/null
    test -s /var/log/nginx/access.log.1
    grep -q /rotated /var/log/nginx/access.log
    test "$(stat -c %a:%U:%G /var/log/nginx/access.log)" = 640:www-data:adm
    certbot install --non-interactive --nginx -d site.example --cert-path /test/c.pem \
        --key-path /test/k.pem --fullchain-path /test/c.pem $certbot >/tmp/certbot 2>&1 ||
        { cat /tmp/certbot; exit 1; }
    test "$(ask -k https://site.example/who)" = secure
}
load() {
    turnpike load -c 4 -t 1 -d 40s --no-keepalive --max-errors 0 http://127.0.0.1/who \
        >/tmp/load 2>&1 &
    load=$!
    sleep 2
}
loaded() {
    # What it was to see has happened within its time.
    kill -0 $load
    wait $load || { cat /tmp/load; exit 1; }
    grep 'requests in' /tmp/load
}

certbot=/tmp/certbot.d
certbot="--no-redirect --config-dir $certbot --work-dir $certbot --logs-dir $certbot"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site.example -keyout /test/k.pem \
    -out /test/c.pem 2>/dev/null
step "Debian's nginx, its modules and certbot"
add nginx nginx-core libnginx-mod-http-echo python3-certbot-nginx
cat >/etc/nginx/conf.d/site.conf <<'END'
proxy_cache_path /var/lib/nginx/cache keys_zone=pages:1m;
server {
    listen 80;
    listen 443 ssl;
    server_name site.example 127.0.0.1;
    ssl_certificate /test/c.pem;
    ssl_certificate_key /test/k.pem;
    root /var/www/html;
    index index.nginx-debian.html;
    client_max_body_size 1m;
    location = /who { return 200 secure; }
    location = /upload { proxy_pass http://127.0.0.1:8081; }
    location = /cached {
        proxy_pass http://127.0.0.1:8081;
        proxy_cache pages;
        proxy_cache_key $uri$args;
        proxy_cache_valid 1h;
        add_header X-Cache $upstream_cache_status;
    }
}
server {
    listen 127.0.0.1:8081;
    location = /upload { return 200 uploaded; }
    location = /cached { return 200 cached; }
}
END
serves /usr/sbin/nginx
invoke-rc.d nginx reload
sleep 1
works nginx
dpkg -i /test/1/turnpike_*.deb >/dev/null

step "a configuration that Turnpike cannot start with changes nothing"
echo 'http { nonsense on; }' >/test/broken
cp /etc/nginx/nginx.conf /test/nginx.conf
cat /test/broken >>/etc/nginx/nginx.conf
if dpkg -i /test/1/turnpike-nginx_*.deb >/tmp/refused 2>&1; then exit 1; fi
grep -q 'so nothing is changed' /tmp/refused
cp /test/nginx.conf /etc/nginx/nginx.conf
serves /usr/sbin/nginx
test -z "$(dpkg-divert --list | grep turnpike)"
dpkg --purge turnpike-nginx >/dev/null 2>&1
works refused

step "the switch under load"
load
dpkg -i /test/1/turnpike-nginx_*.deb >/dev/null
loaded
serves /usr/sbin/turnpike
test -x /usr/sbin/nginx.debian
for package in nginx nginx-core nginx-common libnginx-mod-http-echo python3-certbot-nginx; do
    dpkg-query -W -f '${db:Status-Abbrev}' $package | grep -q '^ii'
done
nginx -V 2>&1 | grep -q -- '--conf-path=/etc/nginx/nginx.conf .*--pid-path=/run/nginx.pid'
works turnpike
test -n "$(find /var/lib/nginx/cache -type f)"

step "upgrades of Debian's nginx and of its modules"
dpkg-deb -R /var/cache/apt/archives/nginx_*.deb /tmp/newer
sed -i 's/^Version: .*/&+later/' /tmp/newer/DEBIAN/control
dpkg-deb -b /tmp/newer /tmp/newer.deb >/dev/null
dpkg -i --force-depends /tmp/newer.deb >/dev/null
serves /usr/sbin/turnpike
test "$(readlink /usr/sbin/nginx)" = turnpike
works upgraded

step "an upgrade of Turnpike under load"
old=$(cat /run/nginx.pid)
load
dpkg -i /test/2/turnpike_*.deb /test/2/turnpike-nginx_*.deb >/dev/null
loaded
serves /usr/sbin/turnpike
test "$(cat /run/nginx.pid)" != "$old"
works newer

step "a configuration that nginx cannot start with keeps Turnpike"
echo 'sandbox off;' >>/etc/nginx/nginx.conf
if dpkg --remove turnpike-nginx >/tmp/refused 2>&1; then exit 1; fi
grep -q "Debian's nginx cannot start" /tmp/refused
sed -i '/^sandbox off;$/d' /etc/nginx/nginx.conf
serves /usr/sbin/turnpike

step "the switch back under load"
load
dpkg --remove turnpike-nginx >/dev/null
loaded
serves /usr/sbin/nginx
test ! -e /usr/sbin/nginx.debian
rm -r /var/lib/nginx/cache
invoke-rc.d nginx reload
sleep 1
works back

step "there and back again, by purge"
dpkg -i /test/2/turnpike-nginx_*.deb >/dev/null
serves /usr/sbin/turnpike
dpkg --purge turnpike-nginx turnpike >/dev/null
serves /usr/sbin/nginx
test -z "$(dpkg-divert --list | grep turnpike)"
works purged
dpkg --verify nginx-common
"#;

/// nginx comes after the package, and goes before it.
const AFTERWARDS: &str = r#"
step "nginx after turnpike-nginx"
dpkg -i /test/2/turnpike_*.deb >/dev/null
dpkg -i /test/2/turnpike-nginx_*.deb >/dev/null
add nginx
serves /usr/sbin/turnpike
ask http://127.0.0.1/ | grep -q '<title>Welcome to nginx!</title>'
test "$(readlink /usr/sbin/nginx)" = turnpike
test -x /usr/sbin/nginx.debian

step "nginx goes, Turnpike stays"
dpkg --remove nginx >/dev/null
test ! -e /usr/sbin/nginx.debian
test "$(readlink /usr/sbin/nginx)" = turnpike
nginx -t -q
nginx
serves /usr/sbin/turnpike
nginx -s stop
dpkg --purge turnpike-nginx turnpike >/dev/null
test ! -e /usr/sbin/nginx
test -z "$(dpkg-divert --list | grep turnpike)"
"#;

/// Tests the package in trees that have Debian's packages at hand; `packages` is a tree that has
/// ours.
pub(super) fn test(packages: &Path, base: &Path) -> Outcome {
    let ready = base.with_file_name("nginx");
    fetch_packages(base, &ready)?;
    let tree = base.with_file_name("over-nginx");
    for steps in [STEPS, AFTERWARDS] {
        fresh(&ready, &tree)?;
        for revision in ["1", "2"] {
            let folder = packages.join("test").join(revision);
            must(
                Command::new("cp")
                    .arg("-a")
                    .args([&folder, &tree.join("test")]),
            )?;
        }
        inside(&tree, &format!("{COMMON}{steps}"))?;
    }
    remove(&tree)
}

/// A copy of the base tree into which apt has fetched Debian's packages, made once.
fn fetch_packages(base: &Path, ready: &Path) -> Outcome {
    if ready.exists() {
        return Ok(());
    }
    let unfinished = ready.with_file_name("unfinished-nginx");
    fresh(base, &unfinished)?;
    println!("package-test: apt fetches {PACKAGES}");
    let fetch = format!(
        "install='apt-get install --yes --quiet=2 --no-install-recommends' && \
         apt-get --quiet=2 update && $install {INSTALLED} && $install --download-only {PACKAGES}"
    );
    must(
        Command::new("chroot")
            .arg(&unfinished)
            .args(["sh", "-c", &fetch])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    fs::rename(&unfinished, ready).map_err(|error| format!("{}: {error}", ready.display()))
}

//! The configuration of a site, as text.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::state_folder::StateFolder;
use super::words::{Kind, PORT_HTTP, PORT_HTTPS, SiteOptions};

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The certificates that Debian and its like trust.
const TRUSTED: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Names that begin with a dot are nobody's business; what RFC 8615 puts there is.
const HIDDEN: &str = r"location ~ /\.(?!well-known(/|$)) { return 404; }";

/// What a server of the command line is told beside its text: to stay at the terminal, and where
/// its pid file is, so that several can run.
pub(super) fn globals(site: &SiteOptions) -> String {
    let port = site.address().map_or(PORT_HTTPS, |address| address.port());
    format!("daemon off; pid {port}.pid; error_log stderr warn;")
}

/// The text.
///
/// # Errors
/// A path cannot stand in a configuration.
pub(super) fn configuration(site: &SiteOptions, state: &StateFolder) -> Result<String, String> {
    let mut text = Text::default();
    text.open("http");
    text.line("include mime.types;");
    text.line("charset utf-8;");
    text.line("sendfile on;");
    text.line("tcp_nopush on;");
    text.line("gzip on;");
    text.line(
        "gzip_types text/css text/javascript application/javascript application/json \
               image/svg+xml;",
    );
    text.line(
        "log_format terminal '$remote_addr [$time_local] \"$request\" $status \
               $body_bytes_sent $request_time';",
    );
    text.line("access_log /dev/stdout terminal;");
    before_servers(site, &mut text);
    if site.is_public() {
        redirecting_server(site, &mut text);
    }
    text.gap();
    text.open("server");
    listen(site, state, &mut text)?;
    content(site, &mut text)?;
    text.close();
    text.close();
    Ok(text.text)
}

/// What stands before the servers.
fn before_servers(site: &SiteOptions, text: &mut Text) {
    if site.is_public() {
        text.gap();
        text.open("acme_issuer letsencrypt");
        text.line(&format!("uri {LETS_ENCRYPT};"));
        text.line("state_path acme;");
        text.line("accept_terms_of_service;");
        text.close();
    }
    if let Kind::Proxy { servers } = &site.kind {
        text.gap();
        text.open("upstream application");
        for server in servers {
            text.line(&format!("server {};", server.server));
        }
        text.line("keepalive 32;");
        text.close();
    }
}

/// The addresses of a public host's port.
fn public(site: &SiteOptions, port: u16) -> Vec<String> {
    match site.public_address() {
        Some(address) => vec![SocketAddr::from((address, port)).to_string()],
        None if has_ipv6() => vec![port.to_string(), format!("[::]:{port}")],
        None => vec![port.to_string()],
    }
}

/// Whether the kernel has IPv6 at all: without it, such an address cannot be bound.
fn has_ipv6() -> bool {
    Path::new("/proc/net/if_inet6").exists()
}

/// Plain HTTP of a public host: the authority's challenges, and a redirect for everybody else.
fn redirecting_server(site: &SiteOptions, text: &mut Text) {
    let host = site.https.as_deref().unwrap_or_default();
    text.gap();
    text.open("server");
    for address in public(site, PORT_HTTP) {
        text.line(&format!("listen {address};"));
    }
    text.line(&format!("server_name {host};"));
    text.line("location / { return 301 https://$host$request_uri; }");
    text.close();
}

fn listen(site: &SiteOptions, state: &StateFolder, text: &mut Text) -> Result<(), String> {
    let ssl = if site.https.is_some() { " ssl" } else { "" };
    let addresses = match site.address() {
        Some(address) => vec![address.to_string()],
        None => public(site, PORT_HTTPS),
    };
    for address in addresses {
        text.line(&format!("listen {address}{ssl};"));
    }
    let Some(host) = &site.https else {
        return Ok(());
    };
    let name = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.clone(),
    };
    text.line(&format!("server_name {name};"));
    text.line("http2 on;");
    match site.self_signed() {
        Some(name) => {
            text.line(&format!(
                "ssl_certificate {};",
                word(&state.certificate(name))?
            ));
            text.line(&format!("ssl_certificate_key {};", word(&state.key(name))?));
        }
        None => {
            text.line("acme_certificate letsencrypt;");
            text.line("ssl_certificate $acme_certificate;");
            text.line("ssl_certificate_key $acme_certificate_key;");
        }
    }
    Ok(())
}

fn content(site: &SiteOptions, text: &mut Text) -> Result<(), String> {
    match &site.kind {
        Kind::Serve { folder, lists } => {
            files(folder, text)?;
            text.line("index index.html;");
            text.line(HIDDEN);
            let list = if *lists { " autoindex on;" } else { "" };
            text.line(&format!(
                "location / {{ try_files $uri $uri/ =404;{list} }}"
            ));
        }
        Kind::Php { folder, fpm } => {
            files(folder, text)?;
            text.line("index index.php index.html;");
            text.line("client_max_body_size 64m;");
            text.line(HIDDEN);
            text.line("location / { try_files $uri $uri/ /index.php?$args; }");
            text.open(r"location ~ \.php$");
            text.line("try_files $uri =404;");
            text.line("include fastcgi.conf;");
            text.line(&format!("fastcgi_pass {fpm};"));
            text.close();
        }
        Kind::Proxy { servers } => {
            let is_secure = servers.iter().any(|server| server.is_secure);
            let scheme = if is_secure { "https" } else { "http" };
            // How much a client may send is the application's matter.
            text.line("client_max_body_size 0;");
            text.open("location /");
            text.line(&format!("proxy_pass {scheme}://application;"));
            text.line("proxy_http_version 1.1;");
            text.line("proxy_websocket auto;");
            text.line("proxy_set_header Host $http_host;");
            text.line("proxy_set_header X-Real-IP $remote_addr;");
            // This server is the first one: what a client says of those before is not believed.
            text.line("proxy_set_header X-Forwarded-For $remote_addr;");
            text.line("proxy_set_header X-Forwarded-Proto $scheme;");
            text.line("proxy_set_header X-Forwarded-Host $http_host;");
            if is_secure {
                let name = servers.first().map_or("", |server| host_of(&server.server));
                text.line("proxy_ssl_server_name on;");
                text.line(&format!("proxy_ssl_name {name};"));
                text.line("proxy_ssl_verify on;");
                text.line(&format!("proxy_ssl_trusted_certificate {TRUSTED};"));
            }
            text.close();
        }
    }
    Ok(())
}

/// What servers of files have in common.
fn files(folder: &Path, text: &mut Text) -> Result<(), String> {
    text.line(&format!("root {};", word(folder)?));
    text.line("add_header X-Content-Type-Options nosniff always;");
    text.line("add_header Referrer-Policy strict-origin-when-cross-origin always;");
    Ok(())
}

/// `HOST` of `HOST:PORT`.
fn host_of(server: &str) -> &str {
    server.rsplit_once(':').map_or(server, |(host, _)| host)
}

/// A path as one word. One with a dollar sign would be read as a variable, which no quotes prevent.
fn word(path: &Path) -> Result<String, String> {
    let refused = |why: &str| Err(format!("\"{}\" {why}", path.display()));
    let Some(text) = path.to_str() else {
        return refused("is not UTF-8");
    };
    if text.contains(|letter: char| letter == '$' || letter.is_control()) {
        return refused(
            "cannot be named in a configuration: it has a \"$\" or a control character",
        );
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{escaped}\""))
}

/// A text that is indented as people do.
#[derive(Default)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn open(&mut self, words: &str) {
        self.line(&format!("{words} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }
}

//! The settings that distributions install for nginx: the directives of their files, in the files'
//! order and with their paths, without the comments. They are copies: who uses the test machine may
//! have changed the files in its `/etc/nginx`.

use turnpike_testkit::Folder;

/// The files of one distribution.
pub(crate) struct Stock {
    /// The distribution's name.
    pub(crate) name: &'static str,
    /// Paths below `/etc/nginx`, and contents.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The folder of pages.
    pub(crate) root: &'static str,
    /// The page that `/` leads to.
    pub(crate) page: &'static str,
    /// The status of `/`.
    pub(crate) status: u16,
}

/// Debian's and Ubuntu's, the official container image's, and Alpine's. Alpine's site has no pages.
pub(crate) const STOCKS: &[Stock] = &[
    Stock {
        name: "Debian",
        files: &[("nginx.conf", DEBIAN), ("sites-enabled/default", SITE)],
        root: "/var/www/html",
        page: "index.nginx-debian.html",
        status: 200,
    },
    Stock {
        name: "Ubuntu",
        files: &[("nginx.conf", UBUNTU), ("sites-enabled/default", SITE)],
        root: "/var/www/html",
        page: "index.html",
        status: 200,
    },
    Stock {
        name: "container",
        files: &[
            ("nginx.conf", CONTAINER),
            ("conf.d/default.conf", CONTAINER_SITE),
        ],
        root: "/usr/share/nginx/html",
        page: "index.html",
        status: 200,
    },
    Stock {
        name: "Alpine",
        files: &[("nginx.conf", ALPINE), ("http.d/default.conf", ALPINE_SITE)],
        root: "/usr/share/nginx/html",
        page: "index.html",
        status: 404,
    },
];

const DEBIAN: &str = "\
user www-data;
worker_processes auto;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
include /etc/nginx/modules-enabled/*.conf;
events { worker_connections 768; }
http {
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    access_log /var/log/nginx/access.log;
    gzip on;
    include /etc/nginx/conf.d/*.conf;
    include /etc/nginx/sites-enabled/*;
}
";

const UBUNTU: &str = "\
user www-data;
worker_processes auto;
worker_cpu_affinity auto;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
include /etc/nginx/modules-enabled/*.conf;
events { worker_connections 768; }
http {
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    server_tokens build;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers off;
    access_log /var/log/nginx/access.log;
    gzip on;
    include /etc/nginx/conf.d/*.conf;
    include /etc/nginx/sites-enabled/*;
}
";

/// Debian's and Ubuntu's.
const SITE: &str = "\
server {
    listen 80 default_server;
    listen [::]:80 default_server;
    root /var/www/html;
    index index.html index.htm index.nginx-debian.html;
    server_name _;
    location / { try_files $uri $uri/ =404; }
}
";

const CONTAINER: &str = "\
user nginx;
worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /run/nginx.pid;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '
                    '$status $body_bytes_sent \"$http_referer\" '
                    '\"$http_user_agent\" \"$http_x_forwarded_for\"';
    access_log /var/log/nginx/access.log main;
    sendfile on;
    keepalive_timeout 65;
    include /etc/nginx/conf.d/*.conf;
}
";

const CONTAINER_SITE: &str = "\
server {
    listen 80;
    listen [::]:80;
    server_name localhost;
    location / {
        root /usr/share/nginx/html;
        index index.html index.htm;
    }
    error_page 500 502 503 504 /50x.html;
    location = /50x.html { root /usr/share/nginx/html; }
}
";

const ALPINE: &str = "\
user nginx;
worker_processes auto;
pcre_jit on;
error_log /var/log/nginx/error.log warn;
include /etc/nginx/modules/*.conf;
include /etc/nginx/conf.d/*.conf;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    server_tokens off;
    client_max_body_size 1m;
    sendfile on;
    tcp_nopush on;
    ssl_protocols TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    ssl_session_cache shared:SSL:2m;
    ssl_session_timeout 1h;
    ssl_session_tickets off;
    gzip_vary on;
    map $http_upgrade $connection_upgrade {
        default upgrade;
        '' close;
    }
    log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '
                    '$status $body_bytes_sent \"$http_referer\" '
                    '\"$http_user_agent\" \"$http_x_forwarded_for\"';
    access_log /var/log/nginx/access.log main;
    include /etc/nginx/http.d/*.conf;
}
";

const ALPINE_SITE: &str = "\
server {
    listen 80 default_server;
    listen [::]:80 default_server;
    location / { return 404; }
    location = /404.html { internal; }
}
";

impl Stock {
    /// Writes the files and a page into a folder, with its paths and another port, so that an
    /// ordinary user can start them.
    pub(crate) fn relocate(&self, folder: &Folder, port: u16) {
        for name in ["sites-enabled", "conf.d", "http.d", "html"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for (path, text) in self.files {
            let text = text
                .replace("user nginx;", "")
                .replace("user www-data;", "")
                .replace("/etc/nginx/", &format!("{}/", folder.name()))
                .replace("/var/log/nginx/", &format!("{}/", folder.name()))
                .replace("/run/nginx.pid", "nginx.pid")
                .replace(self.root, &format!("{}/html", folder.name()))
                .replace("listen [::]:80 default_server;", "")
                .replace("listen [::]:80;", "")
                .replace("listen 80", &format!("listen 127.0.0.1:{port}"));
            folder.write(path, text).unwrap();
        }
        folder
            .write("mime.types", "types { text/html html; }")
            .unwrap();
        folder
            .write(format!("html/{}", self.page), "a stock page")
            .unwrap();
    }
}

//! The directives of the families that pass requests on, for the protocols of a run.

use std::fmt::Write as _;

use crate::protocol::{ORIGINS_EACH, Protocol};
use crate::scenario::ProxySettings;

/// What applications are told of a request, besides its fields.
const PARAMS: [(&str, &str); 3] = [
    ("REQUEST_METHOD", "$request_method"),
    ("DOCUMENT_URI", "$uri"),
    ("CONTENT_LENGTH", "$content_length"),
];

impl ProxySettings {
    /// Appends the groups of servers, and what holds for all locations.
    pub(crate) fn write(&self, folder: &str, text: &mut String) {
        self.group(Protocol::Http1, folder, text);
        self.group(self.other, folder, text);
        self.family(Protocol::Http1, text);
        self.family(self.other, text);
        let connection = if self.version == "1.0" { "close" } else { "" };
        // Writing to a string cannot fail.
        let place = if self.caches_on_disk {
            format!("{folder}/cache keys_zone=simulated:1m")
        } else {
            "simulated keys_zone=simulated:1m memory".to_owned()
        };
        let _ = writeln!(text, "{}_cache_path {place};", self.cached_by.name());
        let _ = writeln!(
            text,
            "proxy_http_version {}; proxy_set_header Connection \"{connection}\";",
            self.version
        );
        if self.other.has_params() {
            let prefix = self.other.name();
            for (name, value) in PARAMS {
                let _ = writeln!(text, "{prefix}_param {name} {value};");
            }
        }
    }

    fn group(&self, protocol: Protocol, folder: &str, text: &mut String) {
        let _ = write!(text, "upstream {} {{ ", protocol.name());
        for origin in protocol.first_origin()..protocol.first_origin() + ORIGINS_EACH {
            let _ = write!(text, "server unix:{folder}/origin{origin} max_fails=0; ");
        }
        if self.has_dead_server {
            let _ = write!(text, "server unix:{folder}/dead max_fails=0; ");
        }
        if self.keepalive > 0 {
            let _ = write!(text, "keepalive {}; ", self.keepalive);
        }
        text.push_str("keepalive_timeout 2s; }\n");
    }

    fn family(&self, protocol: Protocol, text: &mut String) {
        let flag = |on: bool| if on { "on" } else { "off" };
        let prefix = protocol.name();
        let mut put = |name: &str, value: &str| {
            let _ = write!(text, "{prefix}_{name} {value}; ");
        };
        put("connect_timeout", "1s");
        put("send_timeout", "1s");
        put("read_timeout", &format!("{}ms", self.read_timeout_ms));
        if protocol == Protocol::Memcached {
            let [buffer, ..] = self.buffers else { return };
            put(buffer.0, buffer.1);
            put("next_upstream", self.next_upstream_of_values());
            return;
        }
        let stale = if self.uses_stale {
            "error timeout updating http_500"
        } else {
            "off"
        };
        let updates_behind = self.updates_behind && self.uses_stale;
        put("buffering", flag(self.buffering));
        put("request_buffering", flag(self.request_buffering));
        put("next_upstream", self.next_upstream);
        put("ignore_client_abort", flag(self.ignores_client_abort));
        put("cache_use_stale", stale);
        put("cache_background_update", flag(updates_behind));
        put("cache_lock", flag(self.locks));
        for (name, value) in self.buffers {
            put(name, value);
        }
        text.push('\n');
    }

    /// There is no status of a value.
    fn next_upstream_of_values(&self) -> &'static str {
        match self.next_upstream {
            "off" => "off",
            _ => "error timeout",
        }
    }

    /// Appends the locations of the protocols, and that of cached answers.
    pub(crate) fn write_locations(&self, plan: u64, text: &mut String) {
        for protocol in [Protocol::Http1, self.other] {
            let (name, pass) = (protocol.name(), self.pass(protocol));
            // A value has no fields that could name its content, and fields of a location take the
            // place of others.
            let fields = match protocol {
                Protocol::Memcached => {
                    format!("add_header X-Plan {plan} always; add_header X-Content $http_x_number;")
                }
                _ => String::new(),
            };
            let _ = writeln!(text, "location /{name}/ {{ {pass} {fields} }}");
        }
        let (name, pass) = (self.cached_by.name(), self.pass(self.cached_by));
        let _ = writeln!(
            text,
            "location /cache/ {{ {pass} {name}_cache simulated; \
             {name}_cache_key $request_method$uri; }}\n\
             location /tunnel/ {{ proxy_pass http://proxy; \
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}"
        );
    }

    /// Appends the locations that make subrequests.
    pub(crate) fn write_subrequests(&self, folder: &str, mirrors_bodies: bool, text: &mut String) {
        let connection = if self.version == "1.0" { "close" } else { "" };
        let (passes, length) = if mirrors_bodies {
            ("on", "")
        } else {
            ("off", "proxy_set_header Content-Length \"\";")
        };
        let _ = writeln!(
            text,
            "location /guarded/ {{ auth_request /auth; proxy_pass http://proxy; }}\n\
             location = /auth {{ internal; proxy_pass http://proxy/auth/$http_x_number; \
             proxy_pass_request_body off; proxy_set_header Content-Length \"\"; \
             proxy_set_header Connection \"{connection}\"; }}\n\
             location /mirrored/ {{ mirror /mirror; mirror_request_body {passes}; \
             proxy_pass http://proxy; }}\n\
             location = /mirror {{ internal; proxy_pass http://proxy/mirror/$http_x_number; \
             proxy_pass_request_body {passes}; {length} \
             proxy_set_header Connection \"{connection}\"; }}\n\
             location /pages/ {{ root {folder}/pages; try_files /page =404; \
             ssi on; ssi_types text/plain; }}\n\
             location /part/ {{ internal; proxy_pass http://proxy; }}"
        );
    }

    fn pass(&self, protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::Http1 => "proxy_pass http://proxy;",
            Protocol::FastCgi if self.keepalive > 0 => {
                "fastcgi_pass fastcgi; fastcgi_keep_conn on;"
            }
            Protocol::FastCgi => "fastcgi_pass fastcgi;",
            Protocol::Scgi => "scgi_pass scgi;",
            Protocol::Uwsgi => "uwsgi_pass uwsgi;",
            Protocol::Memcached => "set $memcached_key $uri; memcached_pass memcached;",
        }
    }
}

//! Files in another server's language.

use crate::configuration::Configuration;

/// A language, and words that begin lines of it and are no directives here.
struct Language {
    file: &'static str,
    server: &'static str,
    words: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language {
        file: "a Caddyfile",
        server: "Caddy",
        words: &[
            "reverse_proxy",
            "file_server",
            "respond",
            "handle",
            "handle_path",
            "php_fastcgi",
            "encode",
            "redir",
            "basicauth",
            "basic_auth",
            "import",
        ],
    },
    Language {
        file: "a configuration of HAProxy",
        server: "HAProxy",
        words: &[
            "frontend",
            "backend",
            "default_backend",
            "defaults",
            "global",
            "bind",
        ],
    },
    Language {
        file: "a configuration of Apache",
        server: "Apache",
        words: &[
            "<VirtualHost",
            "<Directory",
            "<Location",
            "DocumentRoot",
            "ServerName",
            "LoadModule",
            "ProxyPass",
            "RewriteRule",
        ],
    },
];

/// Said of the first mistake of a main file that is in another server's language.
pub(super) fn hint(configuration: &Configuration) -> Option<String> {
    let sources = &configuration.tree.sources;
    let main = sources
        .iter()
        .find(|source| source.path == configuration.paths.configuration)?;
    let text = String::from_utf8_lossy(&main.bytes);
    let begins = || {
        text.lines()
            .filter_map(|line| line.split_whitespace().next())
    };
    if begins().any(|word| matches!(word, "http" | "events" | "stream" | "server")) {
        return None;
    }
    let is_in = |language: &&Language| begins().any(|word| language.words.contains(&word));
    let language = LANGUAGES.iter().find(is_in)?;
    let (file, server) = (language.file, language.server);
    Some(format!(
        "; this looks like {file}: give it to {server}, or rewrite it in nginx's language \
         (docs/cookbook.md has examples)"
    ))
}

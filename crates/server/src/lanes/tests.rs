//! What configurations need of the process, as their families say it.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use turnpike_conf::MemoryLoader;
use turnpike_http::phase::Phase;
use turnpike_http::plan::{Family, LocationIndex, Plan};

use super::environment::{BuildContext, Zones};
use crate::checked::Checked;
use crate::needs::Needs;
use crate::paths::{Paths, Places};
use turnpike_plan::environment::{Capability, FolderKind};
use turnpike_plan::product::Product;

fn needs(http: &str) -> Needs {
    checked(http).needs
}

fn checked(http: &str) -> Checked {
    let paths = Paths {
        prefix: PathBuf::from("/p"),
        configuration: PathBuf::from("/p/nginx.conf"),
        given: None,
        embedded: false,
        error_log: None,
        product: Product::Turnpike,
        cpu_count: 2,
        places: Places::Prefix,
        user: None,
    };
    let text = format!("events {{ }} http {{ access_log off; {http} }}");
    let loader: MemoryLoader = [("/p/nginx.conf", text)].into_iter().collect();
    let checked = Checked::read_through(Box::new(loader), &paths, None);
    checked.map_err(|errors| errors.to_string()).unwrap()
}

const BODY: (&str, FolderKind) = ("/p/client_body_temp", FolderKind::Default);
const FASTCGI: (&str, FolderKind) = ("/p/fastcgi_temp", FolderKind::Default);
const PROXY: (&str, FolderKind) = ("/p/proxy_temp", FolderKind::Default);
const SCGI: (&str, FolderKind) = ("/p/scgi_temp", FolderKind::Default);
const UWSGI: (&str, FolderKind) = ("/p/uwsgi_temp", FolderKind::Default);
type FoldersCase = (&'static str, &'static [(&'static str, FolderKind)]);
const FOLDERS: &[FoldersCase] = &[
    ("", &[BODY, FASTCGI, PROXY, SCGI, UWSGI]),
    (
        "proxy_temp_path t; server { client_body_temp_path /b; }",
        &[
            ("/b", FolderKind::Named),
            BODY,
            FASTCGI,
            SCGI,
            ("/p/t", FolderKind::Named),
            UWSGI,
        ],
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; proxy_cache_path d keys_zone=b:1m memory;",
        &[
            ("/p/c", FolderKind::Named),
            BODY,
            FASTCGI,
            PROXY,
            SCGI,
            UWSGI,
        ],
    ),
    (
        "server { location / { access_log l/$host.log; } }",
        &[
            BODY,
            FASTCGI,
            ("/p/l", FolderKind::Foreign),
            PROXY,
            SCGI,
            UWSGI,
        ],
    ),
    (
        "server { root r; location / { proxy_pass http://[::1]:1; proxy_store on; } }",
        &[
            BODY,
            FASTCGI,
            PROXY,
            ("/p/r", FolderKind::Foreign),
            SCGI,
            UWSGI,
        ],
    ),
    (
        "server { location / { proxy_pass http://[::1]:1; proxy_store /s/$uri; } }",
        &[
            BODY,
            FASTCGI,
            PROXY,
            SCGI,
            UWSGI,
            ("/s", FolderKind::Foreign),
        ],
    ),
];

#[test]
fn folders_are_those_that_families_name() {
    for (http, expected) in FOLDERS {
        let needs = needs(http);
        let folders = needs.folders.iter();
        let folders = folders.map(|folder| (folder.path.to_str().unwrap(), folder.kind));
        assert_eq!(folders.collect::<Vec<_>>(), *expected, "{http}");
    }
}

#[test]
fn a_right_is_kept_where_a_family_needs_it() {
    for (bind, expected) in [
        ("127.0.0.1", vec![]),
        ("off", vec![]),
        ("127.0.0.1 transparent", vec![Capability::NetRaw]),
        ("$remote_addr transparent", vec![Capability::NetRaw]),
    ] {
        let location = format!("proxy_pass http://[::1]:1; proxy_bind {bind};");
        let needs = needs(&format!("server {{ location / {{ {location} }} }}"));
        assert!(needs.capabilities.into_iter().eq(expected), "{bind}");
    }
}

/// The phases in which families have handlers.
const PHASES: [Phase; 8] = [
    Phase::PostRead,
    Phase::ServerRewrite,
    Phase::Rewrite,
    Phase::PreAccess,
    Phase::Access,
    Phase::PreContent,
    Phase::Content,
    Phase::Log,
];

#[test]
fn families_that_are_silent_unless_written_add_nothing() {
    let checked = checked("server { listen 127.0.0.1:1; location /a { limit_except GET { } } }");
    let families = turnpike_modules::FAMILIES.iter();
    let silent = families.filter(|family| family.is_silent_unless_written);
    let mut count = 0;
    for family in silent {
        // It is asked in every block, whatever it says of itself.
        let asked = Family {
            is_silent_unless_written: false,
            ..*family
        };
        let mut zones = Zones::default();
        let mut site = BuildContext::dry(&checked.configuration, &mut zones);
        let plan = Plan::build(checked.configuration.root(), 0, &[asked], &mut site).unwrap();
        // The http level, the server, the location, and what is in it.
        for index in 0..4 {
            let location = plan.location(LocationIndex(index));
            let handlers = PHASES.map(|phase| location.handlers(phase).len());
            let added = handlers.iter().sum::<usize>()
                + location.filters().len()
                + location.loggers().len()
                + usize::from(location.content.is_some());
            assert_eq!(added, 0, "{}", family.name);
        }
        count += 1;
    }
    assert!(count > 10, "{count}");
}

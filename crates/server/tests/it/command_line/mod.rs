//! Tests of the command line's output and exit status.

mod check;
mod mistakes;
mod own_name;
mod trial;

use std::process::Command;

use crate::support::{configuration, stderr, turnpike};
use turnpike_testkit::Folder;

#[test]
fn version_texts_are_what_tools_read() {
    let folder = Folder::create().unwrap();
    let (own, nginx) = (
        "turnpike version: turnpike/0.1.0",
        "nginx version: nginx/1.31.6",
    );
    let link = format!("{}/nginx", folder.name());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnpike"), &link).unwrap();
    for (program, lines) in [
        (env!("CARGO_BIN_EXE_turnpike"), [own, nginx]),
        (&link, [nginx, own]),
    ] {
        let output_of = |argument| stderr(&Command::new(program).arg(argument).output().unwrap());
        assert_eq!(output_of("-v"), format!("{}\n", lines[0]));
        let text = output_of("-V");
        assert!(
            text.starts_with(&format!("{}\n{}\n", lines[0], lines[1])),
            "{text}"
        );
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("configure arguments: --build="), "{text}");
    }
    let help = stderr(&turnpike(&["-h"]));
    assert!(help.contains("Usage: turnpike [-?hvVtTq]"), "{help}");
    for asked in [&["--help"][..], &["help"], &["-p", "/srv", "--help"]] {
        let paged = turnpike(asked);
        assert_eq!(String::from_utf8(paged.stdout).unwrap(), help);
    }
    let help = stderr(&turnpike(&["cache", "--help"]));
    assert!(help.contains("\n  cache purge [zone=NAME]"), "{help}");
}

#[test]
fn mistakes_on_the_command_line_are_named() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["-x"],
            "turnpike: invalid option: \"x\"\nturnpike: -h lists the options\n",
        ),
        (
            &["frobnicate"],
            "turnpike: invalid option: \"frobnicate\"\n\
             turnpike: turnpike -h lists the subcommands\n",
        ),
        (
            &["statsu"],
            "turnpike: invalid option: \"statsu\"\n\
             turnpike: did you mean \"status\"? turnpike -h lists the subcommands\n",
        ),
        (
            &["stat"],
            "turnpike: invalid option: \"stat\"\n\
             turnpike: did you mean \"status\"? turnpike -h lists the subcommands\n",
        ),
        (
            &["start"],
            "turnpike: invalid option: \"start\"\n\
             turnpike: turnpike -c FILE starts a server, turnpike serve DIR needs no file\n",
        ),
        (
            &["-p", "/srv", "load"],
            "turnpike: invalid option: \"load\"\n\
             turnpike: \"load\" takes no server options before it\n",
        ),
        (
            &["-s", "halt"],
            "turnpike: invalid option: \"-s halt\"\n\
             turnpike: -s takes stop, quit, reopen, reload\n",
        ),
        (&["-c"], "turnpike: option \"-c\" requires file name\n"),
    ];
    for (arguments, text) in cases {
        let output = turnpike(arguments);
        assert_eq!(
            (output.status.code(), stderr(&output).as_str()),
            (Some(1), *text)
        );
    }
}

#[test]
fn a_missing_prefix_is_reported() {
    let folder = Folder::create().unwrap();
    folder
        .write("nginx.conf", "error_log logs/a.log; events {}")
        .unwrap();
    let prefix = format!("{}/none/", folder.name());
    let file = format!("{}/nginx.conf", folder.name());
    for more in [&["-t"][..], &[]] {
        let output = turnpike(&[&["-p", &prefix, "-c", &file], more].concat());
        let hint = format!("turnpike: relative paths begin at \"{prefix}\", which is not there");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&hint), "{}", stderr(&output));
    }
}

#[test]
fn a_good_configuration_passes() {
    let folder = Folder::create().unwrap();
    folder
        .write("nginx.conf", configuration("worker_processes 2;"))
        .unwrap();
    let output = turnpike(&folder.arguments(&["-t"]));
    let path = format!("{}/nginx.conf", folder.name());
    let expected = format!(
        "turnpike: the configuration file {path} syntax is ok\n\
         turnpike: configuration file {path} test is successful\n"
    );
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), expected));
    let quiet = turnpike(&folder.arguments(&["-tq"]));
    assert_eq!(
        (quiet.status.code(), stderr(&quiet).as_str()),
        (Some(0), "")
    );
    assert!(!folder.has("nginx.pid"));
}

#[test]
fn additive_directives_may_be_repeated() {
    let folder = Folder::create().unwrap();
    let twice = [
        "add_header A b",
        "add_trailer A b",
        "error_page 404 /a",
        "gzip_disable msie6",
        "gzip_proxied expired",
        "gzip_types text/css",
        "keepalive_disable safari",
        "proxy_cache_methods POST",
        "proxy_cache_use_stale error",
        "proxy_hide_header A",
        "proxy_ignore_headers Expires",
        "proxy_next_upstream error",
        "proxy_pass_header A",
        "proxy_set_header A b",
        "proxy_ssl_protocols TLSv1.3",
    ];
    let lines = twice.map(|line| format!("{line}; {line};")).join("\n");
    let main = format!("http {{ server {{ location /a {{ {lines} }} }} }}");
    folder.write("nginx.conf", configuration(&main)).unwrap();
    let output = turnpike(&folder.arguments(&["-tq"]));
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn the_built_in_configuration_passes() {
    for arguments in [&["-t"][..], &["-t", "-g", "worker_rlimit_core 1m;"]] {
        assert_eq!(
            stderr(&turnpike(arguments)),
            "turnpike: the configuration file built-in.conf syntax is ok\n\
             turnpike: configuration file built-in.conf test is successful\n"
        );
    }
}

#[test]
fn a_prefix_or_file_that_is_given_must_be_there() {
    let folder = Folder::create().unwrap();
    let prefix = folder.name();
    let missing = format!("{prefix}/conf/nginx.conf");
    let named = format!("{prefix}/other.conf");
    let cases: &[(&[&str], &str)] = &[
        (&["-t", "-p", prefix], &missing),
        (&["-p", prefix], &missing),
        (&["-s", "reload", "-p", prefix], &missing),
        (&["status", "-p", prefix], &missing),
        (&["-t", "-p", prefix, "-c", "other.conf"], &named),
    ];
    for (arguments, path) in cases {
        let output = turnpike(arguments);
        let errors = stderr(&output);
        let message = format!("open() \"{path}\" failed (2: No such file or directory)");
        assert!(errors.contains(&message), "{arguments:?}: {errors}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn every_mistake_of_a_configuration_is_shown_with_its_place() {
    let folder = Folder::create().unwrap();
    let cases: &[(&str, &[&str])] = &[
        (
            "wroker_processes 1;\ndaemon maybe;\nevents { }",
            &[
                "unknown directive \"wroker_processes\", did you mean \"worker_processes\"? in @:1",
                "invalid value \"maybe\" in \"daemon\" directive, \
                 it must be \"on\" or \"off\" in @:2",
            ],
        ),
        ("daemon off;", &["no \"events\" section in configuration"]),
        (
            "events { use kqueue; }",
            &["invalid event type \"kqueue\" in @:1"],
        ),
        (
            "events { }\nload_module a.so;\nworker_processes many;\nworker_priority x;",
            &[
                "module \"a.so\" cannot be loaded: this module is not built in; remove the line \
                 and the directives that need it in @:2",
                "\"worker_processes\" directive invalid value in @:3",
                "\"worker_priority\" directive invalid number; \"x\" is not a whole number \
                 without a unit in @:4",
            ],
        ),
        (
            "events { }\nerror_log a loud;\nworker_cpu_affinity 2;\nthread_pool a b=1;",
            &[
                "invalid log level \"loud\"; known here: emerg, alert, crit, error, warn, notice, \
                 info, debug in @:2",
                "invalid character \"2\" in \"worker_cpu_affinity\" in @:3",
                "invalid parameter \"b=1\"; known here: threads, max_queue in @:4",
            ],
        ),
        (
            "events { }\nmail { }",
            &[
                "\"mail\" directive is not supported yet (mail proxying); leave the mail block to \
                 nginx in a process of its own in @:2",
            ],
        ),
        (
            "events { }\npid /proc/turnpike.pid;",
            &["open() \"/proc/turnpike.pid\" failed (2: No such file or directory)"],
        ),
    ];
    let path = format!("{}/nginx.conf", folder.name());
    for (text, messages) in cases {
        folder.write("nginx.conf", text).unwrap();
        folder.write("error.log", "").unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        for message in *messages {
            let message = message.replace('@', &path);
            assert!(
                shown.contains(&format!("turnpike: [emerg] {message}\n")),
                "{message}: {shown}"
            );
            let log = folder.read("error.log");
            assert!(log.contains(&format!(": {message}\n")), "{message}: {log}");
        }
        let failed = format!("turnpike: configuration file {path} test failed\n");
        assert!(shown.ends_with(&failed), "{shown}");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// What is said of directives that are known, and not there yet.
const REFUSED: &[&str] = &[
    "\"perl_modules\" directive is not supported yet (njs and Perl); express it with \
     map, set, if and rewrite, or move it to the application in @:4",
    "\"js_import\" directive is not supported yet (njs and Perl); express it with \
     map, set, if and rewrite, or move it to the application in @:5",
    "\"geoip_country\" directive is not supported yet (GeoIP); use geoip2 with a \
     MaxMind DB file (mmdb), or write the networks into a geo block in @:6",
    "\"image_filter\" directive is not supported yet (image and media filters); \
     prepare the files beforehand, or leave these locations to nginx on another port \
     in @:7",
];

#[test]
fn a_refused_directive_says_what_to_do_instead() {
    let folder = Folder::create().unwrap();
    let text = "events { }\nmail { }\nhttp {\nperl_modules a;\njs_import a.js;\n\
                geoip_country a;\nimage_filter size;\n}";
    folder.write("nginx.conf", text).unwrap();
    let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
    let path = format!("{}/nginx.conf", folder.name());
    for message in REFUSED {
        let message = message.replace('@', &path);
        let line = format!("turnpike: [emerg] {message}\n");
        assert!(shown.contains(&line), "{message}: {shown}");
    }
}

/// Configurations with one mistake, and its line.
const ONE_MISTAKE: &[(&str, &str)] = &[
    (
        "events { } http { server { listen unix:s ssl;\nssl_certificate a.pem\n\
         ssl_certificate_key b.pem;\n} }",
        "invalid number of arguments in \"ssl_certificate\" directive, is a \";\" missing in line \
         2? in @:3",
    ),
    (
        "events { } http { server { listen unix:s ssl;\nroot /x\nssl_certificate a.pem;\n\
         ssl_certificate_key b.pem;\n} }",
        "invalid number of arguments in \"root\" directive, is a \";\" missing in line 2? in @:3",
    ),
    (
        "events { } http { server { listen unix:s ssl; } }",
        "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in @:1",
    ),
    (
        "error_log stderr loud;\nerror_log a.log;\nevents { } http { server { listen unix:s; } }",
        "invalid log level \"loud\"; known here: emerg, alert, crit, error, warn, notice, info, \
         debug in @:1",
    ),
];

#[test]
fn what_follows_from_a_mistake_is_not_listed() {
    let folder = Folder::create().unwrap();
    for (text, expected) in ONE_MISTAKE {
        folder.write("nginx.conf", text).unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        let path = format!("{}/nginx.conf", folder.name());
        let mistakes = shown.lines().filter(|line| line.contains("[emerg]"));
        let expected = format!("turnpike: [emerg] {}", expected.replace('@', &path));
        assert_eq!(mistakes.collect::<Vec<_>>(), [expected], "{shown}");
    }
}

/// What stands in `http { }` and is accepted with nginx's warning, or without any.
const ACCEPTED: &[(&str, &str)] = &[
    (
        "types { text/html html; text/plain HTML; }",
        "duplicate extension \"html\", content type: \"text/plain\", previous content type: \
         \"text/html\" in @:1",
    ),
    (
        "geo $g { 10.0.0.0/8 1; 10.0.0.0/8 2; }",
        "duplicate network \"10.0.0.0/8\", value: \"2\", old value: \"1\" in @:1",
    ),
    (
        "geo $g { default 1; default 2; }",
        "duplicate network \"default\", value: \"2\", old value: \"1\" in @:1",
    ),
    (
        "geo $g { 10.0.0.0/8 1; delete 10.0.0.0/8; delete 10.0.0.0/8; }",
        "no network \"10.0.0.0/8\" to delete in @:1",
    ),
    (
        "geo $g { ranges; 10.0.0.0-10.2.255.255 1; 10.0.0.0-10.0.255.255 2; }",
        "duplicate range \"10.0.0.0-10.0.255.255\", value: \"2\", old value: \"1\" in @:1",
    ),
    (
        "geo $g { ranges; 10.0.0.0-10.0.0.9 1; 10.0.0.2-10.0.0.3 2; default 1; default 2; }",
        "duplicate default geo range value: \"2\", old value: \"1\" in @:1",
    ),
    (
        "geo $g { ranges; 10.0.0.0-10.0.0.9 1; delete 10.0.0.0-10.0.0.8; }",
        "no address range \"10.0.0.0-10.0.0.8\" to delete in @:1",
    ),
    (
        "server { listen unix:s accept_filter=httpready; }",
        "accept filters \"accept_filter=httpready\" are not supported on this platform, ignored \
         in @:1",
    ),
    (
        "set_md5 $hash a; server { listen unix:s; return 200 $hash; }",
        "\"set_md5\" has no effect here: it runs in servers and locations only in @:1",
    ),
    ("server { listen unix:s ipv6only=on; }", ""),
    ("server { listen unix:s; server_name www.*.com; }", ""),
    (
        "server { listen unix:s; location @a { } location @a { } charset ut$f; }",
        "",
    ),
];

#[test]
fn what_nginx_accepts_with_a_warning_is_accepted() {
    let folder = Folder::create().unwrap();
    for (text, expected) in ACCEPTED {
        let text = format!("events {{ }} http {{ {text} }}");
        folder.write("nginx.conf", &text).unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        let path = format!("{}/nginx.conf", folder.name());
        let warnings: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("[warn]"))
            .collect();
        let expected = match *expected {
            "" => Vec::new(),
            expected => vec![format!("turnpike: [warn] {}", expected.replace('@', &path))],
        };
        assert_eq!(warnings, expected, "{text}: {shown}");
        assert!(output.status.success(), "{text}: {shown}");
    }
}

#[test]
fn older_names_of_the_buffer_size_are_those_of_nginx() {
    let folder = Folder::create().unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let server = "listen unix:s; proxy_pass unix:t;";
    for (around, inside, expected) in [
        (
            "proxy_upstream_buffer 1k;",
            "",
            "turnpike: [warn] the \"proxy_upstream_buffer\" directive is deprecated, use the \
             \"proxy_buffer_size\" directive instead in @:1",
        ),
        (
            "proxy_buffer_size 1k;",
            "proxy_downstream_buffer 2k;",
            "turnpike: [warn] the \"proxy_downstream_buffer\" directive is deprecated, use the \
             \"proxy_buffer_size\" directive instead in @:1",
        ),
        (
            "",
            "proxy_buffer_size 1k; proxy_upstream_buffer 1k;",
            "turnpike: [emerg] \"proxy_upstream_buffer\" directive is duplicate in @:1",
        ),
        (
            "proxy_upstream_buffer many;",
            "",
            "turnpike: [emerg] \"proxy_upstream_buffer\" directive invalid value; a size is in \
             bytes, or a number with k or m in @:1",
        ),
    ] {
        let text = format!("events {{ }} stream {{ {around} server {{ {server} {inside} }} }}");
        folder.write("nginx.conf", &text).unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        let expected = expected.replace('@', &path);
        assert!(
            shown.lines().any(|line| line == expected),
            "{text}: {shown}"
        );
        assert_eq!(
            output.status.success(),
            !expected.contains("[emerg]"),
            "{text}"
        );
    }
}

#[test]
fn an_inherited_mistake_is_reported_once() {
    let folder = Folder::create().unwrap();
    let http = "http { access_log /none/a.log; server { listen unix:s; error_log /none/a.log;\n\
                location /a { access_log /none/a.log; } location /b { root x; } } }";
    let lua = "http { server { listen unix:s; location / {\n\
               content_by_lua_block { local t = {}; ngx.say(\"x\")\n }\n } } }";
    let cases: &[(&str, &[&str])] = &[
        (
            http,
            &["open() \"/none/a.log\" failed (2: No such file or directory)"],
        ),
        (
            lua,
            &[
                "unknown directive \"content_by_lua_block\" of the module \"OpenResty (Lua)\"; \
                 express it with map, set, if and rewrite, or leave these locations to OpenResty \
                 on another port in @:7",
            ],
        ),
        (
            "http { cookie_flag x; vhost_traffic_status on; }",
            &[
                "unknown directive \"cookie_flag\" of the module \"cookie flags\"; use \
                 proxy_cookie_flags in @:6",
                "unknown directive \"vhost_traffic_status\" of the module \"traffic status\"; use \
                 status; and metrics; in @:6",
            ],
        ),
    ];
    for (text, messages) in cases {
        folder
            .write("nginx.conf", &(configuration("") + text))
            .unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        let path = format!("{}/nginx.conf", folder.name());
        let found = shown
            .lines()
            .filter_map(|line| line.strip_prefix("turnpike: [emerg] "));
        let found: Vec<String> = found.map(|line| line.replace(&path, "@")).collect();
        assert_eq!(found, *messages, "{shown}");
    }
}

#[test]
fn a_check_leaves_no_file_in_the_place_of_the_pid_file() {
    let folder = Folder::create().unwrap();
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    folder.write("nginx.conf", configuration("")).unwrap();
    assert!(turnpike(&folder.arguments(&["-tq"])).status.success());
    assert_eq!(names(), ["error.log", "nginx.conf"]);
    folder.write("nginx.pid", "1\n").unwrap();
    assert!(turnpike(&folder.arguments(&["-tq"])).status.success());
    assert_eq!(folder.read("nginx.pid"), "1\n");
}

#[test]
fn a_dump_holds_every_file_once_and_unchanged() {
    let folder = Folder::create().unwrap();
    folder
        .write("a.conf", "# first\r\nworker_priority 0;")
        .unwrap();
    folder.write("b.conf", "# second, without an end").unwrap();
    let text = "daemon off; include a.conf; include b.conf; include b.conf; events { }";
    folder.write("nginx.conf", text).unwrap();
    let output = turnpike(&folder.arguments(&["-T"]));
    let name = folder.name();
    let expected = format!(
        "# configuration file {name}/nginx.conf:\n{text}\n\
         # configuration file {name}/a.conf:\n# first\r\nworker_priority 0;\n\
         # configuration file {name}/b.conf:\n# second, without an end\n"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn globals_stand_beside_the_file() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", "events { }").unwrap();
    assert!(
        turnpike(&folder.arguments(&["-tq", "-g", "daemon off;"]))
            .status
            .success()
    );
    let output = turnpike(&folder.arguments(&["-t", "-g", "events { }"]));
    assert!(
        stderr(&output).contains("\"events\" directive is duplicate"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_command_without_a_server_names_what_is_missing() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", configuration("")).unwrap();
    let output = turnpike(&folder.arguments(&["-s", "reload"]));
    let expected = format!(
        "turnpike: [error] open() \"{}/nginx.pid\" failed (2: No such file or directory); no \
         server with this configuration runs: \"turnpike -c FILE\" starts it\n",
        folder.name()
    );
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), expected));
    folder.write("nginx.pid", "12x\n").unwrap();
    let output = turnpike(&folder.arguments(&["-s", "reload"]));
    assert!(
        stderr(&output).contains("invalid PID number \"12x\" in"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_reference_names_every_directive() {
    let output = turnpike(&["directives"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n## worker_processes\n"), "{text}");
    let one = turnpike(&["directives", "keepalive_timeout"]);
    let text = String::from_utf8(one.stdout).unwrap();
    assert!(text.starts_with("## keepalive_timeout (http)\n"), "{text}");
    assert!(
        text.contains("\n## keepalive_timeout (upstream)\n"),
        "{text}"
    );
    assert!(text.contains("- Syntax: `keepalive_timeout "), "{text}");
    assert!(!text.contains("## worker_processes\n"), "{text}");
    let wrong = turnpike(&["directives", "keepalive_timeot"]);
    let expected = "turnpike: there is no directive \"keepalive_timeot\", did you mean \
                    \"keepalive_timeout\"?\n";
    assert_eq!(
        (wrong.status.code(), stderr(&wrong).as_str()),
        (Some(1), expected)
    );
}

#[test]
fn every_subcommand_explains_itself() {
    let shown = stderr(&turnpike(&["-h"]));
    let names = shown.lines().filter_map(|line| {
        let (name, summary) = line.strip_prefix("  ")?.split_once(':')?;
        (!name.starts_with('-') && !summary.is_empty()).then(|| name.trim())
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 20, "{names:?}");
    // These take one word, and print which.
    let own = ["manual", "completions"];
    for name in names {
        let output = turnpike(&[name, "--help"]);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("Usage: turnpike"), "{name}: {text}");
        assert!(output.status.success() || own.contains(&name), "{name}");
        assert!(
            text.lines().count() < 400 && !text.starts_with('#'),
            "{name}: {text}"
        );
    }
}

#[test]
fn warnings_are_reported_once_and_are_no_errors() {
    let folder = Folder::create().unwrap();
    let http = "http { allow 10.0.0.1/8; server { listen unix:s; set_real_ip_from 10.0.0.0/8;\n\
                deny 2001:db8::1/32; location / { } location /a { } } }";
    folder
        .write("nginx.conf", &(configuration("") + http))
        .unwrap();
    let output = turnpike(&folder.arguments(&["-t"]));
    let shown = stderr(&output);
    assert!(output.status.success(), "{shown}");
    let name = folder.path().join("nginx.conf");
    for (text, line) in [("10.0.0.1/8", 6), ("2001:db8::1/32", 7)] {
        let name = name.display();
        let message = format!(
            "turnpike: [warn] low address bits of {text} are meaningless in {name}:{line}\n"
        );
        assert_eq!(shown.matches(&message).count(), 1, "{shown}");
    }
    assert_eq!(shown.matches("[warn] low address").count(), 2, "{shown}");
}

#[test]
fn a_name_that_two_servers_have_is_a_warning() {
    let folder = Folder::create().unwrap();
    let http = "http { server { listen unix:s; server_name a b; }\n\
                server { listen unix:s; server_name b c; } }";
    folder
        .write("nginx.conf", configuration("") + http)
        .unwrap();
    let output = turnpike(&folder.arguments(&["-t"]));
    let shown = stderr(&output);
    assert!(output.status.success(), "{shown}");
    let warnings = shown.lines().filter(|line| line.contains("[warn]"));
    let warnings: Vec<&str> = warnings.collect();
    let [warning] = warnings[..] else {
        panic!("{shown}");
    };
    let begin = "turnpike: [warn] conflicting server name \"b\" on unix:";
    assert!(warning.starts_with(begin), "{warning}");
    assert!(warning.ends_with("s, ignored"), "{warning}");
}

#[test]
fn zones_that_exceed_the_control_groups_memory_are_a_warning() {
    let test = "zones_that_exceed_the_control_groups_memory_are_a_warning";
    if turnpike_testkit::needs_root(test, "CAP_SYS_ADMIN") {
        return;
    }
    let folder = Folder::create().unwrap();
    let http = "http { limit_req_zone $uri zone=one:10m rate=1r/s;\n\
                proxy_cache_path hot keys_zone=hot:12m memory; }";
    folder
        .write("nginx.conf", &(configuration("") + http))
        .unwrap();
    let check = |limit: &str| {
        let script = format!(
            // The files of both versions of control groups.
            "mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir memory && \
             echo {limit} >memory.max && echo {limit} >memory/memory.limit_in_bytes && \
             exec $TURNPIKE -t -p {0} -c {0}/nginx.conf",
            folder.name()
        );
        let output = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .env("TURNPIKE", env!("CARGO_BIN_EXE_turnpike"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let warning = "turnpike: [warn] the zones can grow to 22.0 MB, more than the 16.0 MB of memory \
                   that the control group allows; the largest is \"hot\" of \"proxy_cache_path\" \
                   with 12.0 MB: make zones smaller, or raise the limit\n";
    let shown = check("16777216");
    assert_eq!(shown.matches(warning).count(), 1, "{shown}");
    for limit in ["33554432", "max"] {
        let shown = check(limit);
        assert!(!shown.contains("[warn]"), "{shown}");
    }
}

/// Mistakes that a reader of nginx's documentation makes, each with all lines that are said of it;
/// `%` stands for the file.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "server { location ~ ^/(x { } }",
        &["pcre2_compile() failed: missing closing parenthesis in \"^/(x\" in %:6"],
    ),
    (
        "server { location / { limit_req zone=nope; } }",
        &["zero size shared memory zone \"nope\", is the line that declares it missing? in %:6"],
    ),
    (
        "server { location / { content_by_lua_block { ngx.say(\"x\") } } }",
        &[
            "unknown directive \"content_by_lua_block\" of the module \"OpenResty (Lua)\"; express \
             it with map, set, if and rewrite, or leave these locations to OpenResty on another \
             port in %:6",
        ],
    ),
    (
        "proxy_cache_path a keys_zone=a:1m levels=9; proxy_cache_path b keys_zone=b:1m; \
         server { location / { proxy_pass http://127.0.0.1; proxy_cache b; } }",
        &["invalid \"levels\" \"levels=9\" in %:6"],
    ),
    (
        "access_log /none/x; server { location / { access_log /none/x; } }",
        &["open() \"/none/x\" failed (2: No such file or directory)"],
    ),
    (
        "keepalive_timeout abc; server { client_max_body_size 10x; location / { expires soon; } }",
        &[
            "\"keepalive_timeout\" directive invalid value in %:6",
            "\"client_max_body_size\" directive invalid value; a size is in bytes, or a number \
             with k, m or g in %:6",
            "\"expires\" directive invalid value in %:6",
        ],
    ),
    (
        "server { return 200 $nope; }",
        &["unknown \"nope\" variable in %:6"],
    ),
    (
        "server { listen 127.0.0.1:1 ssl; ssl_certificate none.pem; ssl_certificate_key none; }",
        &[
            "cannot load certificate \"&/none.pem\": BIO_new_file() failed (2: No such file or \
             directory); there is no file \"&/none.pem\" in %:6",
        ],
    ),
];

#[test]
fn a_mistake_is_reported_once_with_its_place_and_without_consequences() {
    let folder = Folder::create().unwrap();
    for (http, expected) in MISTAKES {
        let text = configuration("") + &format!("http {{ {http} }}");
        folder.write("nginx.conf", &text).unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        let lines = shown.lines().filter(|line| line.starts_with("turnpike: ["));
        let lines: Vec<&str> = lines.collect();
        let name = format!("{}/nginx.conf", folder.name());
        let expected = expected.iter().map(|line| {
            let line = line.replace('%', &name).replace('&', folder.name());
            format!("turnpike: [emerg] {line}")
        });
        assert_eq!(lines, expected.collect::<Vec<String>>(), "{http}");
        assert_eq!(output.status.code(), Some(1), "{http}");
    }
}

#[test]
fn top_is_for_terminals() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", configuration("")).unwrap();
    let shown = stderr(&turnpike(&folder.arguments(&["top"])));
    assert!(
        shown.contains("no server with this configuration runs here"),
        "{shown}"
    );
    let help = stderr(&turnpike(&["top", "--help"]));
    assert!(
        help.starts_with("Usage: turnpike top [OPTION...]\n"),
        "{help}"
    );
    assert!(help.contains("--socket FILE"), "{help}");
}

//! Debian's DokuWiki with Debian's php-fpm behind our server, by the nginx configuration in the
//! wiki's own documentation: pages, login, an edit, an upload. curl is the browser.
//!
//! The wiki is copied into a folder of the run, with settings and pages of its own; the installed
//! files are not changed.

use std::path::Path;
use std::process::Command;

use turnpike_testkit::php::PhpFpm;
use turnpike_testkit::{Server, clients};

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::must;

/// Where Debian's package puts its programs and its settings.
const PROGRAMS: &str = "/usr/share/dokuwiki";
const SETTINGS: &str = "/etc/dokuwiki";

/// Folders that the wiki expects below its data.
const DATA: &[&str] = &[
    "attic",
    "cache",
    "index",
    "locks",
    "log",
    "media",
    "media_attic",
    "media_meta",
    "meta",
    "pages",
    "tmp",
];

/// A user called `ann`; the sum is MD5's of `secret`.
const USERS: &str = "# <?php exit()?>\n\
                     ann:5ebe2294ecd0e0f08eab7690d2a6ee69:Ann:ann@example.org:user\n";

/// Everyone may read, users may upload.
const RIGHTS: &str = "# <?php exit()?>\n*\t@ALL\t1\n*\t@user\t8\n";

/// Bytes of the uploaded file: more than the buffers of any part of the way.
const UPLOAD_BYTES: usize = 300_000;

const CONFIGURATION: &str = r"
error_log %FOLDER%/error.log info;
events { }
http {
    include /etc/nginx/mime.types;
    client_max_body_size 16m;
    server {
        listen 127.0.0.1:%PORT%;
        root %WIKI%/wiki;
        index doku.php;
        location ~ ^/(conf|bin|inc|vendor)/ { deny all; }
        location / { try_files $uri $uri/ @dokuwiki; }
        location @dokuwiki {
            rewrite ^/_media/(.*) /lib/exe/fetch.php?media=$1 last;
            rewrite ^/_detail/(.*) /lib/exe/detail.php?media=$1 last;
            rewrite ^/_export/([^/]+)/(.*) /doku.php?do=export_$1&id=$2 last;
            rewrite ^/(.*) /doku.php?id=$1&$args last;
        }
        location ~ \.php$ {
            try_files $uri $uri/ /doku.php;
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param REDIRECT_STATUS 200;
            fastcgi_pass unix:%WIKI%/php.sock;
        }
    }
}
";

/// Starts the wiki and uses it as a person would.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    if !Path::new(PROGRAMS).exists() {
        return Err("no DokuWiki; please run: cargo xtask setup applications".to_owned());
    }
    let php = PhpFpm::start("");
    install(&php)?;
    let configuration = CONFIGURATION.replace("%WIKI%", &php.path().display().to_string());
    let server = ours.start(&configuration)?;
    let browser = Browser {
        server: &server,
        jar: php.path().join("cookies").display().to_string(),
    };
    read_pages(&browser)?;
    log_in(&browser)?;
    let token = edit(&browser)?;
    upload(&browser, &token, php.path())?;
    let log = server.log("error.log");
    match log.lines().find(|line| line.contains("[alert]")) {
        Some(line) => Err(format!("the error log has an alert: {line}")),
        None => Ok(()),
    }
}

/// Copies the wiki's programs and settings into the folder, with pages and users of its own.
fn install(php: &PhpFpm) -> Outcome {
    let (wiki, settings) = (php.path().join("wiki"), php.path().join("wiki/conf"));
    must(
        Command::new("cp")
            .args(["--recursive", "--dereference", PROGRAMS])
            .arg(&wiki),
    )?;
    must(
        Command::new("cp")
            .args(["--recursive", SETTINGS])
            .arg(&settings),
    )?;
    // Debian's leads to the settings of the system; the others are links that lead there.
    for name in [
        "inc/preload.php",
        "conf/users.auth.php",
        "conf/acl.auth.php",
    ] {
        let path = wiki.join(name);
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for name in DATA {
        php.write(format!("data/{name}/.keep"), "");
    }
    php.write("wiki/conf/users.auth.php", USERS);
    php.write("wiki/conf/acl.auth.php", RIGHTS);
    let data = php.path().join("data");
    let own = format!(
        "<?php\n$conf['useacl'] = 1;\n$conf['userewrite'] = 1;\n$conf['savedir'] = '{}';\n",
        data.display()
    );
    php.write("wiki/conf/local.php", own);
    Ok(())
}

/// curl with a memory for cookies.
struct Browser<'a> {
    server: &'a Server,
    jar: String,
}

impl Browser<'_> {
    /// The result of a request.
    fn ask(&self, path: &str, options: &[&str]) -> String {
        let url = format!("http://127.0.0.1:{}{path}", self.server.port());
        let jar = ["--cookie", &self.jar, "--cookie-jar", &self.jar, &url];
        clients::curl(&[options, &jar].concat())
    }

    /// Status, type and bytes of an answer.
    fn look(&self, path: &str) -> String {
        let format = "%{http_code} %{content_type} %{size_download}";
        self.ask(path, &["--output", "/dev/null", "--write-out", format])
    }
}

fn expect(what: &str, is_so: bool, got: &str) -> Outcome {
    if is_so {
        println!("dokuwiki: {what}");
        Ok(())
    } else {
        Err(format!("{what}: not so, but:\n{got}"))
    }
}

fn read_pages(browser: &Browser<'_>) -> Outcome {
    let page = browser.ask("/", &[]);
    let is_whole = page.contains("This topic does not exist yet") && page.contains("</html>");
    expect("an empty wiki shows its start page", is_whole, &page)?;
    for (path, expected) in [
        ("/lib/exe/css.php", "200 text/css; charset=utf-8 "),
        ("/lib/exe/js.php", "200 application/javascript"),
        ("/lib/tpl/dokuwiki/images/logo.png", "200 image/png "),
        ("/conf/users.auth.php", "403 "),
        ("/inc/init.php", "403 "),
    ] {
        let got = browser.look(path);
        let what = format!("{path} is answered by {expected}");
        expect(what.trim_end(), got.starts_with(expected), &got)?;
    }
    Ok(())
}

fn log_in(browser: &Browser<'_>) -> Outcome {
    let form = "u=ann&p=secret&do=login&id=start";
    browser.ask("/start", &["--data", form]);
    let page = browser.ask("/start", &[]);
    let is_known = page.contains("Logged in as") && page.contains("<bdi>Ann</bdi>");
    expect("a user has logged in", is_known, &page)
}

/// Writes a page; returns the token that the wiki wants to see again in forms.
fn edit(browser: &Browser<'_>) -> Result<String, String> {
    let form = browser.ask("/start?do=edit", &[]);
    let token = form.split_once("name=\"sectok\" value=\"");
    let token = token.and_then(|(_, rest)| rest.split('"').next());
    let token = token.ok_or_else(|| format!("the form has no token:\n{form}"))?;
    let fields = [
        format!("sectok={token}"),
        "id=start&rev=0&date=&prefix=.&suffix=&target=section".to_owned(),
        "do[save]=Save".to_owned(),
    ];
    let mut options = vec!["--data-urlencode", "wikitext=A **bold** page."];
    for field in &fields {
        options.extend(["--data", field]);
    }
    browser.ask("/start", &options);
    let page = browser.ask("/start", &[]);
    let is_written = page.contains("A <strong>bold</strong> page.");
    expect("an edit has become a page", is_written, &page)?;
    Ok(token.to_owned())
}

fn upload(browser: &Browser<'_>, token: &str, folder: &Path) -> Outcome {
    let bytes: Vec<u8> = (0_u32..)
        .flat_map(u32::to_le_bytes)
        .take(UPLOAD_BYTES)
        .collect();
    let (sent, got) = (folder.join("sent.tgz"), folder.join("got.tgz"));
    // The wiki checks the first bytes of files whose type it knows.
    std::fs::write(&sent, [&b"\x1f\x8b"[..], &bytes].concat())
        .map_err(|error| error.to_string())?;
    let file = format!("qqfile=@{}", sent.display());
    let token = format!("sectok={token}");
    let answer = browser.ask(
        "/lib/exe/ajax.php",
        &[
            "--form",
            &file,
            "--form",
            &token,
            "--form",
            "ns=",
            "--form",
            "mediaid=sent.tgz",
            "--form",
            "call=mediaupload",
        ],
    );
    let is_taken = answer.contains("\"success\":true");
    expect("an upload is taken", is_taken, &answer)?;
    browser.ask(
        "/_media/sent.tgz",
        &["--output", &got.display().to_string()],
    );
    let read = |path: &Path| std::fs::read(path).unwrap_or_default();
    expect(
        "it comes back as it was",
        read(&sent) == read(&got),
        "other bytes",
    )
}

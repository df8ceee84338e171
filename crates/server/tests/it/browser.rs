//! `browser`: what the variables say of a list of browsers, beside an installed nginx.

use turnpike_testkit::Server;

const NGINX: &str = "/usr/sbin/nginx";

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        modern_browser_value new;
        server {
            listen 127.0.0.1:%PORT%;
            location / {
                modern_browser msie 5.5;
                modern_browser gecko 1.0.0;
                modern_browser opera 9.0;
                modern_browser safari 413;
                modern_browser konqueror 3.0;
                modern_browser unlisted;
                ancient_browser Lynx netscape4 'old crawler';
                return 200 '$modern_browser|$ancient_browser|$msie';
                location /strict { return 200 '$modern_browser|$ancient_browser|$msie'; }
            }
            location /ancient {
                modern_browser gecko 1.9;
                ancient_browser_value old;
                return 200 '$modern_browser|$ancient_browser|$msie';
            }
            location /none { return 200 '$modern_browser|$ancient_browser|$msie'; }
        }
    }";

/// None, and as browsers and programs have sent it.
const AGENTS: &[Option<&str>] = &[
    None,
    Some(""),
    Some("curl/8.0"),
    Some("Lynx/2.8.7"),
    Some("an old crawler"),
    Some("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"),
    Some("Mozilla/4.0 (compatible; MSIE 5.5; Windows NT 5.0)"),
    Some("Mozilla/4.0 (compatible; MSIE 5.01; Windows 98)"),
    Some("Mozilla/4.0 (compatible; MSIE 10.0; Windows NT 6.2)"),
    Some("Mozilla/4.0 (compatible; MSIE 7)"),
    Some("Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1)"),
    Some("Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"),
    Some("Mozilla/5.0 (X11; U; Linux; rv:0.9.2) Gecko/20010801"),
    Some("Mozilla/5.0 (X11; rv:1.8.1) Gecko"),
    Some("Opera 9.10 (X11)"),
    Some("Opera/9.80 (X11; Linux x86_64) Presto/2.12"),
    Some("Opera 8.54 (Windows)"),
    Some("Mozilla/5.0 (Macintosh) AppleWebKit/522 (KHTML) Version/3.0 Safari/522.12.1"),
    Some("Mozilla/5.0 (Macintosh) AppleWebKit/125 (KHTML) Safari/125.8"),
    Some("Mozilla/5.0 (compatible; Konqueror/3.5; Linux) KHTML/3.5 (like Gecko)"),
    Some("Mozilla/5.0 (compatible; Konqueror/2.2)"),
    Some("Mozilla/4.08 [en] (X11; I; Linux)"),
    Some("Mozilla/3.01 (WinNT; I)"),
    Some("Mozilla/5.0"),
    Some("Mozilla/"),
    Some("MSIE "),
];

#[test]
fn browsers_are_as_old_as_nginx_finds_them() {
    let servers = [env!("CARGO_BIN_EXE_turnpike"), NGINX].map(|program| {
        Server::builder(program)
            .configuration(CONFIGURATION)
            .start()
    });
    for target in ["/", "/strict", "/ancient", "/none"] {
        for agent in AGENTS {
            let field = agent.map(|agent| format!("User-Agent: {agent}\r\n"));
            let request = format!(
                "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n",
                field.unwrap_or_default()
            );
            let [ours, nginx] = servers.each_ref().map(|server| {
                let answer = String::from_utf8(server.exchange(&request)).unwrap();
                answer
                    .rsplit("\r\n\r\n")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            });
            assert!(nginx.contains('|'), "{nginx}");
            assert_eq!(ours, nginx, "{target} {agent:?}");
        }
    }
}

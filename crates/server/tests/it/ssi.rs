//! Tests of `ssi`: pages whose commands are executed, one request per case, and endless pages.

use turnpike_testkit::{Origin, Server, Step};

/// A port that no request reaches.
const NO_ORIGIN: u16 = 1;

fn server(port: u16, pages: &[(&str, &str)]) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            types {{ text/html html; text/plain txt; }}
            server {{
                listen 127.0.0.1:%PORT%;
                root %FOLDER%;
                ssi on;
                location /plain/ {{ ssi off; alias %FOLDER%/; }}
                location /silent/ {{ ssi_silent_errors on; alias %FOLDER%/; }}
                location /small/ {{ subrequest_output_buffer_size 8; alias %FOLDER%/; }}
                location /kept/ {{ ssi_last_modified on; alias %FOLDER%/; }}
                location /all/ {{ ssi_types *; ssi_value_length 4; alias %FOLDER%/; }}
                location /proxy {{ proxy_pass http://127.0.0.1:{port}; }}
                location /down {{ proxy_pass http://127.0.0.1:1; error_page 502 /sorry.txt; }}
                location /internal {{ internal; return 200 inside; }}
                location /nothing {{ return 204; }}
            }}
        }}"
    );
    let builder = Server::builder(env!("CARGO_BIN_EXE_turnpike")).configuration(&configuration);
    let builder = pages
        .iter()
        .fold(builder, |builder, (name, text)| builder.file(name, text));
    builder
        .file("part.txt", "PART")
        .file("sorry.txt", "SORRY")
        .start()
}

/// A page, the rest of its target, and the result.
const CASES: &[(&str, &str, &str)] = &[
    ("a<!--#include virtual=\"/part.txt\" -->b", "", "aPARTb"),
    ("a<!--#include file=\"part.txt\" -->b", "", "aPARTb"),
    (
        "a<!--#include virtual=\"$arg_p\" -->b",
        "?p=/part.txt",
        "aPARTb",
    ),
    ("<!--#include virtual=\"/internal\" -->", "", "inside"),
    ("<!--#include virtual=\"/down\" -->", "", "SORRY"),
    (
        "<!--#include virtual=\"/part.txt\" set=\"V\" -->a<!--#echo var=\"v\" -->",
        "",
        "aPART",
    ),
    (
        "<!--#block name=\"b\" --><!--#echo var=\"arg_x\" -->!<!--#endblock -->\
         a<!--#include virtual=\"/nothing\" stub=\"b\" -->c",
        "?x=1",
        "a1!c",
    ),
    (
        "<!--#block name=\"b\" -->own<!--#endblock -->\
         <!--#include virtual=\"/none\" stub=\"b\" -->",
        "",
        "own",
    ),
    (
        "<!--#set var=\"v\" value=\"a${arg_x}\\$\" --><!--#echo var=\"v\" encoding=\"none\" -->",
        "?x=<",
        "a<$",
    ),
    (
        "<!--#set var=\"Vv\" value=\"x\" -->$Vv<!--#if expr=\"$vV\" -->\
         <!--#echo var=\"VV\" --><!--#endif -->",
        "",
        "$Vvx",
    ),
    ("<!--#echo var=\"arg_x\" -->", "?x=<\">", "&lt;&quot;&gt;"),
    ("<!--#echo var=\"arg_y\" default=\"d\" -->", "", "d"),
    ("<!--#echo var=\"arg_y\" -->", "", "(none)"),
    (
        "<!--#config timefmt=\"%Y\" -->\
         <!--#if expr=\"$date_gmt = /^20[0-9]+\\$/\" -->y<!--#endif -->",
        "",
        "y",
    ),
    (
        "<!--#if expr=\"$arg_x = 1\" -->a<!--#if expr=\"$arg_y\" -->b<!--#else -->c<!--#endif -->\
         <!--#elif expr=\"$arg_x = 2\" -->d<!--#else -->e<!--#endif -->f",
        "?x=1",
        "acf",
    ),
    (
        "<!--#if expr=\"$arg_x = /(?<g>b+)/\" --><!--#echo var=\"g\" --><!--#endif -->",
        "?x=aBBc",
        "BB",
    ),
    ("a<!--#exec cmd=\"ls\" -->b", "", "aERRb"),
    ("a<!--#if expr=\"$a < b\" -->no<!--#endif -->b", "", "aERRb"),
    (
        "a<!--#if expr=\"$arg_x = /(/\" -->no<!--#endif -->b",
        "",
        "aERRb",
    ),
    ("a<!--#endif -->b", "", "aERRb"),
    ("a<!--#include virtual=\"/../x\" -->b", "", "aERRb"),
    (
        "<!--#config errmsg=\"oops\" -->a<!--#include stub=\"none\" virtual=\"/a\" -->b",
        "",
        "aoopsb",
    ),
    ("a<!--#echo", "", "a"),
    ("a<!--", "", "a<!--"),
];

#[test]
fn commands_are_executed() {
    let names: Vec<String> = (0..CASES.len())
        .map(|number| format!("{number}.html"))
        .collect();
    let pages = names
        .iter()
        .zip(CASES)
        .map(|(name, case)| (name.as_str(), case.0));
    let server = server(NO_ORIGIN, &pages.collect::<Vec<_>>());
    for (name, (page, query, expected)) in names.iter().zip(CASES) {
        let message = "[an error occurred while processing the directive]";
        let expected = expected.replace("ERR", message);
        let response = server.get(&format!("/{name}{query}"));
        assert_eq!(response.text(), expected, "{page}");
        assert_eq!(response.header("Content-Length"), None, "{page}");
        assert_eq!(response.header("Last-Modified"), None, "{page}");
        assert_eq!(server.get(&format!("/plain/{name}")).text(), *page);
        let silent = server.get(&format!("/silent/{name}{query}")).text();
        assert!(!silent.contains(message), "{page}");
    }
    server.wait_for_log("error.log", "invalid SSI command: \"exec\"");
    server.wait_for_log("error.log", "unsafe URI \"/../x\" was detected");
}

#[test]
fn responses_are_templates_if_configured() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"),
        Step::send("p<!--#ec"),
        Step::send("ho var=\"arg_a\" -->q"),
    ]]);
    let pages = [
        ("a.html", "a<!--#echo var=\"arg_a\" -->b"),
        ("a.txt", "<!--#echo var=\"arg_a\" -->"),
        (
            "set.html",
            "<!--#include virtual=\"/small/large.txt\" set=\"v\" -->after",
        ),
        ("large.txt", "more than eight"),
    ];
    let server = server(origin.port(), &pages);
    assert!(server.get("/kept/a.html").header("Last-Modified").is_some());
    assert_eq!(server.get("/a.txt?a=x").text(), pages[1].1);
    assert_eq!(
        server.get("/all/a.txt?a=x").text(),
        "[an error occurred while processing the directive]"
    );
    assert_eq!(server.get("/proxy?a=x").text(), "pxq");
    let head = server.exchange("HEAD /a.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(!String::from_utf8_lossy(&head).contains("Content-Length"));
    // A part that is too large cuts the page off, visibly for the client.
    let cut = server.exchange("GET /set.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let cut = String::from_utf8_lossy(&cut).into_owned();
    assert!(
        !cut.contains("after") && !cut.ends_with("0\r\n\r\n"),
        "{cut}"
    );
    server.wait_for_log("error.log", "too big subrequest response");
}

#[test]
fn values_and_turns_of_a_page_have_a_limit() {
    let begin = format!("<!--#set var=\"a\" value=\"{}\" -->", "x".repeat(256));
    let double = "<!--#set var=\"a\" value=\"$a$a\" -->".repeat(13);
    // Each of these would take 256 MiB.
    let many = format!("<!--#set var=\"b\" value=\"{}\" -->", "$a".repeat(128));
    let error = "[an error occurred while processing the directive]";
    let none = "<!--#if expr=\"$b\" -->b<!--#else -->none<!--#endif -->";
    // More than are read in a turn.
    let silent: String = (0..8192)
        .map(|number| format!("<!--#set var=\"v{number}\" value=\"{number}\" -->"))
        .collect();
    let shown = "<!--#echo var=\"v8191\" -->";
    let pages = [
        ("large.html", &*format!("{begin}{double}{many}{none}")),
        ("silent.html", &*format!("{silent}{shown}")),
    ];
    let server = server(NO_ORIGIN, &pages);
    assert_eq!(server.get("/large.html").text(), format!("{error}none"));
    server.wait_for_log("error.log", "the value of a parameter is too large");
    assert_eq!(server.get("/silent.html").text(), "8191");
}

#[test]
fn templates_that_include_themselves_end() {
    let pages = [
        ("once.html", "(<!--#include virtual=\"/once.html\" -->)"),
        (
            "twice.html",
            "<!--#include virtual=\"/twice.html\" --><!--#include virtual=\"/twice.html\" -->.",
        ),
        (
            "stub.html",
            "<!--#block name=\"b\" --><!--#include virtual=\"/nothing\" stub=\"b\" -->.\
             <!--#endblock --><!--#include virtual=\"/nothing\" stub=\"b\" -->",
        ),
    ];
    let server = server(NO_ORIGIN, &pages);
    let once = server.get("/once.html").text();
    assert_eq!(once.matches('(').count(), 51, "{once}");
    assert_eq!(once.matches(')').count(), 51, "{once}");
    server.wait_for_log(
        "error.log",
        "subrequests cycle while processing \"/once.html\"",
    );
    let twice = server.get("/twice.html").text();
    assert_eq!(twice.matches('.').count(), 1025);
    let stub = server.get("/stub.html").text();
    assert_eq!(stub.matches('.').count(), 1024);
}

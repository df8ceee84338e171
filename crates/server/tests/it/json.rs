//! Tests of values from JSON texts, and of bodies that are read before a location is chosen.

use turnpike_testkit::{Folder, Server};

use crate::support::{stderr, turnpike};

const CONFIGURATION: &str = r#"
error_log %FOLDER%/error.log notice;
events { }
http {
    client_body_temp_path %FOLDER%/body;
    proxy_temp_path %FOLDER%/proxied;
    json_max_depth 5;
    json_set $name   $arg_json name;
    json_set $second $arg_json 'tags[1]';
    json_set $dotted $arg_json '["a.b"].c';
    json_set $deep   $arg_json a.b.c.d.e;
    json_set $same   $arg_json name;
    json_set $method $request_body method;
    json_set $tool   $request_body params.name;
    map $tool $is_search { search 1; }
    map $http_content_type $is_json { application/json 1; }
    server {
        listen 127.0.0.1:%PORT%;
        client_body_early_read $is_json;
        client_body_buffer_size 4k;
        client_max_body_size 64k;
        location / { return 200 "[$method] [$tool]"; }
        location $is_search { return 200 "search for $method"; }
        location = /get { return 200 "[$name] [$same] [$second] [$dotted] [$deep]"; }
        location = /set { set $name fixed; return 200 "[$name] [$same]"; }
        location = /small { client_max_body_size 60; return 200 small; }
        location = /kept { return 200 "[$request_body_file]"; }
        location = /passed { proxy_pass http://127.0.0.1:%PORT%/; proxy_set_header X-Tool $tool; }
    }
}
"#;

/// A request with a body of this type; status and body of the response.
fn post(server: &Server, target: &str, kind: &str, body: &str) -> String {
    let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
    let length = body.len();
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    let response = server.exchange(format!("{head}{fields}{body}"));
    let response = String::from_utf8(response).unwrap();
    let status = response.split(' ').nth(1).unwrap().to_owned();
    if status == "200" {
        response.rsplit("\r\n\r\n").next().unwrap().to_owned()
    } else {
        status
    }
}

const CALL: &str = r#"{"method":"tools/call","params":{"name":"search","arguments":{}}}"#;

#[test]
fn values_come_from_arguments_and_from_bodies() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start();
    for (target, expected) in [
        (
            r#"/get?json={"name":"John","tags":[1,"two"],"a.b":{"c":{"d":[]}}}"#,
            r#"[John] [John] [two] [{"d":[]}] []"#,
        ),
        (
            r#"/get?json={"a":{"b":{"c":{"d":{"e":42}}}}}"#,
            "[] [] [] [] [42]",
        ),
        // One level too deep, cut off, and none.
        (
            r#"/get?json={"name":"x","a":{"b":{"c":{"d":{"e":{"f":1}}}}}}"#,
            "[] [] [] [] []",
        ),
        (r#"/get?json={"name":"John""#, "[] [] [] [] []"),
        ("/get", "[] [] [] [] []"),
        (r#"/set?json={"name":"John"}"#, "[fixed] [John]"),
    ] {
        assert_eq!(server.get(target).text(), expected, "{target}");
    }
    let json = "application/json";
    let other = CALL.replace("search", "fetch");
    let long = CALL.replace("{}", &format!("\"{}\"", "x".repeat(60_000)));
    let too_long = "x".repeat(65 * 1024);
    for (target, kind, body, expected) in [
        ("/", json, CALL, "search for tools/call"),
        ("/", json, &other, "[tools/call] [fetch]"),
        // Not read, or in a file: then no variable has it.
        ("/", "text/plain", CALL, "[] []"),
        ("/", json, &long, "[] []"),
        ("/", json, "", "[] []"),
        ("/", json, &too_long, "413"),
        ("/passed", json, &other, "[tools/call] [fetch]"),
        // The location has the last word, though its body was read before.
        ("/small", json, "{}", "small"),
        ("/small", json, CALL, "413"),
        ("/small", "text/plain", CALL, "413"),
    ] {
        assert_eq!(
            post(&server, target, kind, body),
            expected,
            "{target} {kind}"
        );
    }
    // Memory is for what fits into client_body_buffer_size, though it came at once with the head.
    let large = CALL.replace("{}", &format!("\"{}\"", "x".repeat(5000)));
    assert_eq!(post(&server, "/", json, &large), "[] []");
    let kept = post(&server, "/kept", json, &large);
    assert!(kept.starts_with("[/"), "{kept}");
    assert_eq!(post(&server, "/kept", json, CALL), "[]");
    for (target, expected) in [
        ("/", "\r\n\r\nsearch for tools/call"),
        ("/small", "HTTP/1.1 413 "),
    ] {
        let chunked = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{CALL}\r\n0\r\n\r\n",
            CALL.len()
        );
        let answer = String::from_utf8(server.exchange(chunked)).unwrap();
        assert!(answer.contains(expected), "{answer}");
    }
}

/// The content of `http { }`, and nginx's message.
const REFUSED: &[(&str, &str)] = &[
    ("json_set v $arg_json a;", "invalid variable name \"v\""),
    (
        "json_set $v arg_json a;",
        "invalid variable name \"arg_json\"",
    ),
    ("json_set $v $arg_json '';", "empty json_set path"),
    (
        "json_set $v $arg_json a[];",
        "invalid json_set path \"a[]\"",
    ),
    (
        "json_set $v $arg_json a; json_set $V $arg_json b;",
        "json_set variable \"V\" is already defined",
    ),
    ("json_set $v $nothing a;", "unknown \"nothing\" variable"),
    (
        "json_set $host $arg_json a;",
        "the duplicate \"host\" variable",
    ),
    ("json_max_depth 0;", "value must be between 1 and 256"),
    ("json_max_depth 257;", "value must be between 1 and 256"),
    (
        "server { location / { client_body_early_read 1; } }",
        "\"client_body_early_read\" directive is not allowed here",
    ),
];

#[test]
fn mistakes_are_refused_with_nginxs_messages() {
    let folder = Folder::create().unwrap();
    for (http, complaint) in REFUSED {
        let text = format!("events {{ }} http {{ {http} }}");
        folder.write("nginx.conf", text).unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        let sentence = format!("turnpike: [emerg] {complaint}");
        assert!(shown.starts_with(&sentence), "{http}: {shown}");
    }
    folder
        .write(
            "nginx.conf",
            "events { } http { json_max_depth 256; json_set $v $arg_json 'foo[\"x\"].bar'; }",
        )
        .unwrap();
    let output = turnpike(&folder.arguments(&["-t"]));
    assert!(output.status.success(), "{}", stderr(&output));
}

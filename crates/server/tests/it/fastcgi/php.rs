//! Tests of `fastcgi_pass` with a real application: PHP's process manager, with a small front
//! controller.

use std::io::Write as _;
use std::process::Command;

use turnpike_testkit::Server;
use turnpike_testkit::php::PhpFpm;

/// The front controller: the path after its own name chooses its action.
const SCRIPT: &str = r#"<?php
switch ($_SERVER['PATH_INFO'] ?? '') {
    case '/echo':
        header('Content-Type: text/plain');
        foreach (['REQUEST_METHOD', 'QUERY_STRING', 'SCRIPT_NAME', 'PATH_INFO', 'HTTP_X_A',
                  'CONTENT_LENGTH', 'SERVER_PROTOCOL'] as $name) {
            echo $name, '=', $_SERVER[$name] ?? '-', "\n";
        }
        break;
    case '/sum':
        $body = file_get_contents('php://input');
        echo strlen($body), ' ', md5($body);
        break;
    case '/upload':
        echo $_FILES['f']['size'], ' ', md5_file($_FILES['f']['tmp_name']);
        break;
    case '/missing':
        http_response_code(404);
        echo 'no such page';
        break;
    case '/redirect':
        header('Location: /elsewhere');
        break;
    case '/cookie':
        setcookie('a', 'b');
        setcookie('c', 'd');
        break;
    case '/stream':
        header('Content-Type: text/plain');
        echo "first\n";
        flush();
        while (!file_exists($_SERVER['GATE'])) {
            usleep(2000);
            clearstatcache();
        }
        echo "second\n";
        break;
    case '/log':
        error_log('the application complains');
        echo 'logged';
        break;
    case '/large':
        for ($i = 0; $i < 300; $i++) {
            echo str_repeat(chr(97 + $i % 26), 10000);
        }
        break;
    case '/accel':
        header('X-Accel-Redirect: /files/plain.txt');
        header('Content-Type: application/x-own');
        break;
    default:
        echo 'front';
}
"#;

/// A process manager with the front controller.
fn start_php() -> PhpFpm {
    let php = PhpFpm::start(
        "php_admin_value[post_max_size] = 64M\n\
         php_admin_value[upload_max_filesize] = 64M\n\
         php_admin_value[output_buffering] = 0\n\
         php_admin_flag[log_errors] = on",
    );
    php.write("front.php", SCRIPT);
    php
}

fn server(php: &PhpFpm, directives: &str) -> Server {
    let path = php.path().display();
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            server_tokens off;
            client_max_body_size 64m;
            upstream php {{ server unix:{path}/php.sock; keepalive 2; }}
            server {{
                listen 127.0.0.1:%PORT%;
                location /files/ {{ internal; alias %FOLDER%/; }}
                location / {{
                    fastcgi_pass php;
                    fastcgi_index front.php;
                    fastcgi_split_path_info ^(/front\\.php)(/.*)$;
                    include fastcgi_params;
                    fastcgi_param SCRIPT_FILENAME {path}$fastcgi_script_name;
                    fastcgi_param PATH_INFO $fastcgi_path_info;
                    fastcgi_param GATE %FOLDER%/gate;
                    {directives}
                }}
            }}
        }}"
    );
    let parameters = [
        ("QUERY_STRING", "$query_string"),
        ("REQUEST_METHOD", "$request_method"),
        ("CONTENT_TYPE", "$content_type"),
        ("CONTENT_LENGTH", "$content_length"),
        ("SCRIPT_NAME", "$fastcgi_script_name"),
        ("REQUEST_URI", "$request_uri"),
        ("DOCUMENT_URI", "$document_uri"),
        ("SERVER_PROTOCOL", "$server_protocol"),
        ("HTTPS", "$https if_not_empty"),
        ("REMOTE_ADDR", "$remote_addr"),
        ("SERVER_PORT", "$server_port"),
        ("REDIRECT_STATUS", "200"),
    ];
    let lines = parameters.map(|(name, value)| format!("fastcgi_param {name} {value};\n"));
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("fastcgi_params", lines.concat())
        .file("plain.txt", "a file")
        .start()
}

#[test]
fn php_answers_requests() {
    let php = start_php();
    for directives in ["", "fastcgi_keep_conn on;", "fastcgi_buffering off;"] {
        let server = server(&php, directives);
        let echo = server.get("/front.php/echo?a=b").text();
        for line in [
            "REQUEST_METHOD=GET",
            "QUERY_STRING=a=b",
            "SCRIPT_NAME=/front.php",
            "PATH_INFO=/echo",
            "SERVER_PROTOCOL=HTTP/1.1",
            "CONTENT_LENGTH=\n",
        ] {
            assert!(echo.contains(line), "{directives}: {echo}");
        }
        // The index turns a folder into a script.
        assert_eq!(server.get("/").text(), "front");
        let missing = server.get("/front.php/missing");
        assert_eq!(
            (missing.status, missing.text().as_str()),
            (404, "no such page")
        );
        let redirect = server.get("/front.php/redirect");
        assert_eq!(redirect.status, 302);
        assert_eq!(redirect.header("Location"), Some("/elsewhere"));
        let cookies = server.get("/front.php/cookie").head;
        assert!(cookies.contains("Set-Cookie: a=b") && cookies.contains("Set-Cookie: c=d"));
        let accel = server.get("/front.php/accel");
        assert_eq!(accel.text(), "a file");
        assert_eq!(accel.header("Content-Type"), Some("application/x-own"));
        let large = server.get("/front.php/large").body;
        assert_eq!(large.len(), 3_000_000);
        assert!(
            large
                .chunks(10_000)
                .all(|part| part.iter().all(|byte| *byte == part[0]))
        );
    }
}

#[test]
fn errors_of_php_are_logged() {
    let php = start_php();
    let server = server(&php, "");
    assert_eq!(server.get("/front.php/log").text(), "logged");
    server.wait_for_log(
        "error.log",
        "FastCGI sent in stderr: \"PHP message: the application complains\" while reading",
    );
}

/// A body without two equal pieces.
fn body(bytes: usize) -> Vec<u8> {
    (0..bytes as u32)
        .flat_map(u32::to_le_bytes)
        .take(bytes)
        .collect()
}

/// The length and the MD5 sum, in PHP's format.
fn sum(php: &PhpFpm, bytes: &[u8]) -> String {
    let path = php.path().join("body");
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new("md5sum").arg(&path).output().unwrap();
    let digest = String::from_utf8(output.stdout).unwrap();
    format!("{} {}", bytes.len(), digest.split(' ').next().unwrap())
}

#[test]
fn bodies_of_all_sizes_arrive_whole() {
    let php = start_php();
    for directives in [
        "",
        "fastcgi_request_buffering off;",
        "fastcgi_keep_conn on; client_body_buffer_size 1m;",
    ] {
        let server = server(&php, directives);
        for bytes in [0, 1, 16_384, 16_385, 65_535, 65_536, 300_000, 5_000_000] {
            let body = body(bytes);
            let head = format!(
                "POST /front.php/sum HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                 Content-Length: {bytes}\r\n\r\n"
            );
            let answer = server.exchange([head.as_bytes(), &body].concat());
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let expected = sum(&php, &body);
            assert!(answer.contains(&expected), "{directives} {bytes}: {answer}");
        }
    }
}

#[test]
fn a_file_is_uploaded_in_a_form() {
    let php = start_php();
    let server = server(&php, "");
    let file = body(2_000_000);
    let mut content =
        b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\n".to_vec();
    content.extend_from_slice(&file);
    content.extend_from_slice(b"\r\n--x--\r\n");
    let head = format!(
        "POST /front.php/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    let answer = server.exchange([head.as_bytes(), &content].concat());
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains(&sum(&php, &file)), "{answer}");
}

#[test]
fn a_stream_reaches_the_client_piece_by_piece() {
    let php = start_php();
    let server = server(&php, "fastcgi_buffering off;");
    let mut peer = server.connect();
    peer.send("GET /front.php/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut early = Vec::new();
    while !String::from_utf8_lossy(&early).contains("first") {
        let mut piece = [0; 4096];
        let read = std::io::Read::read(&mut peer.stream(), &mut piece).unwrap();
        assert!(read > 0, "the stream ended early");
        early.extend_from_slice(&piece[..read]);
    }
    // Only now may the script continue: its first line has arrived alone.
    assert!(!String::from_utf8_lossy(&early).contains("second"));
    let mut gate = std::fs::File::create(server.folder().join("gate")).unwrap();
    gate.write_all(b"open").unwrap();
    let rest = String::from_utf8_lossy(&peer.rest()).into_owned();
    assert!(rest.contains("second\n"), "{rest}");
}

//! `more_set_headers` and its like, as exchanges.

use turnpike_testkit::{Server, check};

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        server_tokens off;
        access_log off;
        root %FOLDER%/html;
        more_set_headers 'X-Outer: http' 'X-Level: http';
        server {
            listen 127.0.0.1:%PORT%;
            more_set_headers 'X-Level: server';
            location / { }
            location /text {
                default_type text/plain;
                more_set_headers 'Server: mine' 'X-Uri: $uri' 'X-Level: location'
                    'Last-Modified: Fri, 14 Jul 2017 02:40:00 GMT' 'ETag: \"mine\"';
            }
            location /type { more_set_headers 'Content-Type: a/b'; return 200 ok; }
            location /bare {
                more_clear_headers Server Date Content-Type X-Outer 'X-Lev*';
                add_header X-After yes;
                return 200 ok;
            }
            location /scope {
                default_type text/html;
                more_set_headers -s '404 403' 'X-Status: refused';
                more_set_headers -s 200 -t 'text/html a/b' 'X-Page: yes';
                more_set_headers -s 200 -t text/css 'X-Style: yes';
                if ($arg_if) { more_set_headers 'X-If: $arg_if'; return 200 if; }
                if ($arg_no) { return 403; }
                return 200 ok;
            }
            location /add {
                more_set_headers 'Set-Cookie: a' ;
                more_set_headers -a 'Set-Cookie: b';
                return 200 ok;
            }
            location /redirect { more_set_headers 'Location: /there'; return 302 /here; }
            location /in {
                more_set_input_headers 'X-A: set' 'Host: Other';
                more_set_input_headers -r 'X-There: replaced' 'X-Not: there';
                more_clear_input_headers 'X-Secret-*' User-Agent;
                add_header X-Seen
                '$http_x_a,$http_x_there$http_x_not,$http_x_secret_key,$http_user_agent,$http_host';
                add_header X-Host $host;
                empty_gif;
            }
            location /typed {
                more_set_input_headers -t text/plain 'X-A: set';
                add_header X-Seen '[$http_x_a]';
                empty_gif;
            }
        }
    }";

const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "outer levels come first, errors have the fields too",
        "GET /nothing HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 404 Not Found\nServer: nginx\n*\nX-Outer: http\nX-Level: server\n*",
    ),
    (
        "what the server makes itself is replaced",
        "GET /text HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\nDate: *\n*\nLast-Modified: Fri, 14 Jul 2017 02:40:00 GMT\n*\n\
         ETag: \"mine\"\nX-Outer: http\nServer: mine\nX-Uri: /text\nX-Level: location\n*\n\ntext",
    ),
    (
        "a content type",
        "GET /type HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: a/b\n*\n\nok",
    ),
    (
        "fields are taken away, others of later directives come",
        "GET /bare HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\nContent-Length: 2\nConnection: keep-alive\nX-After: yes\n\nok",
    ),
    (
        "a content type and a status are meant",
        "GET /scope HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nX-Level: server\nX-Page: yes\n\nok",
    ),
    (
        "another status",
        "GET /scope?no=1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 403 Forbidden\n*\nX-Level: server\nX-Status: refused\n\n*",
    ),
    (
        "an if",
        "GET /scope?if=3 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nX-Page: yes\nX-If: 3\n\nif",
    ),
    (
        "a field beside others",
        "GET /add HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nSet-Cookie: a\nSet-Cookie: b\n\nok",
    ),
    (
        "where a redirect leads",
        "GET /redirect HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 302 *\n*\nLocation: http://a:*/there\n*",
    ),
    (
        "fields of requests",
        "GET /in HTTP/1.1\nHost: a\nX-There: old\nX-Secret-Key: k\nUser-Agent: u\n\n",
        "HTTP/1.1 200 OK\n*\nX-Seen: set,replaced,,,Other\nX-Host: other\n*",
    ),
    (
        "of a type",
        "GET /typed HTTP/1.1\nHost: a\nContent-Type: text/plain; charset=x\n\n",
        "HTTP/1.1 200 OK\n*\nX-Seen: [set]\n*",
    ),
    (
        "of another type",
        "GET /typed HTTP/1.1\nHost: a\nContent-Type: text/html\n\n",
        "HTTP/1.1 200 OK\n*\nX-Seen: []\n*",
    ),
];

#[test]
fn fields_are_set_and_taken_away() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/text", "text")
        .start();
    check(&server, ANSWERS);
}

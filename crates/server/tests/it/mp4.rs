//! `mp4` and `flv`: parts of films, as exchanges.

use turnpike_testkit::{Server, check};

/// Two seconds of one colour and a tone, and the index behind them. The corpus of the fuzz target
/// has three bytes before it.
const FILM: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fuzz/corpus/mp4/middle.seed"
));
const BEFORE_FILM_BYTES: usize = 3;

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        server_tokens off;
        access_log off;
        types { video/mp4 mp4; video/x-flv flv; }
        root %FOLDER%/html;
        server {
            listen 127.0.0.1:%PORT%;
            location / { mp4; }
            location /small/ { mp4; mp4_max_buffer_size 100; alias %FOLDER%/html/; }
            location /key/ { mp4; mp4_start_key_frame on; alias %FOLDER%/html/; }
            location /flv/ { flv; alias %FOLDER%/html/; }
        }
    }";

/// The lengths are those that nginx sends too.
const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "a film as it is",
        "HEAD /film.mp4 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: video/mp4\nContent-Length: 4151\n*\n\n",
    ),
    (
        "with its index first",
        "HEAD /film.mp4?start=0 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 3956\n*\n\n",
    ),
    (
        "from its middle on",
        "HEAD /film.mp4?start=1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 2848\n*\n\n",
    ),
    (
        "a range of a part",
        "GET /film.mp4?start=1 HTTP/1.1\nHost: a\nRange: bytes=4-11\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 4-11/2848\n*\n\nftypisom",
    ),
    (
        "several ranges of a part get it whole",
        "GET /film.mp4?start=1 HTTP/1.1\nHost: a\nRange: bytes=4-5,8-9\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 2848\n*",
    ),
    (
        "behind its end",
        "GET /film.mp4?start=3 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "an index that is too large",
        "GET /small/film.mp4?start=1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "no film",
        "GET /text.mp4?start=1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "no film, as it is",
        "GET /text.mp4 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\n0123456789",
    ),
    (
        "nothing",
        "GET /nothing.mp4?start=1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 404 Not Found\n*",
    ),
    (
        "another method",
        "POST /film.mp4 HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
        "HTTP/1.1 405 Not Allowed\n*",
    ),
    (
        "a Flash video as it is",
        "GET /flv/text.flv HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\n0123456789",
    ),
    (
        "from a place on",
        "GET /flv/text.flv?start=7 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 16\n*\n\nFLV\u{1}\u{5}\0\0\0\t\0\0\0\x00789",
    ),
    (
        "a range of that",
        "GET /flv/text.flv?start=7 HTTP/1.1\nHost: a\nRange: bytes=13-14\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 13-14/16\n*\n\n78",
    ),
    (
        "from behind its end on",
        "GET /flv/text.flv?start=10 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\n0123456789",
    ),
];

const LOGGED: &[&str] = &[
    "mp4 start time exceeds file duration in \"",
    "you may want to increase mp4_max_buffer_size in \"",
    "mp4 atom too large:",
];

#[test]
fn parts_of_films_are_sent() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/film.mp4", &FILM[BEFORE_FILM_BYTES..])
        .file("html/text.mp4", "0123456789")
        .file("html/text.flv", "0123456789")
        .start();
    check(&server, ANSWERS);
    for words in LOGGED {
        server.wait_for_log("error.log", words);
    }
}

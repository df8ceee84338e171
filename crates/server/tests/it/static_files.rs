//! Tests of files, indexes, listings, conditions and ranges.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use turnpike_testkit::{Server, check};

/// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110; 0x2ebc98a1 in entity tags.
const MODIFIED_S: u64 = 784_111_777;

const CONFIGURATION: &str = "
events { }
http {
    types { text/html html; text/css css; }
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        server_tokens off;
        location /plain/ { alias %FOLDER%/html/; etag off; default_type a/b; max_ranges 0; }
        location /cached/ {
            alias %FOLDER%/html/;
            open_file_cache max=8;
            open_file_cache_errors on;
        }
        location /try/ { try_files $uri $uri/ /a.txt?$args; }
        location /code/ { try_files /absent =404; }
        location /named/ { try_files /absent @other; }
        location @other { root %FOLDER%/other; try_files /b.txt =500; }
        location /relative { absolute_redirect off; alias %FOLDER%/html; }
        location /listed/ { autoindex on; autoindex_format json; }
        location = /pixel { empty_gif; }
        location /before/ { alias %FOLDER%/html/; if_modified_since before; }
    }
}";

fn server() -> Server {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/a.txt", "0123456789")
        .file("html/empty.css", "")
        .file("html/folder/index.html", "index\n")
        .file("html/bare/x.html", "x")
        .file("html/space d/x", "x")
        .file("html/listed/one", "1")
        .file("html/listed/deep/two", "2")
        .file("html/try/there.html", "there\n")
        .file("html/try/deep/x", "x")
        .file("other/b.txt", "other\n")
        .start();
    for name in ["html/a.txt", "html/listed/one", "html/listed/deep"] {
        let file = fs::File::open(server.folder().join(name)).unwrap();
        let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
        file.set_modified(modified).unwrap();
    }
    server
}

const FILES: &[(&str, &str, &str)] = &[
    (
        "a file with all that is known of it",
        "GET /a.txt HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\nServer: nginx\nDate: *\nContent-Type: text/plain\nContent-Length: 10\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nConnection: keep-alive\n\
         ETag: \"2ebc98a1-a\"\nAccept-Ranges: bytes\n\n0123456789",
    ),
    (
        "only its head",
        "HEAD /a.txt HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 10\n*\n\n\n(closed)",
    ),
    (
        "an empty file, with a type by its extension",
        "GET /empty.css HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: text/css\nContent-Length: 0\n*\n\n\n(closed)",
    ),
    (
        "without an entity tag and ranges",
        "GET /plain/a.txt HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: a/b\nContent-Length: 10\n\
         Last-Modified: *\nConnection: close\n\n0123456789\n(closed)",
    ),
    (
        "from the cache, twice",
        "GET /cached/a.txt HTTP/1.1\nHost: x\n\nGET /cached/a.txt HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\n0123456789HTTP/1.1 200 OK\n*\nETag: \"2ebc98a1-a\"\n*\n0123456789\
         \n(closed)",
    ),
    (
        "a remembered absence",
        "GET /cached/absent HTTP/1.1\nHost: x\n\nGET /cached/absent HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\nHTTP/1.1 404 Not Found\n*\n(closed)",
    ),
    (
        "an absent file",
        "GET /absent HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\n(closed)",
    ),
    (
        "files take no body",
        "POST /a.txt HTTP/1.0\nContent-Length: 0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\n(closed)",
    ),
    (
        "nor other methods, even for folders",
        "PUT / HTTP/1.0\nContent-Length: 0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\n(closed)",
    ),
];

const FOLDERS: &[(&str, &str, &str)] = &[
    (
        "a folder without its slash keeps the query",
        "GET /folder?a=b HTTP/1.0\nHost: name\n\n",
        "HTTP/1.1 301 Moved Permanently\n*\nLocation: http://name:*/folder/?a=b\n*\n(closed)",
    ),
    (
        "a relative redirect, its path escaped again",
        "GET /relative/sp%61ce%20d HTTP/1.0\n\n",
        "HTTP/1.1 301 Moved Permanently\n*\nLocation: /relative/space%20d/\n*\n(closed)",
    ),
    (
        "a redirect without scheme and host",
        "GET /relative/bare HTTP/1.0\n\n",
        "HTTP/1.1 301 Moved Permanently\n*\nLocation: /relative/bare/\n*\n(closed)",
    ),
    (
        "the index of a folder",
        "GET /folder/ HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: text/html\nContent-Length: 6\n*\nindex\n\n(closed)",
    ),
    (
        "a folder without an index",
        "GET /bare/ HTTP/1.0\n\n",
        "HTTP/1.1 403 Forbidden\n*\n(closed)",
    ),
    (
        "an absent folder",
        "GET /nowhere/ HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\n(closed)",
    ),
    (
        "a listing",
        "GET /listed/ HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: application/json\n*\n\n[\n\
         { \"name\":\"deep\", \"type\":\"directory\", \
         \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\" },\n\
         { \"name\":\"one\", \"type\":\"file\", \
         \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\", \"size\":1 }\n]\n(closed)",
    ),
    (
        "the pixel",
        "HEAD /pixel HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Type: image/gif\nContent-Length: 43\n\
         Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT\nConnection: close\n\n\n(closed)",
    ),
    (
        "try_files finds a file",
        "GET /try/there.html HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nthere\n\n(closed)",
    ),
    (
        "try_files finds a folder",
        "GET /try/deep HTTP/1.0\nHost: x\n\n",
        "HTTP/1.1 301 Moved Permanently\n*\nLocation: http://x:*/try/deep/\n*\n(closed)",
    ),
    (
        "try_files goes to its last argument",
        "GET /try/absent?x HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\n0123456789\n(closed)",
    ),
    (
        "try_files answers with a status",
        "GET /code/ HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\n(closed)",
    ),
    (
        "try_files goes to a named location",
        "GET /named/x HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nother\n\n(closed)",
    ),
];

const CONDITIONS: &[(&str, &str, &str)] = &[
    (
        "unchanged by date",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        "HTTP/1.1 304 Not Modified\nServer: nginx\nDate: *\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nConnection: close\n\
         ETag: \"2ebc98a1-a\"\n\n\n(closed)",
    ),
    (
        "another date, looked at exactly",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: Sun, 06 Nov 1995 08:49:37 GMT\n\n",
        "HTTP/1.1 200 OK\n*\n(closed)",
    ),
    (
        "a later date, where that is enough",
        "GET /before/a.txt HTTP/1.0\nIf-Modified-Since: Mon, 06 Nov 1995 08:49:37 GMT\n\n",
        "HTTP/1.1 304 Not Modified\n*\n(closed)",
    ),
    (
        "changed since",
        "GET /a.txt HTTP/1.0\nIf-Unmodified-Since: Sat, 06 Nov 1993 08:49:37 GMT\n\n",
        "HTTP/1.1 412 Precondition Failed\n*\n(closed)",
    ),
    (
        "another tag",
        "GET /a.txt HTTP/1.0\nIf-Match: \"x\"\n\n",
        "HTTP/1.1 412 Precondition Failed\n*\n(closed)",
    ),
    (
        "the tag, weakly",
        "GET /a.txt HTTP/1.0\nIf-None-Match: \"x\", W/\"2ebc98a1-a\"\n\n",
        "HTTP/1.1 304 Not Modified\n*\n(closed)",
    ),
    (
        "the tag, and another date, which does not count then",
        "GET /a.txt HTTP/1.0\nIf-None-Match: *\nIf-Modified-Since: x\n\n",
        "HTTP/1.1 304 Not Modified\n*\n(closed)",
    ),
];

const RANGES: &[(&str, &str, &str)] = &[
    (
        "one range",
        "GET /a.txt HTTP/1.0\nRange: bytes=2-4\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Length: 3\n*\n\
         Content-Range: bytes 2-4/10\n\n234\n(closed)",
    ),
    (
        "the end, from the cache",
        "GET /cached/a.txt HTTP/1.0\nRange: bytes=-2\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 8-9/10\n\n89\n(closed)",
    ),
    (
        "several ranges",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-0,9-\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Type: multipart/byteranges; boundary=*\n*\n\n\
         \n--*\nContent-Type: text/plain\nContent-Range: bytes 0-0/10\n\n0\
         \n--*\nContent-Type: text/plain\nContent-Range: bytes 9-9/10\n\n9\
         \n--*--\n\n(closed)",
    ),
    (
        "a range that is not there",
        "GET /a.txt HTTP/1.0\nRange: bytes=10-\n\n",
        "HTTP/1.1 416 Requested Range Not Satisfiable\n*\nContent-Range: bytes */10\n*\n(closed)",
    ),
    (
        "a range of what has changed",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: \"x\"\n\n",
        "HTTP/1.1 200 OK\n*\nAccept-Ranges: bytes\n\n0123456789\n(closed)",
    ),
    (
        "a range of what has not",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: \"2ebc98a1-a\"\n\n",
        "HTTP/1.1 206 Partial Content\n*\n\n01\n(closed)",
    ),
    (
        "ranges where they are off",
        "GET /plain/a.txt HTTP/1.0\nRange: bytes=0-1\n\n",
        "HTTP/1.1 200 OK\n*\n\n0123456789\n(closed)",
    ),
];

#[test]
fn files_are_served() {
    check(&server(), FILES);
}

#[test]
fn folders_redirect_or_list() {
    check(&server(), FOLDERS);
}

#[test]
fn conditions_are_obeyed() {
    check(&server(), CONDITIONS);
}

#[test]
fn ranges_are_sent() {
    check(&server(), RANGES);
}

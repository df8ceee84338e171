//! `geoip2`: variables out of databases that the test writes.

use std::io::Read;
use std::net::TcpStream;
use std::process::Command;

use turnpike_testkit::mmdb::{self, Value};
use turnpike_testkit::{Folder, Server, check, wait_for};

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        geoip2 %FOLDER%/country.mmdb {
            auto_reload 1s;
            $own country iso_code;
            $code default=none source=$arg_ip country iso_code;
            $name source=$arg_ip country names en;
            $place source=$arg_ip location latitude;
            $build metadata build_epoch;
            $checked metadata last_check;
            $changed metadata last_change;
        }
        geoip2_proxy 127.0.0.0/8;
        geoip2_proxy 192.0.2.0/24;
        geoip2_proxy_recursive on;
        map $checked $is_checked { ~^[1-9][0-9]+$ yes; }
        map $changed $is_changed { ~^[1-9][0-9]+$ yes; }
        server {
            listen 127.0.0.1:%PORT%;
            location /source { return 200 '$code,$name,$place'; }
            location /own { return 200 '[$own]'; }
            location /about { return 200 '$build $is_checked $is_changed'; }
        }
    }
    stream {
        geoip2 %FOLDER%/country.mmdb {
            $own country iso_code;
            $code source=192.0.2.1 country iso_code;
        }
        server { listen 127.0.0.1:%PORT_STREAM%; return '$own $code'; }
    }";

fn record<'a>(code: &'a str, name: &'a str) -> Value<'a> {
    let names = Value::Map(vec![("en", Value::Text(name))]);
    let country = Value::Map(vec![("iso_code", Value::Text(code)), ("names", names)]);
    let location = Value::Map(vec![("latitude", Value::Double(52.5))]);
    Value::Map(vec![("country", country), ("location", location)])
}

fn database(code_of_10: &str) -> Vec<u8> {
    mmdb::database(&[
        (("127.0.0.0", 8), record("LO", "Local")),
        (("10.0.0.0", 8), record(code_of_10, "Ten")),
        (("192.0.2.0", 24), record("EX", "Example")),
        (("2001:db8::", 32), record("SIX", "Six")),
    ])
}

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("country.mmdb", database("TN"))
        .start()
}

const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "an address of a source",
        "GET /source?ip=10.1.2.3 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\nTN,Ten,52.50000",
    ),
    (
        "an IPv6 address",
        "GET /source?ip=2001:db8::1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\nSIX,Six,52.50000",
    ),
    (
        "an IPv4 address as IPv6",
        "GET /source?ip=::ffff:192.0.2.1 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\nEX,Example,52.50000",
    ),
    (
        "an unknown address, and no address",
        "GET /source?ip=11.0.0.1 HTTP/1.1\nHost: a\n\nGET /source?ip=x HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\nnone,,HTTP/1.1 200 OK\n*\n\nnone,,",
    ),
    (
        "the client's own",
        "GET /own HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\n[LO]",
    ),
    (
        "what trusted proxies name",
        "GET /own HTTP/1.1\nHost: a\nX-Forwarded-For: 11.1.1.1, 10.1.1.1, 192.0.2.9\n\n",
        "HTTP/1.1 200 OK\n*\n\n[TN]",
    ),
    (
        "about the database",
        "GET /about HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\n1500000000 yes yes",
    ),
];

#[test]
fn variables_come_out_of_records() {
    let server = server();
    check(&server, ANSWERS);
    let mut text = String::new();
    let mut client = TcpStream::connect(("127.0.0.1", server.port_named("STREAM"))).unwrap();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "LO EX");
}

#[test]
fn a_new_file_is_taken_by_itself() {
    let server = server();
    let path = server.folder().join("country.mmdb");
    let next = server.folder().join("next.mmdb");
    std::fs::write(&next, database("NEW")).unwrap();
    std::fs::rename(&next, &path).unwrap();
    let taken = wait_for(|| {
        let got = server.get("/source?ip=10.0.0.1");
        got.body.starts_with(b"NEW,").then_some(())
    });
    taken.expect("the new file is in force");
    std::fs::write(&path, "no database").unwrap();
    server.wait_for_log("error.log", "cannot be read again");
    let got = server.get("/source?ip=10.0.0.1");
    assert!(got.body.starts_with(b"NEW,"), "{got:?}");
}

/// Blocks that are refused, and the words that say why.
const REFUSED: &[(&str, &str)] = &[
    (
        "geoip2 %FOLDER%/none.mmdb { }",
        "failed - No such file or directory",
    ),
    (
        "geoip2 %FOLDER%/text.mmdb { }",
        "MMDB_open(\"%FOLDER%/text.mmdb\") failed - ",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { country iso_code; }",
        "invalid variable name \"country\"",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { $a; }",
        "\"$a\" needs the path of a value",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { $a default=x; }",
        "\"$a\" needs the path of a value",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { $a metadata x; }",
        "\"metadata\" needs one of",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { auto_reload soon; }",
        "\"auto_reload\" needs one time",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { $a source=$nothing b; }",
        "unknown \"nothing\" variable",
    ),
    (
        "geoip2 %FOLDER%/a.mmdb { } geoip2 %FOLDER%/a.mmdb { }",
        "Duplicate GeoIP2 mmdb - %FOLDER%/a.mmdb",
    ),
    (
        "geoip2_proxy 10.0.0.0/33;",
        "invalid network \"10.0.0.0/33\"",
    ),
    (
        "geoip_country /a;",
        "\"geoip_country\" directive is not supported yet",
    ),
];

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = Folder::create().unwrap();
    folder.write("a.mmdb", database("A")).unwrap();
    folder.write("text.mmdb", "no database").unwrap();
    let path = folder.path().display().to_string();
    for (block, expected) in REFUSED {
        let text = format!("events {{ }}\nhttp {{ {block} }}\n").replace("%FOLDER%", &path);
        folder.write("nginx.conf", &text).unwrap();
        let tested = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(["-t", "-e", "/dev/null", "-p", &path, "-c"])
            .arg(folder.path().join("nginx.conf"))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&tested.stderr);
        assert!(!tested.status.success(), "{block}");
        let expected = expected.replace("%FOLDER%", &path);
        assert!(stderr.contains(&expected), "{block}: {stderr}");
    }
}

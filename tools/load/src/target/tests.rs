#![allow(clippy::unwrap_used)]

use super::*;

fn shape() -> RequestShape {
    RequestShape {
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        credentials: None,
        keep_alive: true,
        pipeline: 1,
        protocol: Protocol::Http1,
        unix: None,
        variants: None,
    }
}

fn wish(url: &str, weight: f64) -> NamedRequest {
    NamedRequest {
        url: Url::parse(url).unwrap(),
        weight,
        method: None,
        think: Duration::ZERO,
    }
}

#[test]
fn urls_are_read() {
    let cases = [
        ("http://10.0.0.1", false, "10.0.0.1", 80, "10.0.0.1", "/"),
        (
            "http://a.test:8080/x?y#z",
            false,
            "a.test",
            8080,
            "a.test:8080",
            "/x?y",
        ),
        ("HTTPS://a.test?q", true, "a.test", 443, "a.test", "/?q"),
        ("http://[::1]:81/a", false, "::1", 81, "[::1]:81", "/a"),
        ("http://u:p@a.test/", false, "a.test", 80, "a.test", "/"),
        // No scheme.
        (
            "127.0.0.1:24310",
            false,
            "127.0.0.1",
            24310,
            "127.0.0.1:24310",
            "/",
        ),
        ("a.test:81/x", false, "a.test", 81, "a.test:81", "/x"),
        ("[::1]/x", false, "::1", 80, "[::1]", "/x"),
        (
            "localhost/?u=http://b",
            false,
            "localhost",
            80,
            "localhost",
            "/?u=http://b",
        ),
    ];
    for (text, tls, host, port, authority, target) in cases {
        let url = Url::parse(text).unwrap();
        let parts = (url.tls, &*url.host, url.port, &*url.authority, &*url.target);
        assert_eq!(parts, (tls, host, port, authority, target), "{text}");
    }
    let url = Url::parse("unix:/run/a.sock:/x").unwrap();
    assert_eq!(
        (url.unix.as_deref(), &*url.target),
        (Some(Path::new("/run/a.sock")), "/x")
    );
    for text in [
        "",
        "a.test",
        "ftp://a",
        "http://",
        "http://a:x/",
        "http://a:0/",
        "http://a:65536/",
        "http:/a",
        "user@localhost",
        "a/b:80",
        "http://a b/",
    ] {
        assert!(Url::parse(text).is_err(), "{text}");
    }
}

#[test]
fn requests_are_written_once_with_the_shape() {
    let mut shape = shape();
    let one = write_request(&wish("http://a.test:81/x", 1.0), &shape);
    assert_eq!(one, b"GET /x HTTP/1.1\r\nHost: a.test:81\r\n\r\n");
    shape.headers = vec!["Host: other".to_owned(), "X-A:b".to_owned()];
    shape.method = "POST".to_owned();
    shape.body = b"hello".to_vec();
    shape.credentials = Some("user:pass".to_owned());
    shape.keep_alive = false;
    let one = write_request(&wish("http://a.test/", 1.0), &shape);
    let expected = "POST / HTTP/1.1\r\nHost: other\r\nX-A: b\r\n\
        Authorization: Basic dXNlcjpwYXNz\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(String::from_utf8(one).unwrap(), expected);
}

#[test]
fn targets_share_endpoints_and_are_drawn_by_weight() {
    let wishes = [
        wish("http://127.0.0.1:81/a", 1.0),
        wish("http://127.0.0.1:81/b", 2.0),
        wish("http://127.0.0.1:82/c", 1.0),
    ];
    let targets = Targets::build(&wishes, &shape(), false).unwrap();
    assert_eq!((targets.endpoints.len(), targets.targets.len()), (2, 3));
    let mut random = Random::new(5);
    let mut seen = [0_u32; 3];
    for _ in 0..40_000 {
        seen[targets.draw(&mut random)] += 1;
        assert_eq!(targets.draw_at(1, &mut random), 2);
    }
    assert!((19_000..21_000).contains(&seen[1]), "{seen:?}");
    assert!(matches!(
        Targets::build(&[], &shape(), false),
        Err(TargetError::Nothing)
    ));
}

#[test]
fn files_of_urls_and_pages_are_read() {
    let folder = std::env::temp_dir().join(format!("turnpike-load-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("urls");
    std::fs::write(&path, "# two\nhttp://127.0.0.1/a 3\n\nhttp://127.0.0.1/b\n").unwrap();
    let wishes = read_urls(&path).unwrap();
    assert_eq!(
        (wishes.len(), wishes[0].weight, wishes[1].weight),
        (2, 3.0, 1.0)
    );
    std::fs::write(&path, "http://127.0.0.1/a -1\n").unwrap();
    assert!(matches!(read_urls(&path), Err(TargetError::Line(_, 1))));
    let pages = "new page0 0 get 10.128.0.0:80 /\nnew page1 500\n\tget - /a\n\thead - /b\n";
    std::fs::write(&path, pages).unwrap();
    let wishes = read_pages(&path).unwrap();
    let seen: Vec<_> = wishes
        .iter()
        .map(|wish| {
            (
                wish.method.as_deref(),
                &*wish.url.target,
                wish.think.as_millis(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Some("GET"), "/", 0),
            (Some("GET"), "/a", 0),
            (Some("HEAD"), "/b", 500)
        ]
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

//! Trailer fields of requests and responses, with another implementation of HTTP/2 as the client
//! and as the upstream server.

use bytes::Bytes;
use h2::{RecvStream, client, server};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use turnpike_testkit::Server;

const CONFIGURATION: &str = "
    events { }
    http {
        access_log off;
        proxy_http_version 2;
        proxy_pass_trailers on;
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            location /grpc { grpc_pass grpc://127.0.0.1:ORIGIN; }
            location /buffered { proxy_pass http://127.0.0.1:ORIGIN; }
            location /in_file {
                client_body_in_file_only clean;
                proxy_pass http://127.0.0.1:ORIGIN;
            }
            location /unbuffered {
                proxy_request_buffering off;
                proxy_pass http://127.0.0.1:ORIGIN;
            }
            location /dropped {
                proxy_pass_trailers off;
                proxy_pass http://127.0.0.1:ORIGIN;
            }
            location /other_body {
                proxy_set_body 12345;
                proxy_pass http://127.0.0.1:ORIGIN;
            }
        }
    }";

/// More than the windows and buffers of a stream that has just begun.
const LONG: usize = 300_000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

fn fields(list: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = list.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    pairs.collect()
}

fn text(fields: &HeaderMap) -> String {
    let lines = fields.iter().map(|(name, value)| {
        let value = value.to_str().unwrap();
        format!("{name}={value}")
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.join(" ")
}

/// Reads a body to its end: its bytes, and its trailers as text.
async fn read(mut body: RecvStream) -> (Vec<u8>, String) {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        bytes.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    (bytes, text(&trailers))
}

/// An upstream server that answers with the length and the trailers of the body that it got, and
/// with trailers of its own; its port.
pub(crate) fn origin() -> u16 {
    let (port_is, port) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            port_is.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket));
            }
        });
    });
    port.recv().unwrap()
}

async fn serve(socket: TcpStream) {
    let mut connection = server::handshake(socket).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (body, trailers) = read(request.into_body()).await;
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            let text = format!("{} {trailers}", body.len());
            stream.send_data(text.into(), false).unwrap();
            let own = fields(&[("grpc-status", "0"), ("x-end", "a b")]);
            stream.send_trailers(own).unwrap();
        });
    }
}

/// A request with a body and trailers, and what comes back: body and trailers.
async fn ask(port: u16, case: &Case) -> (String, String) {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (client, connection) = client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://a.test{}", case.path));
    let request = request.body(()).unwrap();
    let mut client = client.ready().await.unwrap();
    let (response, mut stream) = client.send_request(request, false).unwrap();
    let has_trailers = !case.trailers.is_empty();
    if case.body_bytes > 0 || !has_trailers {
        let body = Bytes::from(vec![b'x'; case.body_bytes]);
        stream.send_data(body, !has_trailers).unwrap();
    }
    if has_trailers {
        stream.send_trailers(fields(case.trailers)).unwrap();
    }
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200, "{}", case.path);
    let (body, trailers) = read(response.into_body()).await;
    (String::from_utf8(body).unwrap(), trailers)
}

struct Case {
    path: &'static str,
    body_bytes: usize,
    trailers: &'static [(&'static str, &'static str)],
    /// What the origin got.
    passed: &'static str,
    /// What the client got.
    returned: &'static str,
}

const TWO: &[(&str, &str)] = &[("x-sum", "1"), ("x-more", "2 3")];

const RETURNED: &str = "grpc-status=0 x-end=a b";

const CASES: &[Case] = &[
    Case {
        path: "/grpc/a",
        body_bytes: 5,
        trailers: TWO,
        passed: "5 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/grpc/no-body",
        body_bytes: 0,
        trailers: TWO,
        passed: "0 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/grpc/long",
        body_bytes: LONG,
        trailers: TWO,
        passed: "300000 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/grpc/no-trailers",
        body_bytes: 5,
        trailers: &[],
        passed: "5 ",
        returned: RETURNED,
    },
    Case {
        path: "/grpc/with-fields-of-heads",
        body_bytes: 5,
        trailers: &[("authorization", "a"), ("host", "b"), ("x-sum", "1")],
        passed: "5 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/buffered",
        body_bytes: 5,
        trailers: TWO,
        passed: "5 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/buffered/no-body",
        body_bytes: 0,
        trailers: TWO,
        passed: "0 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/in_file",
        body_bytes: LONG,
        trailers: TWO,
        passed: "300000 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/unbuffered",
        body_bytes: LONG,
        trailers: TWO,
        passed: "300000 x-more=2 3 x-sum=1",
        returned: RETURNED,
    },
    Case {
        path: "/dropped",
        body_bytes: 5,
        trailers: TWO,
        passed: "5 ",
        returned: "",
    },
    Case {
        path: "/other_body",
        body_bytes: 9,
        trailers: TWO,
        passed: "5 ",
        returned: RETURNED,
    },
];

#[test]
fn trailers_are_passed_on_both_ways() {
    let server = started();
    let runtime = runtime();
    for case in CASES {
        let (passed, returned) = runtime.block_on(ask(server.port(), case));
        assert_eq!(passed, case.passed, "{}", case.path);
        assert_eq!(returned, case.returned, "{}", case.path);
    }
}

#[test]
fn trailers_of_chunks_are_passed_on() {
    let server = started();
    for path in ["/grpc", "/buffered", "/unbuffered"] {
        let answer = server.exchange(format!(
            "POST {path} HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\
             Connection: close\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n"
        ));
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("5 x-sum=1"), "{path}: {answer}");
    }
}

fn started() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("ORIGIN", &origin().to_string()))
        .start()
}

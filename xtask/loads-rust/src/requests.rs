//! Requests for files and for another server behind, by hyper.

use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::{
    AT_ONCE, BURSTS, CANCELLING, CANCELS, Failure, LARGE_BYTES, MIDDLE_BYTES, PART_BYTES, Result,
    STREAMS, beside, expect, parallel, tell,
};

type Sender = SendRequest<BoxBody<Bytes, Failure>>;

const SMALL: &str = "/600.html";
const SMALL_BYTES: usize = 600;

/// Every cell, on one connection that measures round trips by PINGs.
pub(super) async fn all(port: &str) -> Result {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .adaptive_window(true)
        // Else it ends the connection itself: much DATA is under way of streams that it cancelled.
        .max_local_error_reset_streams(None)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    let one = || sender.clone();
    let before = ["", "/passed"];
    tell("download", async {
        for before in before {
            let large = whole(one(), format!("{before}/large"), LARGE_BYTES);
            beside(large, || whole(one(), SMALL.into(), SMALL_BYTES)).await?;
        }
        Ok(())
    })
    .await;
    let middle = || whole(one(), "/middle".into(), MIDDLE_BYTES);
    tell("streams", parallel(STREAMS, AT_ONCE, middle)).await;
    tell("upload", async {
        for before in before {
            upload(one(), before).await?;
        }
        Ok(())
    })
    .await;
    let cancelled = || cancel(one());
    tell("cancel", parallel(CANCELS, CANCELLING, cancelled)).await;
    tell("burst", async {
        for _ in 0..BURSTS {
            burst(one()).await;
        }
        whole(one(), SMALL.into(), SMALL_BYTES).await
    })
    .await;
    Ok(())
}

async fn get(mut sender: Sender, path: &str) -> Result<Response<Incoming>> {
    let request = Request::get(format!("http://localhost{path}"));
    let nothing = http_body_util::Empty::new().map_err(|never| match never {});
    sender.ready().await?;
    let response = sender.send_request(request.body(nothing.boxed())?).await?;
    expect(response.status(), StatusCode::OK)?;
    Ok(response)
}

async fn whole(sender: Sender, path: String, size: usize) -> Result {
    let mut body = get(sender, &path).await?.into_body();
    let mut came = 0;
    while let Some(frame) = body.frame().await {
        came += frame?.data_ref().map_or(0, Bytes::len);
    }
    expect(came, size)
}

async fn upload(mut sender: Sender, before: &str) -> Result {
    let part = Bytes::from(vec![0; PART_BYTES]);
    let parts = vec![part; LARGE_BYTES / PART_BYTES];
    let frames = parts.into_iter().map(|part| Ok(Frame::data(part)));
    let body = StreamBody::new(tokio_stream::iter(frames)).boxed();
    let request = Request::put(format!("http://localhost{before}/put/hyper"))
        .header("content-length", LARGE_BYTES)
        .body(body)?;
    sender.ready().await?;
    let status = sender.send_request(request).await?.status();
    let is_right = matches!(status, StatusCode::CREATED | StatusCode::NO_CONTENT);
    expect((status, is_right), (status, true))?;
    whole(sender, "/put/hyper".into(), LARGE_BYTES).await
}

async fn cancel(sender: Sender) -> Result {
    let mut body = get(sender, "/large").await?.into_body();
    let first = body.frame().await.ok_or("no part of the body")??;
    expect(first.is_data(), true)
}

/// Begins requests that are not answered, and cancels all of them at once.
async fn burst(sender: Sender) {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let sender = sender.clone();
        running.spawn(async move { get(sender, "/silent").await.map(drop) });
    }
    // Until they are sent.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    running.shutdown().await;
}

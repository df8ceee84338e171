//! Calls of the service of `judge.py`, by tonic. Messages are bytes.

use bytes::{Buf, BufMut, Bytes};
use hyper::http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use super::{
    AT_ONCE, BURSTS, CANCELLING, CANCELS, LARGE_BYTES, MIDDLE_BYTES, PART_BYTES, Result, STREAMS,
    beside, expect, parallel, tell,
};

/// The size of each message of the service's endless answer.
const FLOOD_BYTES: usize = 10_000;

/// Cancellations on a connection: tonic ends it itself when much DATA was under way of streams that
/// it cancelled, and has no setting for that.
const CANCELS_OF_CONNECTION: usize = 500;

struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> std::result::Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Every cell, on one connection that measures round trips by PINGs.
pub(super) async fn all(port: &str) -> Result {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
    let endpoint = endpoint.http2_adaptive_window(true);
    let channel = endpoint.connect().await?;
    let one = || channel.clone();
    let parts = LARGE_BYTES / PART_BYTES;
    let large = count(one(), parts, PART_BYTES);
    tell("download", beside(large, || small(one()))).await;
    let middle = || count(one(), 1, MIDDLE_BYTES);
    tell("streams", parallel(STREAMS, AT_ONCE, middle)).await;
    tell("upload", upload(one())).await;
    tell("cancel", async {
        for _ in 0..CANCELS / CANCELS_OF_CONNECTION {
            let channel = endpoint.connect().await?;
            let cancelled = || cancel(channel.clone());
            parallel(CANCELS_OF_CONNECTION, CANCELLING, cancelled).await?;
        }
        Ok(())
    })
    .await;
    tell("burst", async {
        for _ in 0..BURSTS {
            burst(one()).await;
        }
        small(one()).await
    })
    .await;
    Ok(())
}

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

async fn ready(channel: Channel) -> Result<Grpc<Channel>> {
    let mut client = Grpc::new(channel);
    client.ready().await?;
    Ok(client)
}

async fn small(channel: Channel) -> Result {
    let sent = Request::new(Bytes::from_static(b"small"));
    let mut client = ready(channel).await?;
    let answer = client
        .unary(sent, path("/turnpike.Judge/echo"), Raw)
        .await?;
    expect(answer.into_inner(), Bytes::from_static(b"small"))
}

async fn count(channel: Channel, messages: usize, size: usize) -> Result {
    let sent = Request::new(Bytes::from(format!("[{messages}, {size}]")));
    let mut client = ready(channel).await?;
    let path = path("/turnpike.Judge/count");
    let mut answers = client.server_streaming(sent, path, Raw).await?.into_inner();
    let mut came = 0;
    while let Some(message) = answers.message().await? {
        came += usize::from(message.len() >= size);
    }
    expect(came, messages)
}

async fn upload(channel: Channel) -> Result {
    let parts = LARGE_BYTES / PART_BYTES;
    let part = Bytes::from(vec![0; PART_BYTES]);
    let sent = Request::new(tokio_stream::iter(vec![part; parts]));
    let mut client = ready(channel).await?;
    let path = path("/turnpike.Judge/sum");
    let answer = client.client_streaming(sent, path, Raw).await?;
    expect(
        answer.into_inner(),
        Bytes::from(format!("{parts} {LARGE_BYTES}")),
    )
}

async fn cancel(channel: Channel) -> Result {
    let sent = Request::new(Bytes::from_static(b"loads"));
    let mut client = ready(channel).await?;
    let path = path("/turnpike.Judge/flood");
    let mut answers = client.server_streaming(sent, path, Raw).await?.into_inner();
    let first = answers.message().await?;
    expect(first.map(|first| first.len()), Some(FLOOD_BYTES))
}

/// Begins calls that are not answered, and cancels all of them at once.
async fn burst(channel: Channel) {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let channel = channel.clone();
        running.spawn(async move {
            let sent = Request::new(Bytes::from_static(b"loads"));
            let mut client = ready(channel).await?;
            client
                .unary(sent, path("/turnpike.Judge/wait"), Raw)
                .await?;
            Result::Ok(())
        });
    }
    // Until they are sent.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    running.shutdown().await;
}

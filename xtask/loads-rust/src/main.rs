//! Puts loads on a server for `cargo xtask http2-clients`, by tonic or by hyper:
//!
//! ```text
//! loads CLIENT PLAIN SECURE ROOT
//! ```
//!
//! CLIENT is tonic or hyper, and PLAIN a port. A line for each cell of the matrix says how it went.

mod calls;
mod requests;

use std::future::Future;

/// The error of a load, as a line.
type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Failure>;

const LARGE_BYTES: usize = 128 << 20;
const PART_BYTES: usize = 1 << 20;
const MIDDLE_BYTES: usize = 100_000;
const STREAMS: usize = 1000;
const AT_ONCE: usize = 100;
const CANCELS: usize = 3000;
const CANCELLING: usize = 20;
const BURSTS: usize = 3;

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [client, plain, ..] = &arguments[..] else {
        return Err("loads CLIENT PLAIN SECURE ROOT".into());
    };
    match client.as_str() {
        "tonic" => calls::all(plain).await,
        _ => requests::all(plain).await,
    }
}

/// Prints how a cell went.
async fn tell(cell: &str, work: impl Future<Output = Result>) {
    match work.await {
        Ok(()) => println!("{cell} pass"),
        Err(error) => {
            let words: Vec<String> = causes(&*error).collect();
            println!("{cell} fail: {}", words.join(": ").replace('\n', " "));
        }
    }
}

/// An error with what caused it.
fn causes<'a>(error: &'a (dyn std::error::Error + 'static)) -> impl Iterator<Item = String> + 'a {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string)
}

/// Does the work `times` times, `width` at a time.
async fn parallel<F>(times: usize, width: usize, work: impl Fn() -> F) -> Result
where
    F: Future<Output = Result> + Send + 'static,
{
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..times {
        if running.len() >= width
            && let Some(ended) = running.join_next().await
        {
            ended??;
        }
        running.spawn(work());
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

/// Does the small work again and again until the large one has ended.
async fn beside<F: Future<Output = Result>>(
    large: impl Future<Output = Result> + Send + 'static,
    small: impl Fn() -> F,
) -> Result {
    let large = tokio::spawn(large);
    while !large.is_finished() {
        small().await?;
    }
    large.await?
}

fn expect<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Result {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{found:?} instead of {wanted:?}").into())
    }
}

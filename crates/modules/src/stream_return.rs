//! `return` of `stream`: a text is sent, and the connection is closed.

use std::io;
use std::sync::Arc;

use turnpike_conf::{ConfError, Context, Merge, ReferenceText, Row, View, bytes_of};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::timeout::within;
use turnpike_plan::template::Template;
use turnpike_stream::client::Client;
use turnpike_stream::phase::{Content, LocalFuture, Status};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;

/// How long a client may take nothing of the text, in milliseconds: as long as HTTP's
/// `send_timeout` is by default.
const SEND_TIMEOUT_MS: u64 = 60_000;

const ROWS: &[Row] = &[Row {
    name: "return",
    contexts: &[Context::StreamServer],
    merge: Merge::Own,
    variables: Some(0),
    syntax: "value",
    summary: "Sends a text, which may contain variables, and closes the connection.",
    ..Row::PLAIN
}];

/// The text of a server.
struct Text(Template);

pub(crate) const FAMILY: Family = Family {
    name: "stream return",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!(
        "stream_return/reference.md"
    ))],
    server,
    ..Family::NONE
};

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("return") else {
        return Ok(());
    };
    let text = builder.template(view, entry, &bytes_of(entry.argument(0)))?;
    draft
        .set_content(Arc::new(Text(text)))
        .map_err(|what| view.error(entry.span, format!("\"return\" directive {what}")))
}

impl Content for Text {
    fn datagrams_max(&self) -> u64 {
        1
    }

    fn serve<'a>(
        &'a self,
        session: &'a mut Session,
        client: &'a Client,
    ) -> LocalFuture<'a, Status> {
        Box::pin(async move {
            let text = self.0.value(session);
            let sent = within(SEND_TIMEOUT_MS, send(session, client, &text)).await;
            if let Err(error) = sent {
                session.log(Level::Info, format_args!("send() failed {}", Errno(&error)));
            }
            Status::Ok
        })
    }
}

async fn send(session: &Session, client: &Client, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        let sent = client.write(text).await?;
        text = &text[sent..];
        session
            .bytes_sent
            .set(session.bytes_sent.get() + sent as u64);
    }
    Ok(())
}

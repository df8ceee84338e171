//! The family in `stream`.

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, Row, Value, View};
use turnpike_stream::plan::{Builder, Family, ServerDraft};

use super::background::BackgroundTasks;
use super::stream_metrics::SessionCounts;
use super::{commands, matches, plan, resolver, rows, stream_health};

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream upstream",
    rows: ROWS,
    reference: super::FAMILY.reference,
    stream,
    server,
    ..Family::NONE
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    resolver::check(view, builder)?;
    matches::read::<stream_health::Conversation, _>(view, builder);
    plan::groups(view, builder)?;
    commands::offer_verbs(builder);
    let tasks = builder.store::<BackgroundTasks>().clone();
    builder.metrics(Arc::new(SessionCounts(tasks)));
    Ok(())
}

fn server(view: View<'_>, builder: &mut Builder<'_>, _: &mut ServerDraft) -> Result<(), ConfError> {
    if let Some(entry) = view.own("health_check")
        && view.own("proxy_pass").is_none()
    {
        let message = "\"health_check\" directive requires \"proxy_pass\"";
        return Err(view.error(entry.span, message));
    }
    resolver::check(view, builder)
}

const GROUP: &[Context] = &[Context::StreamUpstream];

const ANYWHERE: &[Context] = &[
    Context::Stream,
    Context::StreamServer,
    Context::StreamUpstream,
];

/// The directives.
const ROWS: &[Row] = &[
    Row {
        contexts: &[Context::Stream],
        value: Value::Block(Context::StreamUpstream),
        ..row("upstream")
    },
    Row {
        contexts: GROUP,
        syntax: "address [weight=number] [max_conns=number] [max_fails=number] \
            [fail_timeout=time] [slow_start=time] [backup] [down] [drain] [resolve] \
            [service=name]",
        summary: "Adds a server to the group: an address with a port, a name with several \
            addresses, or `unix:` and a path. With `resolve` the name is looked up again whenever \
            its addresses may have changed. With `service` the lookup uses SRV records. All lanes \
            share the state of a server, and a reload keeps it.",
        ..row("server")
    },
    Row {
        contexts: GROUP,
        summary: "The file with the servers of the group, `server` lines as in the configuration. \
            It is written when a command changes them, so the serving user must be allowed to \
            write to its folder. While the server runs, only commands should change it. If the \
            file is missing or empty, the group has no servers, and sessions end. As in nginx \
            Plus.",
        ..row("state")
    },
    Row {
        contexts: GROUP,
        ..row("zone")
    },
    Row {
        contexts: GROUP,
        summary: "Passes a session to the server with the fewest sessions in relation to its \
            weight.",
        ..row("least_conn")
    },
    Row {
        contexts: GROUP,
        summary: "Passes sessions with the same key to the same server. With `consistent`, a \
            change of the server list moves only a few keys (ketama).",
        ..row("hash")
    },
    Row {
        contexts: GROUP,
        syntax: "[two [least_conn | least_time=connect | least_time=first_byte | \
            least_time=last_byte]]",
        summary: "Passes a session to a random server, according to its weight. With `two`, two \
            servers are picked, and the session goes to the one with fewer sessions or the shorter \
            time.",
        ..row("random")
    },
    Row {
        contexts: GROUP,
        syntax: "connect | first_byte | last_byte [inflight]",
        summary: "Passes a session to the server that should finish it first. The choice depends \
            on the server's sessions and on its average time until it is connected, until its \
            first byte or until the end of a session. With `inflight`, the times of sessions in \
            progress count too.",
        ..row("least_time")
    },
    Row {
        contexts: GROUP,
        summary: "Limits how many sessions of the group are passed to another server after a \
            failure to connect. Within ten seconds, at most `percent` of the group's sessions, \
            such as `20%`, are passed on, counted over all lanes. `min` retries (10 by default) \
            are always allowed. Beyond the limit the session ends.",
        ..row("retry_budget")
    },
    Row {
        contexts: &[Context::StreamServer],
        syntax: "[interval=time] [jitter=time] [fails=number] [passes=number] [match=name] \
            [port=number] [mandatory [persistent]] [udp]",
        summary: "Checks every server of the upstream group periodically. Servers that fail the \
            check receive no sessions. Without `match` a server passes if it can be connected to. \
            With `udp` the check uses datagrams and needs a `match` with `send` and `expect`. With \
            `mandatory`, a server must pass a check before it receives its first session.",
        ..row("health_check")
    },
    Row {
        name: "health_check_timeout",
        contexts: &[Context::Stream, Context::StreamServer],
        value: Value::Milliseconds,
        syntax: "time",
        default: "5s",
        summary: "The maximum time for connecting in a check. The same limit applies to the data \
            that is exchanged after that.",
        ..Row::PLAIN
    },
    Row {
        contexts: &[Context::Stream],
        summary: "What `health_check` sends and expects: `send string`, `expect string` (the \
            answer begins with it) or `expect ~ regex` (it matches anywhere in the first 16 KB). \
            In both strings `\\x` and two hexadecimal digits stand for a byte.",
        ..row("match")
    },
    Row {
        contexts: ANYWHERE,
        ..row("resolver")
    },
    Row {
        contexts: ANYWHERE,
        ..row("resolver_timeout")
    },
];

/// The row of that name in HTTP.
const fn row(name: &str) -> Row {
    let mut at = 0;
    while at < rows::ROWS.len() {
        if is_same(rows::ROWS[at].name, name) {
            return rows::ROWS[at];
        }
        at += 1;
    }
    panic!("HTTP has a row of that name")
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
